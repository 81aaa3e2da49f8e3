// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/tree_budget.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/units.hpp"
#include "os/run_memory.hpp"

namespace farheap::pager {

namespace {
// The kernel's counters lag by some pages a processor, and threads of the program grow their stacks between looks.
std::uint64_t slack_bytes(std::uint64_t budget) { return std::max(budget / 400, base::kMiB / 2); }
// However greedy the others: with less than this a process makes no headway.
constexpr std::uint64_t kLeastPages = 1024;
// A process that hardly waits for pages keeps at least this.
constexpr std::uint64_t kLeastContentPages = 256;
// By how much a limit rises beyond what is asked for, and sinks when others are short of room.
std::uint64_t step_bytes(std::uint64_t budget) { return std::clamp(budget / 128, base::kMiB / 4, 16 * base::kMiB); }
constexpr std::chrono::milliseconds kYieldEvery{5};
// A calm process gives more slowly: a few steps in a window of Pressure, so that it sees what it lacks in time.
constexpr std::chrono::milliseconds kCalmYieldEvery{50};
// A child that has gone, or become another program, in less time than this shared its parent's memory in passing.
constexpr std::chrono::milliseconds kYouth{20};

std::uint64_t less(std::uint64_t from, std::uint64_t taken) { return from > taken ? from - taken : 0; }
}  // namespace

TreeBudget::TreeBudget(base::RunPage& run_page)
    : run_page_(run_page), slot_(&run_page.claim(getpid())), pid_(getpid()), born_(Clock::now() - kYouth) {}

bool TreeBudget::fits_twice(std::uint64_t handed_out_bytes) {
  const std::uint64_t own = memory_.anonymous_bytes();
  const std::uint64_t wanted = std::max(own, beside_bytes_ + handed_out_bytes);
  slot_->promised_bytes.store(wanted);
  const std::uint64_t budget = run_page_.budget_bytes.load(std::memory_order_relaxed);
  return run_page_.others(*slot_).promised_bytes + 2 * wanted + slack_bytes(budget) <= budget;
}

bool TreeBudget::next_child_may_stay() const {
  if (last_child_ == nullptr || last_child_->watched.load() != 0) return true;
  const bool is_program = last_child_->inherited_bytes.load() == 0;
  const std::int32_t pid = last_child_->pid();
  if (pid < 0) return true;
  if (is_program || run_page_.is_gone(*last_child_)) return false;
  return !run_page_.is_in_own_namespace(*last_child_) || os::ProcessMemory::use_of(pid).anonymous_bytes != 0;
}

void TreeBudget::expect_child() {
  const std::uint64_t own = memory_.anonymous_bytes();
  last_child_ = &run_page_.claim_for_child(pid_, std::max(own, slot_->promised_bytes.load()), own);
}

void TreeBudget::forked() { run_page_.forked(*last_child_, pid_); }

bool TreeBudget::others_give_way(std::uint64_t& held_by_others) {
  const std::uint64_t budget = run_page_.budget_bytes.load(std::memory_order_relaxed);
  const auto others = run_page_.others(*slot_);
  held_by_others = others.promised_bytes - others.lent_bytes;
  const bool fits = others.promised_bytes - others.lent_bytes + 2 * slot_->promised_bytes.load() <= budget;
  return !fits && others.most_to_give > budget / (others.paging + 2);
}

void TreeBudget::renew_in_child() {
  memory_.reopen();
  const std::uint64_t promised = last_child_->promised_bytes.load();
  slot_ = &run_page_.be_born(*last_child_, pid_, getpid());
  slot_->promised_bytes.store(promised);
  slot_->inherited_bytes.store(os::ProcessMemory::use_of(getpid()).anonymous_bytes, std::memory_order_relaxed);
  last_child_ = nullptr;
  heat_ = nullptr;
  turn_ = Turn::kNone;
  pid_ = getpid();
  room_for_child_.store(false);
  born_ = Clock::now();
}

void TreeBudget::note_use() {
  std::uint64_t total = 0;
  for (auto& slot : run_page_.slots) {
    const std::uint64_t held = os::held_bytes(run_page_, slot);
    // For those to whom this process's number means nothing.
    if (&slot == slot_ && held != 0) slot.bytes.store(held, std::memory_order_relaxed);
    total += held;
  }
  run_page_.raise_peak(total);
}

void TreeBudget::note_own_use(std::uint64_t own_bytes) {
  const bool watched = slot_->watched.load(std::memory_order_relaxed) != 0 || Clock::now() - born_ >= kYouth;
  slot_->watched.store(watched ? 1 : 0, std::memory_order_relaxed);
  slot_->bytes.store(watched ? own_bytes : os::held_bytes(run_page_, *slot_), std::memory_order_relaxed);
  (void)run_page_.total_bytes();
}

base::HeatTable& TreeBudget::start_heat() {
  base::HeatTable& table = run_page_.start_heat(*slot_);
  heat_ = &table;
  pressure_ = {};
  return table;
}

void TreeBudget::look_at_faults(Clock::time_point now) {
  if (heat_ == nullptr || !pressure_.is_due(now)) return;
  Pressure::Counts counts;
  for (const auto kind : {base::Heat::kFresh, base::Heat::kProbation, base::Heat::kStore, base::Heat::kWaited}) {
    counts.faults += heat_->sum(kind);
  }
  counts.waited = std::chrono::nanoseconds(heat_->sum(base::Heat::kStallNs));
  counts.ran = base::kernel_time(CLOCK_PROCESS_CPUTIME_ID);
  pressure_.look(now, counts);
  // A turn gives a process memory so that it faults no more. Then it rests only if it does not compute either.
  const bool rests = pressure_.rests(now) && (turn_ != Turn::kOwn || pressure_.idles());
  slot_->unrest.store(rests                  ? base::Unrest::kRests
                      : pressure_.thrashes() ? base::Unrest::kThrashes
                      : pressure_.is_calm()  ? base::Unrest::kIsCalm
                                             : base::Unrest::kWorks);
}

// What plain programs have, and what those that rest still have, is nobody's to share.
std::uint64_t TreeBudget::share(const base::RunPage::Others& others, std::uint64_t budget, Clock::time_point now) {
  const std::uint64_t room =
      less(budget, less(others.promised_bytes, others.awake_bytes + others.lent_bytes) + slack_bytes(budget));
  turn_ = take_turns(run_page_, *slot_, others.thrashing, now);
  switch (turn_) {
    case Turn::kOwn: return room;
    case Turn::kAnothers: return 0;
    case Turn::kNone: break;
  }
  return room / (others.awake + 1);
}

// A process is calm in its own turn because it has what it needs; another's turn would go no better.
bool TreeBudget::is_content(const base::RunPage::Others& others) const {
  const auto unrest = slot_->unrest.load(std::memory_order_relaxed);
  return unrest == base::Unrest::kRests ||
         (unrest == base::Unrest::kIsCalm && others.thrashing != 0 && turn_ != Turn::kOwn);
}

// Who rests gives of whatever it has, and who has more than its share of that: in steps, so that who wakes meanwhile,
// or meets what it wants again, has lost little. A fault ends the rest. Then it is one of those that want room, and as
// long as it has less than its share, others give it. Who is calm gives to those that thrash, until it has to wait,
// too.
std::uint64_t TreeBudget::share_limit(const base::RunPage::Others& others, std::uint64_t budget,
                                      std::uint64_t held_bytes, std::uint64_t share, Clock::time_point now) {
  const bool has_too_much = others.need == base::RoomNeed::kShare && held_bytes > share;
  const bool gives = is_content(others) ? others.need != base::RoomNeed::kNone : has_too_much;
  if (!gives) return budget;
  if (now < next_yield_) return held_bytes;
  const bool rests = slot_->unrest.load(std::memory_order_relaxed) == base::Unrest::kRests;
  next_yield_ = now + (rests || has_too_much ? kYieldEvery : kCalmYieldEvery);
  return less(held_bytes, step_bytes(budget));
}

std::uint64_t TreeBudget::page_limit(std::uint64_t resident_pages, std::uint64_t coming_pages) {
  const std::uint64_t own = memory_.anonymous_bytes();
  note_own_use(own);
  const auto now = Clock::now();
  look_at_faults(now);
  const std::uint64_t budget = run_page_.budget_bytes.load(std::memory_order_relaxed);
  const std::uint64_t held = std::max(own, resident_pages * base::kPageBytes);
  const std::uint64_t beside = held - resident_pages * base::kPageBytes;
  const std::uint64_t wanted = held + coming_pages * base::kPageBytes + step_bytes(budget);
  // Before the look at the others: of two at once, one sees the other.
  slot_->promised_bytes.store(wanted);
  const auto others = run_page_.others(*slot_);
  std::uint64_t left = less(budget, others.promised_bytes - others.lent_bytes + slack_bytes(budget));
  if (room_for_child_.load()) left /= 2;
  const std::uint64_t own_share = share(others, budget, now);
  const bool hardly_waits = is_content(others);
  slot_->need.store(hardly_waits || left >= wanted ? base::RoomNeed::kNone
                    : left < own_share             ? base::RoomNeed::kShare
                                                   : base::RoomNeed::kMore,
                    std::memory_order_relaxed);
  const std::uint64_t limit = std::min({wanted, left, share_limit(others, budget, held, own_share, now)});
  const std::uint64_t least = hardly_waits ? kLeastContentPages : kLeastPages;
  const std::uint64_t pages = std::max(less(limit, beside) / base::kPageBytes, least);
  slot_->promised_bytes.store(std::max(held, beside + pages * base::kPageBytes));
  return pages;
}

bool TreeBudget::promise(std::uint64_t handed_out_bytes) {
  const std::uint64_t own = memory_.anonymous_bytes();
  if (own > handed_out_bytes) beside_bytes_ = std::max(beside_bytes_, own - handed_out_bytes);
  const std::uint64_t wanted = beside_bytes_ + handed_out_bytes;
  const bool shares = slot_->inherited_bytes.load(std::memory_order_relaxed) != 0;
  const std::uint64_t held = shares ? os::held_bytes(run_page_, *slot_) : 0;
  slot_->bytes.store(held != 0 ? held : own, std::memory_order_relaxed);
  slot_->promised_bytes.store(wanted);  // before the look at the others: of two at once, one sees the other
  const std::uint64_t budget = run_page_.budget_bytes.load(std::memory_order_relaxed);
  return run_page_.others(*slot_).promised_bytes + wanted + slack_bytes(budget) <= budget;
}

}  // namespace farheap::pager
