// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which slots and groups each process of a forked family refers to, in memory that all of them share: so that the
// living can take back what a dead one held, whether it ended, was killed, or became another program.
//
// A process is known to live by a record lock (fcntl) on a byte of its own: the kernel lets go of it when the last of
// the process's threads has gone, and at exec, because the descriptor is closed then. Forked children do not inherit
// it. A place that was made for a child that has not come yet (it may never) is left alone for a minute.
//
// What is noted is never more than what is counted (SlotTable): a reference is counted before it is noted, and is
// no longer noted when it is given back. So a process killed in between leaves a slot taken, never one that is free too
// early. The same for slots that were being written when it ended: a write that was on its way may still arrive, and
// they are left alone for a minute, too.
//
// Thread-safety: note(), forget() and the like: any thread. The rest: one thread at a time in each process.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "os/mapping.hpp"
#include "segment/slot_table.hpp"

namespace farheap::segment {

class Family {
 public:
  using Member = std::uint32_t;
  static constexpr Member kMembers = 128;
  // More than that live at once: nobody knows what the others hold, and it is free when the family has ended.
  static constexpr Member kUnknown = kMembers;

  // This process is the first member.
  [[nodiscard]] static Result<std::unique_ptr<Family>> make(std::uint64_t slots);
  // Of a process that shares no slots with its children: nothing is noted, and nobody is expected or dead.
  [[nodiscard]] static std::unique_ptr<Family> none() { return std::unique_ptr<Family>(new Family); }
  ~Family();
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  [[nodiscard]] Member self() const { return self_; }
  // A place for a child that is about to be forked; kUnknown if there is none. Until arrive() or give_up_child().
  [[nodiscard]] Member expect_child();
  [[nodiscard]] Member child() const { return child_; }
  void give_up_child();
  // In the child. Stops the process if it comes so late that others took it for dead.
  void arrive();

  void note(Member member, Slot slot) { set(held_, member, slot); }
  void forget(Member member, Slot slot) { clear(held_, member, slot); }
  void note_group(Member member, SlotGroup group);
  void forget_group(Member member, SlotGroup group) { clear(groups_, member, group); }
  [[nodiscard]] bool holds_any_of(Member member, SlotGroup group) const { return any_of(held_, member, group); }
  // Around a write of this process to the store.
  void begin_write(Slot slot) { set(written_, self_, slot); }
  void end_write(Slot slot) { clear(written_, self_, slot); }

  // A member that has ended and whose slots may be taken back; this process's to deal with until bury(). kUnknown if
  // there is none.
  [[nodiscard]] Member find_dead();
  // Done with it; if something was being written when it ended, that is found again in a minute.
  void bury(Member member);
  // Calls visit(slot) for all that the member holds and was not being written; visit may forget it.
  template <class Visit>
  void each_slot(Member member, Visit visit) const {
    each_group(member, [&](SlotGroup group) {
      for (std::uint64_t i = 0; i < kGroupWords; ++i) {
        const std::uint64_t word = group * kGroupWords + i;
        each_bit(held_.of(member, word).load() & ~written_.of(member, word).load(), word * 64, visit);
      }
    });
  }
  template <class Visit>
  void each_group(Member member, Visit visit) const {
    for (std::uint64_t word = 0; word * 64 < places_[member].groups_end.load(); ++word) {
      each_bit(groups_.of(member, word).load(), word * 64, visit);
    }
  }

  // How long a child may take to come, and a write to arrive whose process has ended. For tests.
  void set_patience_ms(std::uint64_t milliseconds) { patience_ms_ = milliseconds; }

 private:
  static constexpr std::uint64_t kGroupWords = kGroupSlots / 64;
  // kClaimed: taken, but its time is not set yet. A parent that is killed then leaves the place taken for ever.
  enum State : std::uint32_t { kFree, kClaimed, kExpected, kAlive, kLastWrites };
  struct Place {
    std::atomic<std::uint32_t> state;
    std::atomic<std::uint64_t> since_ms;    // kExpected, kLastWrites: by the system's monotonic clock
    std::atomic<std::uint64_t> groups_end;  // none was noted from here on
  };
  struct Bits {
    os::ReservedArray<std::atomic<std::uint64_t>> words;
    std::uint64_t words_of_each = 0;
    [[nodiscard]] std::atomic<std::uint64_t>& of(Member member, std::uint64_t word) const {
      return words[member * words_of_each + word];
    }
  };
  Family() = default;
  [[nodiscard]] static Result<Bits> make_bits(std::uint64_t count);
  static void set(Bits& bits, Member member, std::uint64_t number) {
    if (member != kUnknown) bits.of(member, number / 64).fetch_or(std::uint64_t{1} << number % 64);
  }
  static void clear(Bits& bits, Member member, std::uint64_t number) {
    if (member != kUnknown) bits.of(member, number / 64).fetch_and(~(std::uint64_t{1} << number % 64));
  }
  template <class Visit>
  static void each_bit(std::uint64_t word, std::uint64_t first, Visit visit) {
    for (; word != 0; word &= word - 1) visit(static_cast<std::uint32_t>(first + std::countr_zero(word)));
  }
  [[nodiscard]] static bool any_of(const Bits& bits, Member member, SlotGroup group);
  [[nodiscard]] bool take_place(Member member, State state);
  [[nodiscard]] bool is_in_time(Member member) const;
  [[nodiscard]] bool is_dead(Member member);
  [[nodiscard]] bool lock_byte(Member member) const;
  void unlock_byte(Member member) const;
  void empty(Member member);

  Member self_ = kUnknown;
  Member child_ = kUnknown;
  std::uint64_t child_since_ms_ = 0;
  int file_ = -1;  // nothing is in it: only its locks are used
  std::uint64_t patience_ms_ = 60'000;
  os::ReservedArray<Place> places_;
  os::ReservedArray<std::atomic<Member>> places_end_;  // one, shared: no place was ever taken from here on
  Bits held_, written_, groups_;
};

}  // namespace farheap::segment
