// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a page is. What is in view is always the newest, and the core has zeros for what is not; so a page that is
// not all zeros stays. Otherwise its state decides between the staging place and the store. In a core, any thread may
// have stopped anywhere: a page that was just being moved has one state and is in the place of the next.
#include "whole_core.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/units.hpp"
#include "pager/core_index.hpp"
#include "pager/page_table.hpp"

namespace farheap::tool {
namespace {

using base::kPageBytes;
using pager::PageState;

constexpr char kWhat[] = "cannot make the core whole";
constexpr std::uint64_t kMostPages = base::kTiB / kPageBytes;  // a heap is no longer
constexpr std::size_t kPagesAtOnce = 256;
constexpr std::size_t kEntriesAtOnce = 8192;

// As they stand in the core.
struct Entry {
  std::uint32_t slot_and_one;
  std::uint8_t state;
  std::uint8_t unused[3];
};
static_assert(sizeof(Entry) == sizeof(pager::CorePage));

bool is_zero(std::span<const std::byte> page) {
  return page[0] == std::byte{0} && std::memcmp(page.data(), page.data() + 1, page.size() - 1) == 0;
}

bool may_be_staged(PageState state) { return state != PageState::kFresh && state != PageState::kStored; }
bool may_be_stored(PageState state) {
  return state == PageState::kStored || state == PageState::kFilling || state == PageState::kDropping;
}

class Filler {
 public:
  Filler(CoreFile& core, const CoreNotes& notes, const ReadBlocks& read_blocks)
      : core_(core), notes_(notes), read_blocks_(read_blocks), buffer_(kPagesAtOnce * kPageBytes) {}

  Result<Filled> run() {
    std::vector<Entry> entries(kEntriesAtOnce);
    for (std::uint64_t first = 0; first < notes_.pages; first += kEntriesAtOnce) {
      const auto some = std::span(entries).first(std::min<std::uint64_t>(kEntriesAtOnce, notes_.pages - first));
      if (!core_.read(notes_.entries + first * sizeof(Entry), std::as_writable_bytes(some))) {
        return fail(ErrorCode::kCorrupt, kWhat, core_.name(), "it is cut off",
                    "raise `ulimit -c` and have the program dump it again");
      }
      for (std::size_t i = 0; i < some.size(); ++i) {
        if (auto ok = look_at(first + i, some[i]); !ok) return fail(std::move(ok.error()));
      }
    }
    if (auto ok = fetch(); !ok) return fail(std::move(ok.error()));
    return std::move(filled_);
  }

 private:
  Status look_at(std::uint64_t page, const Entry& entry) {
    const auto state = static_cast<PageState>(entry.state);
    if (state == PageState::kFresh) return {};
    alignas(8) std::byte bytes[kPageBytes];
    const bool in_core = core_.read(address_of(page), bytes);
    if (!in_core) return {};  // the program has mapped something of its own there
    if (!is_zero(bytes)) return {};
    if (may_be_staged(state) && core_.read(notes_.staging + page * kPageBytes, bytes) && !is_zero(bytes)) {
      ++filled_.from_staging;
      return core_.write(address_of(page), bytes);
    }
    if (!may_be_stored(state) || entry.slot_and_one == 0) return {};
    wanted_.push_back(page);
    slots_.push_back(entry.slot_and_one - 1);
    return wanted_.size() == kPagesAtOnce ? fetch() : Status();
  }

  Status fetch() {
    std::vector<Get> batch;
    batch.reserve(wanted_.size());
    for (std::size_t i = 0; i < wanted_.size(); ++i) batch.push_back({.block = slots_[i], .into = piece(i)});
    Status read;
    if (!batch.empty()) read = read_blocks_(batch);
    Status written;
    for (std::size_t i = 0; i < batch.size() && written; ++i) {
      if (batch[i].outcome == Outcome::kOk) {
        ++filled_.from_store;
        written = core_.write(address_of(wanted_[i]), piece(i));
      } else if (filled_.missing++ == 0) {
        filled_.why = read ? "the store does not have it" : read.error().message();
      }
    }
    wanted_.clear();
    slots_.clear();
    return written;
  }

  std::span<std::byte> piece(std::size_t number) { return std::span(buffer_).subspan(number * kPageBytes, kPageBytes); }
  std::uint64_t address_of(std::uint64_t page) const { return notes_.base + page * kPageBytes; }

  CoreFile& core_;
  const CoreNotes& notes_;
  const ReadBlocks& read_blocks_;
  Filled filled_;
  std::vector<std::byte> buffer_;
  std::vector<std::uint64_t> wanted_;  // pages, and where each is
  std::vector<std::uint64_t> slots_;
};

}  // namespace

Result<CoreNotes> read_notes(std::span<const std::byte> bytes, const std::string& subject) {
  const auto& header = *reinterpret_cast<const pager::CoreHeader*>(bytes.data());
  if (header.format != pager::kCoreFormat || header.page_bytes != kPageBytes) {
    return fail(ErrorCode::kUnavailable, kWhat, subject, "its program ran with another version of Farheap",
                "use the `farheap` that it ran with");
  }
  CoreNotes notes{header.base, header.staging, header.entries, header.held.load(), {}};
  if (notes.pages > kMostPages) return fail(ErrorCode::kCorrupt, kWhat, subject, "its notes are damaged");
  notes.store.assign(header.store, strnlen(header.store, sizeof header.store));
  return notes;
}

tl::unexpected<Error> no_notes(const std::string& subject) {
  return fail(ErrorCode::kNotFound, kWhat, subject,
              "it has no notes of where pages are: its program never came near its budget (then an ordinary core is "
              "whole), or ran without whole_core=on",
              "run the program with --set whole_core=on");
}

Result<CoreNotes> find_notes(const CoreFile& core) {
  for (const auto& part : core.parts()) {
    alignas(8) std::byte bytes[sizeof(pager::CoreHeader)];
    if (part.bytes < sizeof bytes || !core.read(part.address, std::span(bytes).first(sizeof pager::kCoreMagic)))
      continue;
    if (std::memcmp(bytes, pager::kCoreMagic, sizeof pager::kCoreMagic) != 0) continue;
    if (core.read(part.address, bytes)) return read_notes(bytes, core.name());
  }
  return no_notes(core.name());
}

Result<Filled> fill_in(CoreFile& core, const CoreNotes& notes, const ReadBlocks& read_blocks) {
  return Filler(core, notes, read_blocks).run();
}

}  // namespace farheap::tool
