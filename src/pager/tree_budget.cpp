// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/tree_budget.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/units.hpp"
#include "os/run_memory.hpp"

namespace farheap::pager {

namespace {
// The kernel's counters lag by some pages a processor, and threads of the program grow their stacks between looks.
std::uint64_t slack_bytes(std::uint64_t budget) { return std::max(budget / 200, 1 * base::kMiB); }
// However greedy the others: with less than this a process makes no headway.
constexpr std::uint64_t kLeastPages = 1024;
}  // namespace

TreeBudget::TreeBudget(base::RunPage& run_page) : run_page_(run_page), slot_(&run_page.claim(getpid())) {}

void TreeBudget::renew_in_child() {
  memory_.reopen();
  slot_ = &run_page_.claim(getpid());
  slot_->inherited_bytes.store(os::ProcessMemory::use_of(getpid()).anonymous_bytes, std::memory_order_relaxed);
}

void TreeBudget::note_use() {
  std::uint64_t total = 0;
  for (const auto& slot : run_page_.slots) total += os::held_bytes(slot);
  run_page_.raise_peak(total);
}

std::uint64_t TreeBudget::others_bytes(std::uint64_t own_bytes) {
  slot_->bytes.store(own_bytes, std::memory_order_relaxed);
  const std::uint64_t total = run_page_.total_bytes();
  return total > own_bytes ? total - own_bytes : 0;
}

std::uint64_t TreeBudget::shared_discount(std::uint64_t own_bytes) {
  if (!shares_.load(std::memory_order_relaxed)) return 0;
  const auto now = std::chrono::steady_clock::now();
  if (now >= next_look_) {
    const std::uint64_t proportional = memory_.proportional_anonymous_bytes();
    discount_ = own_bytes > proportional ? own_bytes - proportional : 0;
    // A look walks the page tables: some ms for 100 MiB. It may take a tenth of the time.
    const auto after = std::chrono::steady_clock::now();
    next_look_ =
        after + std::max<std::chrono::steady_clock::duration>(10 * (after - now), std::chrono::milliseconds(10));
    if (discount_ < own_bytes / 64) shares_.store(false, std::memory_order_relaxed);
  }
  return std::min(discount_, own_bytes);
}

std::uint64_t TreeBudget::page_limit(std::uint64_t resident_pages) {
  slot_->watched.store(true, std::memory_order_relaxed);
  slot_->promised_bytes.store(0, std::memory_order_relaxed);
  const std::uint64_t own = memory_.anonymous_bytes();
  const std::uint64_t discount = shared_discount(own);
  const std::uint64_t resident = resident_pages * base::kPageBytes;
  const std::uint64_t budget = run_page_.budget_bytes.load(std::memory_order_relaxed) + discount;
  const std::uint64_t beside = own > resident ? own - resident : 0;
  const std::uint64_t taken = others_bytes(own - discount) + beside + slack_bytes(budget);
  const std::uint64_t limit = budget > taken ? (budget - taken) / base::kPageBytes : 0;
  return std::max(limit, kLeastPages);
}

bool TreeBudget::promise(std::uint64_t handed_out_bytes) {
  const std::uint64_t own = memory_.anonymous_bytes();
  if (own > handed_out_bytes) beside_bytes_ = std::max(beside_bytes_, own - handed_out_bytes);
  const std::uint64_t wanted = beside_bytes_ + handed_out_bytes;
  slot_->bytes.store(own, std::memory_order_relaxed);
  slot_->promised_bytes.store(wanted);  // before the look at the others: of two at once, one sees the other
  const std::uint64_t budget = run_page_.budget_bytes.load(std::memory_order_relaxed);
  return run_page_.promised_to_others(*slot_) + wanted + slack_bytes(budget) <= budget;
}

}  // namespace farheap::pager
