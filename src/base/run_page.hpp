// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The page of memory that all processes of one run share: the budget, who uses how much of it, and what
// happened. `farheap run` makes it (a memfd), every process of the run maps it, and `run` reads it at the end.
// A process that is killed leaves its slot behind; whoever sums up next sees that it is gone.
//
// Thread-safety: all members are atomics or constant once made.
#pragma once

#include <atomic>
#include <cstdint>
#include <farheap/result.hpp>
#include <memory>
#include <string>

#include "base/heat_table.hpp"
#include "base/pulse.hpp"

namespace farheap::base {

inline constexpr std::uint32_t kRunPageFormat = 9;
inline constexpr char kRunPageName[] = "farheap-run";           // of the memfd: `farheap top` finds runs by it
inline constexpr char kRunPageVariable[] = "FARHEAP_RUN_PAGE";  // a path that opens it: /proc/PID/fd/N

// How the runtime ends a process that cannot come up, and one that it cannot keep going (EX_OSERR, EX_IOERR).
inline constexpr int kStatusNotStarted = 71;
inline constexpr int kStatusNotKept = 74;

struct RunCounters {
  std::atomic<std::uint64_t> processes{0};         // in which the runtime came up (an exec counts again)
  std::atomic<std::uint64_t> paging_processes{0};  // ... and came so near the budget that pages left
  std::atomic<std::uint64_t> faults{0};            // all that handlers saw or guards found
  std::atomic<std::uint64_t> faults_fresh{0};      // first touches
  std::atomic<std::uint64_t> faults_probation{0};  // the page was out of view but still in memory
  std::atomic<std::uint64_t> faults_store{0};      // the page had to be read
  std::atomic<std::uint64_t> faults_waited{0};     // the page was on its way already (read-ahead)
  std::atomic<std::uint64_t> bytes_read{0};
  std::atomic<std::uint64_t> bytes_written{0};
  std::atomic<std::uint64_t> bytes_read_ahead{0};
  std::atomic<std::uint64_t> pages_dropped_clean{0};
  std::atomic<std::uint64_t> stall_ns{0};          // handler time from a fault's arrival until its page was there
  std::atomic<std::uint64_t> stall_no_room_ns{0};  // ... of which it waited for room in memory
  std::atomic<std::uint64_t> store_full_waits{0};
  std::atomic<std::uint64_t> peak_bytes{0};     // largest sum over all processes seen
  std::atomic<std::uint64_t> failed_starts{0};  // processes that ended because the runtime could not come up in them
  std::atomic<std::uint64_t> guard_fetches{0};  // of the faults: found by guards, ahead of them (residency.h)
};

struct RunSlot {
  std::atomic<std::int32_t> pid{0};     // 0: free; negative: for the child that the process -pid is forking
  std::atomic<std::uint64_t> bytes{0};  // its anonymous memory, the runtime's own included, when it last looked
  std::atomic<std::uint64_t> promised_bytes{0};   // what it may come to have without asking again
  std::atomic<std::uint64_t> inherited_bytes{0};  // of it, what was its parent's when it was forked
  std::atomic<bool> watched{false};               // its evictor keeps `bytes` fresh
  std::atomic<bool> short_of_room{false};         // it pages, has less than its share, and could not get more
  // A child that has not come by then (monotonic clock) never will. 0: its parent has not returned from fork() yet.
  std::atomic<std::int64_t> born_by_ns{0};
  std::atomic<std::uint32_t> heats{0};  // how often a process began to count in this slot's heat table
};

struct RunPage {
  std::atomic<std::uint32_t> format{kRunPageFormat};
  std::atomic<std::uint64_t> budget_bytes{0};
  RunCounters counters;
  Pulse pulse;
  std::atomic<std::int64_t> started_ns{0};     // when the page was made, on the monotonic clock
  std::atomic<std::uint64_t> heap_address{0};  // where the heap begins in every process; 0 before the first one is up
  static constexpr std::size_t kCommandBytes = 256;
  char command[kCommandBytes] = {};  // what is run, in words for people; ended by a zero
  // The store's URI with its password, which stands nowhere else: not in the environment, which programs print, nor in
  // a command line. Only this user's processes can open the page, and it is in no core. Empty: FARHEAP_STORE says it
  // all.
  static constexpr std::size_t kStoreBytes = 4096;
  char store[kStoreBytes] = {};  // ended by a zero
  static constexpr int kSlots = 1024;
  RunSlot slots[kSlots];

  // This process's slot, freed slots and those of dead processes taken over. Never null: the last slot is
  // shared when all are taken.
  RunSlot& claim(std::int32_t pid);
  // A slot for a child about to be forked, so that what it will share counts from the beginning, and it is never taken
  // for a program of its own.
  RunSlot& claim_for_child(std::int32_t parent, std::uint64_t promised_bytes, std::uint64_t inherited_bytes);
  // In the parent, after the fork. Nobody says whether there is a child; if it does not come soon there is none.
  // Before, the fork may have waited long for what was in flight.
  void forked(RunSlot& expected, std::int32_t parent);
  // In the child: that slot, or another if it came too late.
  RunSlot& be_born(RunSlot& expected, std::int32_t parent, std::int32_t pid);
  void release(RunSlot& slot);
  // Sum over all live slots; raises peak_bytes.
  std::uint64_t total_bytes();
  struct Others {
    std::uint64_t promised_bytes = 0;  // what they have or may come to have
    std::uint64_t most_to_give = 0;    // the most of it that one has which pages, or was forked by one that does
    std::uint64_t paging = 0;          // how many page
    bool short_of_room = false;        // any of them
  };
  [[nodiscard]] Others others(const RunSlot& own);
  void raise_peak(std::uint64_t total);

  // The process in this slot begins to count.
  HeatTable& start_heat(RunSlot& slot);
  // Requires: slots[slot].heats is not 0.
  [[nodiscard]] const HeatTable& heat(std::size_t slot) const;

 private:
  [[nodiscard]] RunSlot& take_free_slot(std::int32_t pid);
  // A table for each slot. Not written when the page is made: memory only where a process pages.
  alignas(4096) std::byte heat_[kSlots][sizeof(HeatTable)];
};

// Requires: `file` is open for reading and writing. Sizes it and puts a fresh page there; unmapped by munmap.
[[nodiscard]] Result<RunPage*> create_run_page(int file, std::uint64_t budget_bytes);
// Maps an existing one. kCorrupt if it is not a run page of this format.
[[nodiscard]] Result<RunPage*> open_run_page(const std::string& path);
// To look at only, as from outside of the run.
[[nodiscard]] Result<std::shared_ptr<const RunPage>> look_at_run_page(const std::string& path);
// The same as open_run_page() for a process that has no memory to allocate from; nullptr for any failure.
[[nodiscard]] RunPage* find_run_page(const char* path);

}  // namespace farheap::base
