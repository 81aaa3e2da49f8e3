// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `farheap run` says when the program has ended: what happened, and the next command to type.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run_sample.hpp"

namespace farheap::tool {

struct RunSummary {
  std::vector<std::string> command;
  std::string store;
  bool ended = true;  // false: a recording that was cut off
  int exit_status = 0;
  int signal = 0;
  double seconds = 0;
  std::uint64_t budget_bytes = 0;
  std::uint64_t peak_bytes = 0;

  std::uint64_t processes = 0;
  std::uint64_t failed_starts = 0;
  std::uint64_t paging_processes = 0;
  std::uint64_t faults = 0;
  std::uint64_t faults_fresh = 0;
  std::uint64_t faults_probation = 0;
  std::uint64_t faults_store = 0;
  std::uint64_t faults_waited = 0;
  std::uint64_t guard_fetches = 0;
  std::uint64_t faults_packed = 0;
  std::uint64_t touches_expected = 0, touches_unexpected = 0;
  std::uint64_t orders_given_up = 0, orders_too_dear = 0;
  std::uint64_t plans_met = 0;  // processes that have used what their plan speaks of
  std::uint64_t region_bytes = 0, region_spare_bytes = 0;
  std::uint64_t order_bytes_read = 0, order_bytes_expected = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_read_ahead = 0;
  std::uint64_t pages_dropped_clean = 0;
  double stall_seconds = 0;
  double stall_no_room_seconds = 0;
  std::uint64_t store_full_waits = 0;
  std::uint64_t used_again_bytes = 0;  // 0: not known

  std::string loaded;  // the program that `command` has the C library's loader load; empty: that is no loader
  std::string doubt;   // why the figures cannot be right; empty: they can
};

inline constexpr char kCountersFell[] = "counts that only grow fell";

// What a run can have used at most.
struct Machine {
  std::uint64_t memory_bytes = UINT64_MAX;
  std::uint64_t processors = 8192;
  [[nodiscard]] static Machine here();
};

// Why the counters of a run cannot be right, as "18.0 EiB were read in 0.2 s"; empty if they can. Any process of the
// run can write anything to them, also who has become another user.
[[nodiscard]] std::string doubt_of(const RunSummary& summary, const Machine& machine);

// Takes the counters of a run over.
void add_counters(RunSummary& summary, const CounterValues& counters);

// How much of its heap a run with one paging process used again after it had been put aside: the ranges that 99 % of
// these uses were in. It is an upper bound, in steps of a range. 0: not known, as for several processes, which share,
// and where a step says nothing beside the budget (a heap that lies scattered over many addresses has wide ranges).
// `whole`: of all the run's time.
[[nodiscard]] std::uint64_t used_again(const Sample& whole, std::uint64_t budget_bytes);

// The program ended before its first line: the runtime could not come up, and said why.
[[nodiscard]] bool did_not_start(const RunSummary& summary);
// Lines without prefix, for people.
[[nodiscard]] std::vector<std::string> report_lines(const RunSummary& summary);
// One JSON object in one line. Figures that cannot be right are null.
[[nodiscard]] std::string report_json(const RunSummary& summary);
// The next command and why; empty when the runtime never came up.
[[nodiscard]] std::string next_step(const RunSummary& summary);

}  // namespace farheap::tool
