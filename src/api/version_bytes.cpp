// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/version_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "segment/slot_io.hpp"

namespace farheap::api {

using base::kPageBytes;

namespace {

constexpr std::uint64_t kPagesPerLeaf = std::tuple_size_v<segment::BlockWords>;

}  // namespace

VersionBytes::VersionBytes(Store& store, const segment::BlockTree::Root& map, Range range)
    : store_(store), map_(store, "the map of the heap", map), range_(range) {}

Error VersionBytes::outside(std::uint64_t address, std::uint64_t bytes) const {
  return {ErrorCode::kCorrupt, "cannot read from the heap", store_.describe(),
          fmt::format("its books lead to {} bytes at {:#x}, and it lies from {:#x} to {:#x}", bytes, address,
                      range_.base, range_.base + range_.bytes),
          "`farheap heap check` tells what else is damaged; an older snapshot may be whole"};
}

Status VersionBytes::read_pages(std::uint64_t first, std::uint64_t count, std::byte* into) {
  const std::size_t longest = segment::longest_read(store_);
  std::vector<segment::SlotRead> entries;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto words = map_.find((first + i) / kPagesPerLeaf);
    if (!words) return fail(std::move(words.error()));
    const segment::SlotRef at(*words == nullptr ? 0 : (**words)[(first + i) % kPagesPerLeaf]);
    if (at.is_nowhere()) {
      std::memset(into + i * kPageBytes, 0, kPageBytes);
    } else {
      append(entries, at.slot(), into + i * kPageBytes, longest);
    }
  }
  return entries.empty() ? Status{} : segment::read_slots(store_, entries);
}

Result<std::span<const std::byte>> VersionBytes::at(std::uint64_t address) {
  const std::uint64_t offset = address - range_.base;
  const std::uint64_t number = offset / kWindowBytes;
  const std::uint64_t bytes = std::min(kWindowBytes, range_.bytes - number * kWindowBytes);
  auto found = windows_.find(number);
  if (found == windows_.end()) {
    if (windows_.size() == kMostWindows) windows_.clear();
    auto window = std::make_unique<store::AlignedBuffer>(kWindowBytes);
    if (!window->is_there()) {
      return fail(ErrorCode::kNoSpace, "cannot read from the heap", store_.describe(), "no memory");
    }
    Status status = read_pages(number * (kWindowBytes / kPageBytes), bytes / kPageBytes, window->part(0, bytes).data());
    if (!status) return fail(std::move(status.error()));
    found = windows_.emplace(number, std::move(window)).first;
  }
  return found->second->part(0, bytes).subspan(offset % kWindowBytes);
}

Status VersionBytes::read(std::uint64_t address, std::span<std::byte> into) {
  if (!range_.holds(address, into.size())) return fail(outside(address, into.size()));
  while (!into.empty()) {
    auto here = at(address);
    if (!here) return fail(std::move(here.error()));
    const std::size_t count = std::min(here->size(), into.size());
    std::memcpy(into.data(), here->data(), count);
    into = into.subspan(count);
    address += count;
  }
  return {};
}

Result<std::string> VersionBytes::text(std::uint64_t address, std::uint64_t most) {
  std::string text;
  const std::uint64_t begin = address;
  while (text.size() < most) {
    if (!range_.holds(address, 1)) return fail(outside(begin, text.size() + 1));
    auto here = at(address);
    if (!here) return fail(std::move(here.error()));
    const auto* const letters = reinterpret_cast<const char*>(here->data());
    const std::size_t count = std::min<std::uint64_t>(here->size(), most - text.size());
    const std::size_t length = strnlen(letters, count);
    text.append(letters, length);
    if (length < count) return text;
    address += count;
  }
  return fail(ErrorCode::kCorrupt, "cannot read from the heap", store_.describe(),
              fmt::format("a text at {:#x} has no end", begin), "`farheap heap check` tells what else is damaged");
}

Result<std::uint64_t> VersionBytes::zeros_from(std::uint64_t address) {
  constexpr std::uint64_t kLeafBytes = kPagesPerLeaf * kPageBytes;
  const std::uint64_t offset = address - range_.base;
  auto words = map_.find(offset / kLeafBytes);
  if (!words) return fail(std::move(words.error()));
  return *words == nullptr ? kLeafBytes - offset % kLeafBytes : 0;
}

Status VersionBytes::stream(std::uint64_t address, std::uint64_t bytes, const Take& take) {
  if (!range_.holds(address, bytes)) return fail(outside(address, bytes));
  const store::AlignedBuffer buffer(base::kMiB);
  if (!buffer.is_there()) return fail(ErrorCode::kNoSpace, "cannot read from the heap", store_.describe(), "no memory");
  while (bytes != 0) {
    const std::uint64_t offset = address - range_.base;
    const std::uint64_t inside = offset % kPageBytes;
    const std::uint64_t count = std::min(bytes, base::kMiB - inside);
    const std::uint64_t pages = (inside + count + kPageBytes - 1) / kPageBytes;
    std::byte* const into = buffer.part(0, pages * kPageBytes).data();
    if (Status status = read_pages(offset / kPageBytes, pages, into); !status) return status;
    if (Status status = take({into + inside, count}); !status) return status;
    address += count;
    bytes -= count;
  }
  return {};
}

}  // namespace farheap::api
