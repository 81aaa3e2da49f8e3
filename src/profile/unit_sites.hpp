// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which site made the small object that lies in each 16 bytes of a sampled page. So a touch of such a page is known to
// be of a site, whichever object on it is touched. A page gets a row of the table when an object is allocated there.
// There are twice as many rows as a sample has pages in the mean; a page that gets none is not known.
//
// Thread-safety: any thread. What was freed stays until another object lies there: nobody touches it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/units.hpp"
#include "os/drop_memory.hpp"
#include "os/mapping.hpp"
#include "profile/call_sites.hpp"
#include "profile/sample_point.hpp"

namespace farheap::profile {

class UnitSites {
 public:
  static constexpr std::uint64_t kUnit = 16;
  // For so many pages, of which about one in `one_in` is sampled. kNoSpace without addresses.
  [[nodiscard]] static Result<UnitSites> make(std::uint64_t pages, std::uint64_t one_in) {
    auto row_of = os::ReservedArray<std::atomic<std::uint32_t>>::make(pages);
    if (!row_of) return fail(std::move(row_of.error()));
    const std::uint64_t rows = pages / one_in * 2 + kLeastRows;  // hashes are not even
    auto sites = os::ReservedArray<std::atomic<std::uint16_t>>::make(rows * kUnits);
    if (!sites) return fail(std::move(sites.error()));
    return UnitSites(std::move(*row_of), std::move(*sites));
  }
  UnitSites(UnitSites&& other) noexcept : row_of_(std::move(other.row_of_)), sites_(std::move(other.sites_)) {}

  // Bytes of one page, counted from the heap's first. kNoSite: nobody's from now on.
  void note(std::uint64_t offset, std::uint64_t bytes, SiteId site) {
    const std::uint64_t page = offset / kSamplePageBytes;
    const std::uint64_t row = site != CallSites::kNoSite ? row_for(page) : row_of_[page].load();
    if (row == 0) return;
    const std::uint64_t first = offset % kSamplePageBytes / kUnit;
    const std::uint64_t end = std::min((offset % kSamplePageBytes + bytes + kUnit - 1) / kUnit, kUnits);
    for (std::uint64_t i = first; i < end; ++i) {
      sites_[(row - 1) * kUnits + i].store(static_cast<std::uint16_t>(site), std::memory_order_relaxed);
    }
  }
  // kNoSite: nobody's, or not known.
  [[nodiscard]] SiteId at(std::uint64_t offset) const {
    const std::uint32_t row = row_of_[offset / kSamplePageBytes].load(std::memory_order_acquire);
    return row == 0 ? CallSites::kNoSite
                    : sites_[(row - 1) * kUnits + offset % kSamplePageBytes / kUnit].load(std::memory_order_relaxed);
  }
  void forget() {
    (void)os::drop_though_locked(reinterpret_cast<std::byte*>(&sites_[0]),
                                 base::round_up(sites_.capacity() * sizeof(std::uint16_t), base::kPageBytes));
  }

 private:
  static constexpr std::uint64_t kUnits = kSamplePageBytes / kUnit, kLeastRows = 64;
  UnitSites(os::ReservedArray<std::atomic<std::uint32_t>> row_of, os::ReservedArray<std::atomic<std::uint16_t>> sites)
      : row_of_(std::move(row_of)), sites_(std::move(sites)) {}

  // From 1 on; 0: there is none left.
  [[nodiscard]] std::uint32_t row_for(std::uint64_t page) {
    std::uint32_t row = row_of_[page].load(std::memory_order_acquire);
    if (row != 0 || rows_.load(std::memory_order_relaxed) >= sites_.capacity() / kUnits) return row;
    const std::uint32_t made = rows_.fetch_add(1) + 1;
    if (made > sites_.capacity() / kUnits) return 0;
    return row_of_[page].compare_exchange_strong(row, made) ? made : row;  // another thread was faster
  }

  os::ReservedArray<std::atomic<std::uint32_t>> row_of_;  // by page
  os::ReservedArray<std::atomic<std::uint16_t>> sites_;
  std::atomic<std::uint32_t> rows_{0};  // made
};

}  // namespace farheap::profile
