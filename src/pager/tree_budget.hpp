// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The budget of a run, shared by its process tree through the run page. This process's pager may keep what the
// budget leaves after the anonymous memory of the other processes and after what this one has beside its pages
// (stacks, static data, the runtime's tables and buffers).
#pragma once

#include <atomic>
#include <chrono>

#include "base/run_page.hpp"
#include "os/process_memory.hpp"
#include "pager/budget.hpp"

namespace farheap::pager {

class TreeBudget final : public Budget {
 public:
  // The run page outlives the budget. Registers this process there.
  explicit TreeBudget(base::RunPage& run_page);
  void renew_in_child();
  // Where this process's faults are counted by range, from zero; anew in a forked child.
  [[nodiscard]] base::HeatTable& start_heat() { return run_page_.start_heat(*slot_); }
  // A fork happened: pages are shared with a relative for a while, and must not be counted twice.
  void shares_memory() { shares_.store(true, std::memory_order_relaxed); }

  [[nodiscard]] std::uint64_t page_limit(std::uint64_t resident_pages) override;

  // Before paging starts: whether all that the processes of the run may touch without asking again fits the budget,
  // if this one has `handed_out_bytes` of addresses. They count as promised from now on: two processes that only looked
  // at what each other uses could both be given the same room.
  [[nodiscard]] bool promise(std::uint64_t handed_out_bytes);

  // Looks at all processes and takes what they hold into the run's peak: before memory is dropped and when a process
  // ends, because what was touched since the last call of the others would never be seen. Takes no lock and may be
  // called in a signal handler and between vfork() and exec(). About 10 us a process.
  void note_use();

 private:
  [[nodiscard]] std::uint64_t others_bytes(std::uint64_t own_bytes);

  // What a page shared by n processes counts less than a page in this one.
  [[nodiscard]] std::uint64_t shared_discount(std::uint64_t own_bytes);

  base::RunPage& run_page_;
  base::RunSlot* slot_;
  os::ProcessMemory memory_;
  std::uint64_t beside_bytes_ = 0;
  std::atomic<bool> shares_{false};
  std::uint64_t discount_ = 0;
  std::chrono::steady_clock::time_point next_look_{};
};

}  // namespace farheap::pager
