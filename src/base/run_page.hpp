// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory that all processes of one run share: the budget, who uses how much of it, and what happened. `farheap run`
// makes it, every process of the run maps it, and `run` reads it at the end. It comes in two files (sealed_file.hpp):
//
//   the configuration   what was said when the run began. Nothing of it can change.
//   the counters        what the processes write. Whoever is in the run can write anything there, also who has become
//                       another user: each value is looked at with that in mind, wherever it is read. At worst figures
//                       and shares of the budget are wrong.
//
// A process that is killed leaves its slot behind, but no lock: each holds one on the byte of the counters' file that
// has its slot's number. Locks are the kernel's: they go with the process, and no number that is used again and no
// namespace makes one process look like another. A process that can have no lock (it has become another user, so that
// it cannot open the file anew, or it sees no /proc) is told by its number and its pid namespace, and counts as living
// where that means nothing.
//
// Thread-safety: what is shared are atomics. claim(), be_born() and open_locks() one at a time in a process.
#pragma once

#include <atomic>
#include <cstdint>
#include <farheap/result.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/heat_table.hpp"
#include "base/pulse.hpp"

namespace farheap::base {

inline constexpr std::uint32_t kRunPageFormat = 17;
// Of the memfds: `farheap top` finds runs by the first.
inline constexpr char kRunPageName[] = "farheap-run";
inline constexpr char kRunCountersName[] = "farheap-run-counters";
inline constexpr char kRunPageVariable[] = "FARHEAP_RUN_PAGE";  // a RunPlace

// How the runtime ends a process that cannot come up, and one that it cannot keep going (EX_OSERR, EX_IOERR).
inline constexpr int kStatusNotStarted = 71;
inline constexpr int kStatusNotKept = 74;

struct RunCounters {
  std::atomic<std::uint64_t> processes{0};         // in which the runtime came up (an exec counts again)
  std::atomic<std::uint64_t> paging_processes{0};  // ... and came so near the budget that pages left
  std::atomic<std::uint64_t> faults{0};            // all that handlers saw or guards found
  std::atomic<std::uint64_t> faults_fresh{0};      // first touches
  std::atomic<std::uint64_t> faults_probation{0};  // the page was out of view but still in memory, compressed or not
  std::atomic<std::uint64_t> faults_store{0};      // the page had to be read
  std::atomic<std::uint64_t> faults_waited{0};     // the page was on its way already (read-ahead)
  std::atomic<std::uint64_t> bytes_read{0};
  std::atomic<std::uint64_t> bytes_written{0};
  std::atomic<std::uint64_t> bytes_read_ahead{0};
  std::atomic<std::uint64_t> pages_dropped_clean{0};
  std::atomic<std::uint64_t> stall_ns{0};          // handler time from a fault's arrival until its page was there
  std::atomic<std::uint64_t> stall_no_room_ns{0};  // ... of which it waited for room in memory
  std::atomic<std::uint64_t> store_full_waits{0};
  std::atomic<std::uint64_t> peak_bytes{0};        // largest sum over all processes seen
  std::atomic<std::uint64_t> failed_starts{0};     // processes that ended because the runtime could not come up in them
  std::atomic<std::uint64_t> guard_fetches{0};     // of the faults: found by guards, ahead of them (residency.h)
  std::atomic<std::uint64_t> faults_packed{0};     // of faults_probation: compressed
  std::atomic<std::uint64_t> touches_expected{0};  // of pages that are out of view, where an order says what is
  std::atomic<std::uint64_t> touches_unexpected{0};    // used next: as it says, or not
  std::atomic<std::uint64_t> orders_given_up{0};       // ... which a process did not follow any more
  std::atomic<std::uint64_t> orders_too_dear{0};       // ... because much more was read than it let expect
  std::atomic<std::uint64_t> order_bytes_read{0};      // of what is in it, while it was followed
  std::atomic<std::uint64_t> order_bytes_expected{0};  // ... as it lets expect
  std::atomic<std::uint64_t> plans_met{0};             // processes that have used what their plan speaks of
  std::atomic<std::uint64_t> region_bytes{0};          // small objects that a plan sorts had so much, at the most
  std::atomic<std::uint64_t> region_spare_bytes{0};    // ... and so much of theirs was free, at the most
};

// Who has a slot: one word, so that of two who want it one gets it.
class SlotHolder {
 public:
  SlotHolder() = default;
  constexpr SlotHolder(std::int32_t pid, std::uint32_t pid_namespace)
      : word_(std::uint64_t{pid_namespace} << 32 | (static_cast<std::uint32_t>(pid) << 1)) {}
  // 0: nobody; negative: for the child that the process -pid is forking.
  [[nodiscard]] std::int32_t pid() const { return static_cast<std::int32_t>(static_cast<std::uint32_t>(word_)) >> 1; }
  // Which numbers are meant: the namespace's inode; 0 where /proc does not tell.
  [[nodiscard]] std::uint32_t pid_namespace() const { return static_cast<std::uint32_t>(word_ >> 32); }
  // It holds the lock of its slot for as long as it lives.
  [[nodiscard]] bool is_locked() const { return (word_ & 1) != 0; }
  [[nodiscard]] SlotHolder locked() const { return SlotHolder(word_ | 1); }
  [[nodiscard]] bool is_same_process(SlotHolder other) const { return (word_ | 1) == (other.word_ | 1); }

 private:
  explicit constexpr SlotHolder(std::uint64_t word) : word_(word) {}
  std::uint64_t word_ = 0;
};

// A process that pages asks for room in vain: for none, for more than its share, or for less.
enum class RoomNeed : std::uint8_t { kNone, kMore, kShare };  // kShare: it has less than its share
// How much it faults (pager/pressure.hpp).
enum class Unrest : std::uint8_t { kWorks, kRests, kThrashes, kIsCalm };

struct RunSlot {
  std::atomic<SlotHolder> holder{SlotHolder()};
  std::atomic<std::uint64_t> bytes{0};  // its anonymous memory, the runtime's own included, when it last looked
  std::atomic<std::uint64_t> promised_bytes{0};   // what it may come to have without asking again
  std::atomic<std::uint64_t> inherited_bytes{0};  // of it, what was its parent's when it was forked
  std::atomic<std::uint8_t> watched{0};           // 1: its evictor keeps `bytes` fresh
  std::atomic<RoomNeed> need{RoomNeed::kNone};
  std::atomic<Unrest> unrest{Unrest::kWorks};
  // A child that has not come by then (monotonic clock) never will. 0: its parent has not returned from fork() yet.
  std::atomic<std::int64_t> born_by_ns{0};
  // It is idle, and does not use this much of what is promised to it. The tool writes it (tool/idle_watch.hpp).
  std::atomic<std::uint64_t> unused_bytes{0};
  std::atomic<std::uint32_t> heats{0};  // how often a process began to count in this slot's heat table
  [[nodiscard]] std::int32_t pid() const { return holder.load(std::memory_order_relaxed).pid(); }
};
static_assert(std::atomic<SlotHolder>::is_always_lock_free);

// What this process alone has of it.
struct alignas(4096) RunOwn {
  // Descriptor of the counters' file that this process has opened for itself, for its locks. -1: it has none.
  int locks = -1;
  std::uint32_t pid_namespace = 0;
  SlotHolder self;  // as it stands in its slot
};

struct alignas(4096) RunConfiguration {
  std::atomic<std::uint32_t> format{kRunPageFormat};
  std::atomic<std::uint64_t> budget_bytes{0};
  std::atomic<std::int64_t> started_ns{0};      // on the monotonic clock
  std::atomic<std::uint64_t> counters_file{0};  // the inode of the counters' file, which belongs to this one
  static constexpr std::size_t kCommandBytes = 256;
  char command[kCommandBytes] = {};  // what is run, in words for people; ended by a zero
  [[nodiscard]] std::string command_text() const;
};

// Zeros are fresh ones.
struct alignas(4096) RunShared {
  RunCounters counters;
  Pulse pulse;
  // One process at a time may have most of the memory (pager/turns.hpp). The high 16 bits hold the number of its slot
  // plus 1, the low 48 bits the start of its turn in milliseconds of the monotonic clock. 0: it is nobody's turn.
  std::atomic<std::uint64_t> turn{0};
  std::atomic<std::int64_t> looked_ns{0};      // when the tool wrote unused_bytes last (monotonic clock)
  std::atomic<std::uint64_t> heap_address{0};  // where the heap begins, for people; 0 before the first process is up
  static constexpr std::size_t kSlots = 1024;
  RunSlot slots[kSlots];
  // A table for each slot. Not written when the page is made: memory only where a process pages.
  alignas(4096) std::byte heat_tables[kSlots][sizeof(HeatTable)];
};
// Whatever has this length has no huge pages, of which there may be none when they are touched.
static_assert(sizeof(RunShared) % (std::size_t{2} << 20) != 0);

struct RunPage : RunOwn, RunConfiguration, RunShared {
  // A slot for process `pid` of this process's pid namespace: the one that it had before it executed another program,
  // or else a free one or that of a dead process. The last slot is shared when all are taken.
  RunSlot& claim(std::int32_t pid);
  // A slot for a child about to be forked, so that what it will share counts from the beginning, and it is never taken
  // for a program of its own.
  RunSlot& claim_for_child(std::int32_t parent, std::uint64_t promised_bytes, std::uint64_t inherited_bytes);
  // In the parent, after the fork. Nobody says whether there is a child; if it does not come soon there is none.
  // Before, the fork may have waited long for what was in flight.
  void forked(RunSlot& expected, std::int32_t parent);
  // In the child: that slot, or another if it came too late. Its locks are its own from now on.
  RunSlot& be_born(RunSlot& expected, std::int32_t parent, std::int32_t pid);
  void release(RunSlot& slot);
  [[nodiscard]] std::size_t number_of(const RunSlot& slot) const { return static_cast<std::size_t>(&slot - slots); }
  // Whether it has ended, or was never born. False for those of which nobody here can tell.
  [[nodiscard]] bool is_gone(const RunSlot& slot) const;
  // Whether the numbers of its process mean the same here.
  [[nodiscard]] bool is_in_own_namespace(const RunSlot& slot) const;
  // Sum over all live slots; raises peak_bytes.
  std::uint64_t total_bytes();
  struct Others {
    std::uint64_t promised_bytes = 0;  // what they have or may come to have
    // Idle processes that do not page leave so much of it unused. The largest part is left out, so that any one may
    // wake without harm. 0 if the tool has not looked lately.
    std::uint64_t lent_bytes = 0;
    std::uint64_t most_to_give = 0;  // the most of it that one has which pages, or was forked by one that does
    std::uint64_t paging = 0;        // how many page
    std::uint64_t awake = 0;         // ... and do not rest
    std::uint64_t awake_bytes = 0;   // what these have or may come to have
    std::uint64_t thrashing = 0;
    RoomNeed need = RoomNeed::kNone;  // the most of any
  };
  [[nodiscard]] Others others(const RunSlot& own);
  void raise_peak(std::uint64_t total);

  // The process in this slot begins to count.
  HeatTable& start_heat(RunSlot& slot);
  // Requires: slots[slot].heats is not 0.
  [[nodiscard]] const HeatTable& heat(std::size_t slot) const;

 private:
  [[nodiscard]] RunSlot& take_free_slot(SlotHolder holder);
  [[nodiscard]] bool is_locked_by_another(std::size_t slot) const;
  [[nodiscard]] bool is_here(SlotHolder parent) const;
  [[nodiscard]] bool never_came(const RunSlot& slot, SlotHolder unborn) const;
  [[nodiscard]] bool is_gone(const RunSlot& slot, SlotHolder holder) const;
  void lock(RunSlot& slot, SlotHolder holder);
  void renew_locks();
};

// The two files. Each number is that of a close-on-exec descriptor.
struct RunFiles {
  int configuration = -1;
  int counters = -1;
};
// `number_from` as for make_sealed_file().
[[nodiscard]] Result<RunFiles> make_run_files(std::uint64_t budget_bytes, std::string_view command,
                                              int number_from = 0);
// The page over the files, which may be closed then; unmapped by munmap. kCorrupt, kPermission: they are not to be
// trusted, or not of this format.
[[nodiscard]] Result<RunPage*> map_run_page(const RunFiles& files);

// Where the files are: descriptors of the tool, which those that it starts inherit under the same numbers.
struct RunPlace {
  std::int32_t tool = 0;
  RunFiles files;
  int password = -1;  // make_secret_file(): the store's URI with its password. Nobody inherits it. -1: it has none

  [[nodiscard]] static std::optional<RunPlace> parse(std::string_view text);
  [[nodiscard]] std::string text() const;
  // The files that this process has inherited; -1 for what it has not, or what is not to be trusted.
  [[nodiscard]] RunFiles inherited() const;
  [[nodiscard]] std::string password_path() const;  // opens it from any process of this user, while the tool is there
};

// By the files that this process has inherited, or else by the tool's: its own may be closed, and processes of another
// user may not look into the tool's.
[[nodiscard]] Result<RunPage*> open_run_page(const RunPlace& place);
// The same for a process that has no memory to allocate from; nullptr for any failure. `text`: a RunPlace.
[[nodiscard]] RunPage* find_run_page(const char* text);
// Opens the counters' file anew, for the locks of this process. Stays open; without it locks are done without.
void open_locks(RunPage& page, const RunPlace& place);
void open_locks(RunPage& page, int counters);

// A run seen from outside, by whoever may open the files. They may be a stranger's, and anything: nothing of them is
// mapped, and what is shown is a copy.
class RunView {
 public:
  // `configuration` and `counters` are paths. kCorrupt: no files of a run of this format, or they do not belong
  // together. `owner`: the user who is to have made them, if it was not root.
  [[nodiscard]] static Result<std::unique_ptr<RunView>> open(const std::string& configuration,
                                                             const std::string& counters, unsigned owner);
  ~RunView();
  RunView(const RunView&) = delete;
  RunView& operator=(const RunView&) = delete;
  // Looks again; false when it cannot be read.
  bool refresh();
  // As it was at the last look.
  [[nodiscard]] const RunPage& page() const { return *page_; }

 private:
  explicit RunView(RunPage* page, int counters) : page_(page), counters_(counters) {}
  bool read_table(std::size_t slot, std::size_t at);
  RunPage* page_;
  int counters_;
};
// The inode of the counters' file that belongs to this configuration; nothing if it is none of this format.
[[nodiscard]] std::optional<std::uint64_t> counters_of(const std::string& configuration);

}  // namespace farheap::base
