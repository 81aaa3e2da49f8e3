// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a run looks like at one moment: read from its run page and /proc, written and read as one line of JSON
// (docs/formats.md). `farheap top` shows samples, `farheap run --trace` records them, `farheap report` draws them.
//
// Thread-safety: one thread an object.
#pragma once

#include <cstdint>
#include <farheap/result.hpp>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/run_page.hpp"

namespace farheap::tool {

// The values of RunCounters at one moment.
struct CounterValues {
  std::uint64_t processes = 0;
  std::uint64_t paging_processes = 0;
  std::uint64_t faults = 0;
  std::uint64_t faults_fresh = 0;
  std::uint64_t faults_probation = 0;
  std::uint64_t faults_store = 0;
  std::uint64_t faults_waited = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_read_ahead = 0;
  std::uint64_t pages_dropped_clean = 0;
  std::uint64_t stall_ns = 0;
  std::uint64_t stall_no_room_ns = 0;
  std::uint64_t store_full_waits = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t failed_starts = 0;
  std::uint64_t guard_fetches = 0;
  std::uint64_t faults_packed = 0;
  std::uint64_t touches_expected = 0, touches_unexpected = 0;
  std::uint64_t orders_given_up = 0, orders_too_dear = 0, order_bytes_read = 0, order_bytes_expected = 0;
  std::uint64_t plans_met = 0;
  std::uint64_t region_bytes = 0, region_spare_bytes = 0;
  // They only grow.
  [[nodiscard]] bool not_below(const CounterValues& earlier) const;
};

[[nodiscard]] CounterValues counter_values(const base::RunCounters& counters);

struct ProcessSample {
  int pid = 0;
  std::string name;
  std::uint64_t resident_bytes = 0;
  bool paging = false;
  base::HeatCounts counts;  // since it began to page
};

inline constexpr std::uint64_t kMostOffset = std::uint64_t{1} << 57;  // of a range: no address space is larger

// A range of a process's heap, and what happened there since the sample before.
struct RangeSample {
  int pid = 0;
  std::uint64_t offset = 0;  // from the beginning of the heap
  std::uint64_t bytes = 0;
  base::HeatCounts counts;
};

struct Sample {
  double seconds = 0;  // since the run began
  std::uint64_t resident_bytes = 0;
  std::uint64_t budget_bytes = 0;
  std::uint64_t heap_address = 0;  // where the heap begins in every process; 0 before the first one is up
  CounterValues counters;
  bool counters_fell = false;  // in this run, so far: somebody has written over them, and they are as they were before
  std::vector<ProcessSample> processes;
  std::vector<RangeSample> ranges;  // only those where something happened
};

class Sampler {
 public:
  // The page outlives the sampler.
  explicit Sampler(const base::RunPage& page) : page_(page) {}
  // The ranges are of the time since the last call; of all time in the first.
  [[nodiscard]] Sample take();

 private:
  struct Seen {
    std::uint32_t heats = 0;
    base::HeatTable::Snapshot heat;
  };
  void add_ranges(Sample& sample, std::size_t slot, const base::HeatTable::Snapshot& now);
  const base::RunPage& page_;
  std::map<std::size_t, Seen> seen_;  // by slot
  CounterValues counters_;            // as they were last
  bool fell_ = false;
};

[[nodiscard]] nlohmann::ordered_json sample_json(const Sample& sample);
// [pid, offset, bytes, then the counts in the order of base::Heat]: there are many of them.
[[nodiscard]] nlohmann::ordered_json range_json(const RangeSample& range);
// kCorrupt, with what is wrong as its reason.
[[nodiscard]] Result<Sample> parse_sample(const nlohmann::json& object);

}  // namespace farheap::tool
