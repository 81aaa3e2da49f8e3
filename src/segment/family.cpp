// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/family.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "os/own_descriptors.hpp"

namespace farheap::segment {

namespace {

std::uint64_t now_ms() {
  const auto now = base::Clock::now().time_since_epoch();  // a machine that sleeps holds nobody up
  return static_cast<std::uint64_t>(std::chrono::floor<std::chrono::milliseconds>(now).count());
}

struct flock on_byte(Family::Member member, short kind) {
  struct flock lock{};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = member;
  lock.l_len = 1;
  return lock;
}

}  // namespace

Result<Family::Bits> Family::make_bits(std::uint64_t count) {
  Bits bits;
  bits.words_of_each = (count + 63) / 64;
  auto words = os::ReservedArray<std::atomic<std::uint64_t>>::make(kMembers * bits.words_of_each, true);
  if (!words) return fail(std::move(words.error()));
  bits.words = std::move(*words);
  return bits;
}

Result<std::unique_ptr<Family>> Family::make(std::uint64_t slots) {
  std::unique_ptr<Family> family(new Family);
  auto places = os::ReservedArray<Place>::make(kMembers, true);
  if (!places) return fail(std::move(places.error()));
  family->places_ = std::move(*places);
  auto end = os::ReservedArray<std::atomic<Member>>::make(1, true);
  if (!end) return fail(std::move(end.error()));
  family->places_end_ = std::move(*end);
  for (auto [bits, count] :
       {std::pair{&family->held_, slots}, {&family->written_, slots}, {&family->groups_, slots / kGroupSlots}}) {
    auto made = make_bits(count);
    if (!made) return fail(std::move(made.error()));
    *bits = std::move(*made);
  }
  const int file = memfd_create("farheap-family", MFD_CLOEXEC);
  if (file < 0) return fail(errno_error(errno, "cannot make a file for locks", "memfd_create"));
  family->file_ = os::keep_descriptor(file);
  family->self_ = 0;
  if (!family->take_place(0, kAlive) || !family->lock_byte(0)) {
    return fail(errno_error(errno, "cannot lock a byte", "memfd of a family"));
  }
  return family;
}

Family::~Family() {
  if (file_ >= 0 && self_ != kUnknown) empty(self_);
  os::release_descriptor(file_);
}

bool Family::take_place(Member member, State state) {
  std::atomic<Member>& end = places_end_[0];
  for (Member now = end.load(); now <= member && !end.compare_exchange_weak(now, member + 1);) {
  }
  std::uint32_t free = kFree;
  return places_[member].state.compare_exchange_strong(free, state);
}

bool Family::lock_byte(Member member) const {
  struct flock lock = on_byte(member, F_WRLCK);
  return fcntl(file_, F_SETLK, &lock) == 0;
}

void Family::unlock_byte(Member member) const {
  struct flock lock = on_byte(member, F_UNLCK);
  (void)fcntl(file_, F_SETLK, &lock);
}

void Family::empty(Member member) {
  places_[member].groups_end.store(0);
  places_[member].state.store(kFree);
}

Family::Member Family::expect_child() {
  child_ = file_ < 0 ? kUnknown : 0;
  while (child_ != kUnknown && !take_place(child_, kClaimed)) ++child_;
  if (child_ == kUnknown) return child_;
  places_[child_].since_ms.store(child_since_ms_ = now_ms());
  places_[child_].state.store(kExpected);
  return child_;
}

void Family::give_up_child() {
  if (child_ != kUnknown) empty(child_);
  child_ = kUnknown;
}

void Family::arrive() {
  self_ = child_;
  if (self_ == kUnknown) return;
  struct flock lock = on_byte(self_, F_WRLCK);
  while (fcntl(file_, F_SETLKW, &lock) != 0 && errno == EINTR) {
  }
  std::uint32_t expected = kExpected;
  Place& place = places_[self_];
  if (place.since_ms.load() != child_since_ms_ || !place.state.compare_exchange_strong(expected, kAlive)) {
    base::stop("a forked process was held up for so long that its pages were given to others");
  }
}

void Family::note_group(Member member, SlotGroup group) {
  if (member == kUnknown) return;
  auto& end = places_[member].groups_end;
  if (end.load() <= group) end.store(group + 1);
  set(groups_, member, group);
}

bool Family::any_of(const Bits& bits, Member member, SlotGroup group) {
  for (std::uint64_t i = 0; i < kGroupWords; ++i) {
    if (bits.of(member, group * kGroupWords + i).load() != 0) return true;
  }
  return false;
}

bool Family::is_in_time(Member member) const { return now_ms() < places_[member].since_ms.load() + patience_ms_; }

// Leaves the byte of a dead one locked.
bool Family::is_dead(Member member) {
  Place& place = places_[member];
  std::uint32_t state = place.state.load();
  if (state == kFree || state == kClaimed || member == self_) return false;
  if (state != kAlive && is_in_time(member)) return false;
  if (!lock_byte(member)) return false;
  // A late child finds that it is not expected any more; another of us may have buried it meanwhile, and the place may
  // be somebody else's now.
  const bool last_writes = state == kLastWrites;
  if ((state != kAlive && is_in_time(member)) || !place.state.compare_exchange_strong(state, kAlive)) {
    unlock_byte(member);
    return false;
  }
  if (last_writes) {
    each_group(member, [&](SlotGroup group) {
      for (std::uint64_t i = 0; i < kGroupWords; ++i) written_.of(member, group * kGroupWords + i).store(0);
    });
  }
  return true;
}

Family::Member Family::find_dead() {
  if (file_ < 0) return kUnknown;
  const Member end = places_end_[0].load();  // asked with each write: most families are one process
  for (Member member = 0; member < end; ++member) {
    if (is_dead(member)) return member;
  }
  return kUnknown;
}

void Family::bury(Member member) {
  bool writing = false;
  each_group(member, [&](SlotGroup group) { writing = writing || any_of(written_, member, group); });
  if (writing) {
    places_[member].since_ms.store(now_ms());
    places_[member].state.store(kLastWrites);
  } else {
    empty(member);
  }
  unlock_byte(member);
}

}  // namespace farheap::segment
