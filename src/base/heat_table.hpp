// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where in its heap a process faults: counts for each of at most kRanges ranges of equal length that cover the heap
// from its beginning. The length is a power of two; when a byte beyond the last range is counted, it doubles and
// neighbours become one, so that nothing is lost and the table never grows. Summed up, it says what the process did.
//
// Lives in the run page, in memory of zeros: written by one process, read by others (`farheap top`). Others may write
// to it, too, and then what it says is wrong; no call goes beyond the table, or does not end, whatever stands in it.
// Thread-safety: all calls at the same time, but for start(). A count made in the very moment in which the ranges
// double may go to another range; none is lost.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/units.hpp"

namespace farheap::base {

enum class Heat : unsigned {
  kFresh,         // faults: first touches
  kProbation,     // faults: out of view but still in memory
  kStore,         // faults: the page had to be read
  kWaited,        // faults: the page was on its way already
  kBytesRead,     // from the store
  kBytesWritten,  // to the store
  kStallNs,       // handlers' time from these faults to their pages
};
inline constexpr std::size_t kHeatKinds = 7;

struct HeatCounts {
  std::array<std::uint64_t, kHeatKinds> values{};
  [[nodiscard]] std::uint64_t& operator[](Heat kind) { return values[static_cast<unsigned>(kind)]; }
  [[nodiscard]] std::uint64_t operator[](Heat kind) const { return values[static_cast<unsigned>(kind)]; }
  HeatCounts& operator+=(const HeatCounts& more);
  // What was added since `before`; all of it where the counts began anew.
  [[nodiscard]] HeatCounts since(const HeatCounts& before) const;
  [[nodiscard]] bool any() const;
  [[nodiscard]] std::uint64_t faults() const;
};

class HeatTable {
 public:
  static constexpr std::size_t kRanges = 126;  // two pages with what stands before them
  static constexpr std::uint32_t kFirstShift = 21;

  struct Snapshot {
    std::int32_t pid = 0;
    std::uint64_t range_bytes = 0;  // 0: nothing was counted yet
    std::array<HeatCounts, kRanges> ranges{};
    // With ranges of `bytes`. Requires: a power of two, no less than range_bytes.
    void widen_to(std::uint64_t bytes);
    [[nodiscard]] HeatCounts total() const;
  };

  // Zeros, for this process.
  void start(std::int32_t pid);
  // `offset`: of a byte, from the beginning of the heap.
  void count(std::uint64_t offset, Heat kind, std::uint64_t by);
  [[nodiscard]] Snapshot read() const;
  // Over all ranges. Of what is counted meanwhile some is left out, and while ranges double more of it.
  [[nodiscard]] std::uint64_t sum(Heat kind) const;
  // Grows when the ranges double; not whole while they do.
  [[nodiscard]] std::uint32_t version() const { return version_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_whole() const { return version() % 2 == 0; }

 private:
  struct alignas(64) Range {
    std::array<std::atomic<std::uint64_t>, kHeatKinds> counts;
  };
  [[nodiscard]] std::size_t range_of(std::uint64_t offset) const;
  void widen(std::uint64_t offset);
  [[nodiscard]] Snapshot copy() const;

  std::atomic<std::uint32_t> version_;  // odd while the ranges double
  std::atomic<std::uint32_t> shift_;    // log2 of a range's bytes; 0 before the first count
  std::atomic<std::int32_t> pid_;
  std::array<Range, kRanges> ranges_;
};

}  // namespace farheap::base
