// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The budget of a run, shared by its process tree through the run page. This process's pager may keep what the
// budget leaves after the anonymous memory of the other processes and after what this one has beside its pages
// (stacks, static data, the runtime's tables and buffers).
#pragma once

#include <atomic>

#include "base/run_page.hpp"
#include "os/process_memory.hpp"
#include "pager/budget.hpp"

namespace farheap::pager {

class TreeBudget final : public Budget {
 public:
  // The run page outlives the budget. Registers this process there.
  explicit TreeBudget(base::RunPage& run_page);
  void renew_in_child();

  [[nodiscard]] std::uint64_t page_limit(std::uint64_t resident_pages) override;

  // Before paging starts: how much this process could still take if it used all it asked for.
  // `handed_out_bytes` of addresses may be touched at any time.
  [[nodiscard]] std::uint64_t room_for_plain_memory(std::uint64_t handed_out_bytes);

 private:
  [[nodiscard]] std::uint64_t others_bytes(std::uint64_t own_bytes);

  base::RunPage& run_page_;
  base::RunSlot* slot_;
  os::ProcessMemory memory_;
  std::uint64_t beside_bytes_ = 0;
};

}  // namespace farheap::pager
