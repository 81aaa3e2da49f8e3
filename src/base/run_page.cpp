// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/run_page.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/raise_to.hpp"

namespace farheap::base {

namespace {

// To come to life a child copies page tables and waits for a processor.
constexpr std::int64_t kBirthNs = 500'000'000;

// The tool looks a hundred times a second.
constexpr std::int64_t kLookHoldsNs = 200'000'000;

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

std::uint32_t own_pid_namespace() {
  struct stat status{};
  return stat("/proc/self/ns/pid", &status) == 0 ? static_cast<std::uint32_t>(status.st_ino) : 0;
}

bool is_no_process(std::int32_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

// Of an open file, not of a process (F_OFD_...): closing another descriptor of the same file does not end it.
struct flock lock_of(std::size_t slot, short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(slot);
  lock.l_len = 1;
  return lock;
}

// What was seen is put in the place of the holder unless another was faster.
bool exchange(RunSlot& slot, SlotHolder seen, SlotHolder holder) {
  return slot.holder.compare_exchange_strong(seen, holder);
}

void clear(RunSlot& slot) {
  slot.promised_bytes.store(0);
  slot.inherited_bytes.store(0);
  slot.watched.store(0);
  slot.need.store(RoomNeed::kNone);
  slot.unrest.store(Unrest::kWorks);
  slot.unused_bytes.store(0);
  slot.born_by_ns.store(0);
}

}  // namespace

// ---- who lives

bool RunPage::is_in_own_namespace(const RunSlot& slot) const {
  return slot.holder.load(std::memory_order_relaxed).pid_namespace() == pid_namespace;
}

// Nobody's own locks are told to it.
bool RunPage::is_locked_by_another(std::size_t slot) const {
  struct flock lock = lock_of(slot, F_WRLCK);
  return syscall(SYS_fcntl, locks, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

// The parent of a child that is not there yet. It has a slot while it lives.
bool RunPage::is_here(SlotHolder parent) const {
  if (parent.pid() <= 0) return false;  // the smallest number is its own negative
  for (const auto& slot : slots) {
    const SlotHolder seen = slot.holder.load();
    if (seen.is_same_process(parent)) return !is_gone(slot, seen);
  }
  return parent.pid_namespace() == pid_namespace && !is_no_process(parent.pid());  // the last slot is shared
}

bool RunPage::never_came(const RunSlot& slot, SlotHolder unborn) const {
  const std::int64_t by = slot.born_by_ns.load();
  return by != 0 ? monotonic_ns() > by : !is_here({-unborn.pid(), unborn.pid_namespace()});
}

bool RunPage::is_gone(const RunSlot& slot) const { return is_gone(slot, slot.holder.load()); }

// Of the holder that was seen: the slot may be free a moment later, and then kept for another child of the same parent.
bool RunPage::is_gone(const RunSlot& slot, SlotHolder holder) const {
  if (holder.pid() == 0) return true;
  if (holder.pid() < 0) return never_came(slot, holder);
  if (holder.is_same_process(self)) return false;
  if (holder.is_locked() && locks >= 0) return !is_locked_by_another(number_of(slot));
  return holder.pid_namespace() == pid_namespace && is_no_process(holder.pid());
}

void RunPage::lock(RunSlot& slot, SlotHolder holder) {
  struct flock lock = lock_of(number_of(slot), F_WRLCK);
  if (locks < 0 || syscall(SYS_fcntl, locks, F_OFD_SETLK, &lock) != 0) return;
  exchange(slot, holder, holder.locked());
}

// A forked child has the parent's open file, with the parent's locks: its own takes the same number, which may be
// known elsewhere as the runtime's.
void RunPage::renew_locks() {
  pid_namespace = own_pid_namespace();
  if (locks < 0) return;
  char path[32];
  std::snprintf(path, sizeof path, "/proc/thread-self/fd/%d", locks);
  const int own = open(path, O_RDWR | O_CLOEXEC);
  if (own >= 0 && syscall(SYS_dup3, own, locks, O_CLOEXEC) < 0) syscall(SYS_close, locks), locks = -1;
  if (own < 0) syscall(SYS_close, locks), locks = -1;
  if (own >= 0) syscall(SYS_close, own);
}

// ---- slots

RunSlot& RunPage::take_free_slot(SlotHolder holder) {
  for (auto& slot : slots) {
    const SlotHolder seen = slot.holder.load();
    if (!is_gone(slot, seen)) continue;
    if (seen.pid() < 0) slot.born_by_ns.store(0);  // or it would seem to be over for the next child, too
    if (!exchange(slot, seen, holder)) continue;
    slot.bytes.store(0);
    clear(slot);
    return slot;
  }
  return slots[kSlots - 1];
}

RunSlot& RunPage::claim(std::int32_t pid) {
  if (pid_namespace == 0) pid_namespace = own_pid_namespace();
  const SlotHolder holder(pid, pid_namespace);
  if (pid == getpid()) self = holder;
  for (auto& slot : slots) {
    const SlotHolder seen = slot.holder.load();
    if (!seen.is_same_process(holder)) continue;
    // The lock of a process that executes another program goes with the descriptor.
    if (seen.is_locked() && locks >= 0 && is_locked_by_another(number_of(slot))) continue;
    if (!exchange(slot, seen, holder)) continue;
    clear(slot);
    if (pid == getpid()) lock(slot, holder);
    return slot;
  }
  RunSlot& slot = take_free_slot(holder);
  if (pid == getpid()) lock(slot, holder);
  return slot;
}

RunSlot& RunPage::claim_for_child(std::int32_t parent, std::uint64_t promised_bytes, std::uint64_t inherited_bytes) {
  const SlotHolder unborn(-parent, pid_namespace);
  RunSlot& slot = take_free_slot(unborn);
  if (slot.holder.load().is_same_process(unborn)) {
    slot.promised_bytes.store(promised_bytes);
    slot.inherited_bytes.store(inherited_bytes);
  }
  return slot;
}

void RunPage::forked(RunSlot& expected, std::int32_t parent) {
  expected.born_by_ns.store(monotonic_ns() + kBirthNs);
  const bool waits = expected.holder.load().is_same_process({-parent, pid_namespace});
  if (!waits) expected.born_by_ns.store(0);  // it has come already
}

RunSlot& RunPage::be_born(RunSlot& expected, std::int32_t parent, std::int32_t pid) {
  const SlotHolder unborn(-parent, pid_namespace);
  if (pid == getpid()) renew_locks();
  const SlotHolder holder(pid, pid_namespace);
  if (pid == getpid()) self = holder;
  const bool in_time = exchange(expected, unborn, holder);
  if (in_time) expected.born_by_ns.store(0);
  RunSlot& slot = in_time ? expected : take_free_slot(holder);
  if (pid == getpid()) lock(slot, holder);
  return slot;
}

void RunPage::release(RunSlot& slot) {
  struct flock unlock = lock_of(number_of(slot), F_UNLCK);
  if (locks >= 0) syscall(SYS_fcntl, locks, F_OFD_SETLK, &unlock);
  slot.bytes.store(0);
  slot.holder.store(SlotHolder());
}

// ---- sums

std::uint64_t RunPage::total_bytes() {
  std::uint64_t total = 0;
  for (auto& slot : slots) {
    const SlotHolder holder = slot.holder.load(std::memory_order_relaxed);
    if (holder.pid() == 0) continue;
    const std::uint64_t bytes = slot.bytes.load(std::memory_order_relaxed);
    if (bytes != 0 && holder.pid() > 0 && is_gone(slot, holder)) {
      if (exchange(slot, holder, SlotHolder())) slot.bytes.store(0);
      continue;
    }
    total += bytes;
  }
  raise_peak(total);
  return total;
}

RunPage::Others RunPage::others(const RunSlot& own) {
  Others sum;
  std::uint64_t largest = 0;
  const std::int64_t looked = looked_ns.load(std::memory_order_relaxed);  // any number
  const std::int64_t now = monotonic_ns();
  const bool is_fresh = looked <= now && looked > now - kLookHoldsNs;
  for (auto& slot : slots) {
    const SlotHolder holder = slot.holder.load(std::memory_order_relaxed);
    if (holder.pid() == 0 || &slot == &own) continue;
    if (holder.pid() < 0 && never_came(slot, holder)) {
      slot.born_by_ns.store(0);
      exchange(slot, holder, SlotHolder());
      continue;
    }
    const std::uint64_t promised = std::max(slot.bytes.load(), slot.promised_bytes.load());
    if (promised == 0 || is_gone(slot, holder)) continue;
    const bool pages = slot.watched.load(std::memory_order_relaxed) != 0;
    sum.promised_bytes += promised;
    sum.paging += pages ? 1 : 0;
    if (!pages && is_fresh) {
      const std::uint64_t unused = std::min(slot.unused_bytes.load(std::memory_order_relaxed), promised);
      sum.lent_bytes += unused;
      largest = std::max(largest, unused);
    }
    if (pages || slot.inherited_bytes.load() != 0) sum.most_to_give = std::max(sum.most_to_give, promised);
    sum.need = std::max(sum.need, slot.need.load(std::memory_order_relaxed));
    const Unrest unrest = slot.unrest.load(std::memory_order_relaxed);
    sum.thrashing += unrest == Unrest::kThrashes ? 1 : 0;
    if (!pages || unrest == Unrest::kRests) continue;
    ++sum.awake;
    sum.awake_bytes += promised;
  }
  sum.lent_bytes -= largest;
  return sum;
}

void RunPage::raise_peak(std::uint64_t total) { raise_to(counters.peak_bytes, total); }

HeatTable& RunPage::start_heat(RunSlot& slot) {
  auto* const table = reinterpret_cast<HeatTable*>(heat_tables[number_of(slot)]);  // zeros are a table
  table->start(slot.pid());
  slot.heats.fetch_add(1, std::memory_order_release);
  return *table;
}

const HeatTable& RunPage::heat(std::size_t slot) const {
  return *reinterpret_cast<const HeatTable*>(heat_tables[slot]);
}

}  // namespace farheap::base
