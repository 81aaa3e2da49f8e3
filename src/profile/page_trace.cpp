// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/page_trace.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/units.hpp"

namespace farheap::profile {

namespace {

// As it lies at the start of the file; numbers are little-endian, as those of the machine.
struct Header {
  char magic[8];
  std::uint32_t format;
  std::uint32_t page_bytes;
  std::uint64_t base_address;
  std::uint64_t window_pages;
  std::uint64_t reserved[4];
};
static_assert(sizeof(Header) == PageTraceHeader::kBytes);

auto refuse(ErrorCode code, std::string why, std::string remedy = {}) {
  return fail(code, "cannot read", "the page trace", std::move(why), std::move(remedy));
}

}  // namespace

std::optional<PageTraceEntry> unpack_entry(std::uint32_t word) {
  const auto event = static_cast<PageEvent>(word & 15);
  switch (event) {
    case PageEvent::kCame:
    case PageEvent::kCameFresh:
    case PageEvent::kLeft:
    case PageEvent::kLeftWritten:
    case PageEvent::kDropped:
    case PageEvent::kCut: return PageTraceEntry{word >> 4, event};
  }
  return std::nullopt;
}

std::array<std::uint32_t, PageTraceHeader::kBytes / 4> PageTraceHeader::words() const {
  Header header{{}, kFormat, base::kPageBytes, base_address, window_pages, {}};
  std::memcpy(header.magic, kMagic.data(), sizeof(header.magic));
  std::array<std::uint32_t, kBytes / 4> words;
  std::memcpy(words.data(), &header, kBytes);
  return words;
}

Result<PageTrace> read_page_trace(std::span<const std::byte> file) {
  Header header;
  if (file.size() < sizeof(header)) return refuse(ErrorCode::kCorrupt, "it ends inside its header");
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::string_view(header.magic, sizeof(header.magic)) != PageTraceHeader::kMagic) {
    return refuse(ErrorCode::kCorrupt, "it does not begin as one");
  }
  if (header.format != PageTraceHeader::kFormat || header.page_bytes != base::kPageBytes) {
    return refuse(ErrorCode::kUnavailable,
                  fmt::format("it has format {} and pages of {} bytes", header.format, header.page_bytes),
                  "read it with the version of Farheap that wrote it");
  }
  PageTrace trace{{header.base_address, header.window_pages}, {}};
  file = file.subspan(sizeof(header));
  trace.entries.reserve(file.size() / sizeof(std::uint32_t));
  for (; file.size() >= sizeof(std::uint32_t); file = file.subspan(sizeof(std::uint32_t))) {
    std::uint32_t word;
    std::memcpy(&word, file.data(), sizeof(word));
    if (word == 0) break;  // the file reaches beyond what was written
    const auto entry = unpack_entry(word);
    if (!entry) {
      return refuse(ErrorCode::kCorrupt, fmt::format("entry {} is {:#x}", trace.entries.size(), word));
    }
    if (entry->event == PageEvent::kCut) {
      trace.cut = true;
      break;
    }
    trace.entries.push_back(*entry);
  }
  return trace;
}

}  // namespace farheap::profile
