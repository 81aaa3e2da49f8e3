// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The format of a page trace (docs/formats.md): in which order a program used its pages, as far as it could be seen
// through a window. While a page is in view (in the window) its uses are not seen; coming and leaving are.
//
// Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <farheap/result.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "pager/view.hpp"

namespace farheap::profile {

enum class PageEvent : std::uint8_t {
  kCame = 1,         // used: it came into view with the contents that it left with
  kCameFresh = 2,    // used: it came into view as zeros, which nobody has to keep
  kLeft = 3,         // left the view, as it had come
  kLeftWritten = 4,  // left the view, changed since it came
  kDropped = 5,      // its contents are not needed any more
  kCut = 15,         // the recording could not go on; the page number says nothing
};

using pager::PageNumber;

struct PageTraceEntry {
  PageNumber page = 0;
  PageEvent event = PageEvent::kCame;
  [[nodiscard]] bool operator==(const PageTraceEntry&) const = default;
};

inline constexpr PageNumber kTraceablePages = PageNumber{1} << 28;  // 1 TiB

// Requires: page < kTraceablePages. Never 0.
[[nodiscard]] constexpr std::uint32_t pack(PageTraceEntry entry) {
  return static_cast<std::uint32_t>(entry.page << 4) | static_cast<std::uint32_t>(entry.event);
}
[[nodiscard]] std::optional<PageTraceEntry> unpack_entry(std::uint32_t word);

struct PageTraceHeader {
  static constexpr std::string_view kMagic = "FHPAGES\n";
  static constexpr std::uint32_t kFormat = 1;
  static constexpr std::size_t kBytes = 64;

  std::uint64_t base_address = 0;  // of page 0
  std::uint64_t window_pages = 0;  // at most so many were in view, if the pager could keep to it
  [[nodiscard]] std::array<std::uint32_t, kBytes / 4> words() const;
};

struct PageTrace {
  PageTraceHeader header;
  std::vector<PageTraceEntry> entries;
  bool cut = false;  // the program went on after the last entry
};

// `file`: the bytes of a whole trace, or of the start of one. kCorrupt for what is no trace; kUnavailable for a newer
// format.
[[nodiscard]] Result<PageTrace> read_page_trace(std::span<const std::byte> file);

}  // namespace farheap::profile
