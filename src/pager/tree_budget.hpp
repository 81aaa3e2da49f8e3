// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The budget of a run, shared by its process tree through the run page. This process's pager may keep what the
// budget leaves after the anonymous memory of the other processes and after what this one has beside its pages
// (stacks, static data, the runtime's tables and buffers).
#pragma once

#include <atomic>
#include <chrono>

#include "base/clock.hpp"
#include "base/run_page.hpp"
#include "os/process_memory.hpp"
#include "pager/budget.hpp"
#include "pager/pressure.hpp"
#include "pager/turns.hpp"

namespace farheap::pager {

class TreeBudget final : public Budget {
 public:
  // The run page outlives the budget. Registers this process there.
  explicit TreeBudget(base::RunPage& run_page);
  // Where this process's faults are counted by range, from zero; anew in a forked child.
  [[nodiscard]] base::HeatTable& start_heat();

  // This process may have what is left of the budget: others hold the rest, or may come to hold it. Idle ones lend some
  // of theirs. The limit is not much more than what is held or coming: limits that rise in steps are never promised
  // twice. While others are short of room, a process loses some of its memory with time: of what it has beyond its
  // share, or of all if it rests, or is calm while others thrash. Calls exclude each other.
  [[nodiscard]] std::uint64_t page_limit(std::uint64_t resident_pages, std::uint64_t coming_pages) override;

  // Before paging starts: whether all that the processes of the run may touch without asking again fits the budget,
  // if this one has `handed_out_bytes` of addresses. They count as promised from now on: two processes that only looked
  // at what each other uses could both be given the same room.
  [[nodiscard]] bool promise(std::uint64_t handed_out_bytes);

  // ---- fork. What parent and child share counts in both, because either may write to all of it without asking.
  // Whether it still fits when this process, that does not page yet, has forked.
  [[nodiscard]] bool fits_twice(std::uint64_t handed_out_bytes);
  // False if the last child that was forked has gone already, as one does that becomes another program. What it
  // could write before is little, and not worth the room.
  [[nodiscard]] bool next_child_may_stay() const;
  // From now on page_limit() leaves room for a child that shares all that this process has.
  void make_room_for_child(bool on) { room_for_child_.store(on); }
  // With that, whether the child may still come to fit although it does not yet: others have more than would be their
  // share. `held_by_others` is to become less while it is waited for.
  [[nodiscard]] bool others_give_way(std::uint64_t& held_by_others);
  void expect_child();
  // In the parent, after the fork.
  void forked();
  // In the child, instead of being made.
  void renew_in_child();

  // Looks at all processes and takes what they hold into the run's peak: before memory is dropped and when a process
  // ends, because what was touched since the last call of the others would never be seen. Takes no lock and may be
  // called in a signal handler and between vfork() and exec(). About 10 us a process.
  void note_use();

 private:
  using Clock = base::Clock;
  void note_own_use(std::uint64_t own_bytes);
  void look_at_faults(Clock::time_point now);
  // What this process may claim from others that want room, too, and leaves to none.
  [[nodiscard]] std::uint64_t share(const base::RunPage::Others& others, std::uint64_t budget, Clock::time_point now);
  // Whether this process rests, or is calm while others thrash: then it asks for no room, and gives of what it has.
  [[nodiscard]] bool is_content(const base::RunPage::Others& others) const;
  // The most that others in need of room leave to this process.
  [[nodiscard]] std::uint64_t share_limit(const base::RunPage::Others& others, std::uint64_t budget,
                                          std::uint64_t held_bytes, std::uint64_t share, Clock::time_point now);

  base::RunPage& run_page_;
  base::RunSlot* slot_;
  os::ProcessMemory memory_;
  std::uint64_t beside_bytes_ = 0;
  const base::HeatTable* heat_ = nullptr;
  Pressure pressure_;
  Turn turn_ = Turn::kNone;  // when it was last looked at
  base::RunSlot* last_child_ = nullptr;
  std::int32_t pid_;
  std::atomic<bool> room_for_child_{false};
  Clock::time_point born_;
  Clock::time_point next_yield_{};
};

}  // namespace farheap::pager
