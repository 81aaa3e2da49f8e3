// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The recorder of sampled profiles, inside the program that is recorded: it hears of every allocation and of every
// fault, and keeps the tables of recording.hpp. It changes neither where objects lie nor what the pager does.
//
//   which site a page belongs to   the object at the page's sample point (sample_point.hpp); its stack is found in the
//                                  tree of known stacks (call_sites.hpp)
//   where a thread waits           the kernel tells the instruction and the stack pointer of a thread that waits
//                                  (/proc/PID/task/TID/syscall); of many faults a second only a sample is looked at
//
// Thread-safety: any thread. The runtime's threads wait for no lock of it, and the program's hold one only while they
// touch nothing that is paged but their stack.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "os/mapping.hpp"
#include "os/shared_file.hpp"
#include "os/waiting_place.hpp"
#include "pager/fault_observer.hpp"
#include "profile/allocation_observer.hpp"
#include "profile/call_sites.hpp"
#include "profile/code_ranges.hpp"
#include "profile/recording.hpp"
#include "profile/sample_point.hpp"
#include "profile/touch_order.hpp"
#include "profile/unit_sites.hpp"

namespace farheap::profile {

class Recorder final : public pager::FaultObserver, public AllocationObserver {
 public:
  using Now = base::Clock::time_point (*)();
  // `folder` is where each process makes its recording, at its first sample: PID.recording, with more digits if that is
  // there. `heap`: the addresses that are recorded. `now`: of touches. kNoSpace without addresses. Requires:
  // room.sites <= 65,536.
  [[nodiscard]] static Result<std::unique_ptr<Recorder>> make(std::string folder, std::span<const std::byte> heap,
                                                              RecordingRoom room = {}, Now now = &base::Clock::now);

  // What is asked for on a stack that lies in the heap is passed by: a part of it may be out of view.
  void allocated(const void* object, std::size_t bytes, const void* caller, const void* frame) override;
  void freed(const void* object) override;
  void unmapped(const void* at, std::size_t bytes) override;

  [[nodiscard]] std::uint32_t begun(std::uint32_t thread, std::uintptr_t touched) override;
  void ended(pager::PageNumber page, std::uint32_t place, std::chrono::nanoseconds stalled,
             std::uint32_t pages_read) override;

  [[nodiscard]] std::string sample_path() override;

  // Begins anew, with nothing of what is allocated already: its recording is in this folder, is made now, and says that
  // the process ran already. Requires: nothing was recorded yet, or end() was called.
  [[nodiscard]] Status attach(std::string folder);
  // Nothing is recorded any more. Calls may still be under way, and go on where the tables were.
  void end();
  // In a forked child: its own recording begins with what lives.
  void begin_in_child();

 private:
  // The object at a page's sample point, or at an edge of it. All zeros: nobody's.
  struct Owner {
    std::uint16_t site;
    std::uint16_t units;   // it has, of 16 bytes; kManyUnits, or more
    std::uint32_t object;  // where it begins, in units, of which the upper bits are left out
    [[nodiscard]] bool has(std::uint64_t unit) const;
  };
  static constexpr std::uint16_t kManyUnits = 0xffff;
  static_assert(std::atomic<Owner>::is_always_lock_free);

  using Owners = os::ReservedArray<std::atomic<Owner>>;  // by page
  Recorder(std::string folder, std::span<const std::byte> heap, RecordingRoom room, CallSites sites, Owners owners,
           std::array<Owners, 2> at_edges, UnitSites unit_sites, os::ReservedArray<std::atomic<bool>> is_begun,
           os::ReservedArray<std::atomic<std::uint64_t>> live, Now now);
  // The tables, made if need be. nullptr: not now, or there are none for good.
  [[nodiscard]] RecordingTables* tables() {
    RecordingTables* const made = tables_.load(std::memory_order_acquire);
    return made != nullptr ? made : make_tables();
  }
  [[nodiscard]] RecordingTables* make_tables();
  [[nodiscard]] Status make_recording() FARHEAP_REQUIRES(making_);
  [[nodiscard]] Result<os::SharedFile> make_file() FARHEAP_REQUIRES(making_);
  void fill_begin(RecordingTables& to);
  [[nodiscard]] SiteId site_of(RecordingTables& to, const void* caller, const void* frame);
  void keep_stack(RecordingTables& to, SiteId site);
  void give(RecordingTables& to, SampledPages pages, Owner owner);
  void take_back(Owner owner, std::uint64_t pages);
  void note_edges(RecordingTables& to, std::uint64_t offset, std::uint64_t bytes, Owner owner);
  void note_units(std::uint64_t offset, std::uint64_t bytes, SiteId site);
  void note_touch(RecordingTables& to, std::uintptr_t at);
  [[nodiscard]] std::uint32_t weight_of_touch();
  void note_object(RecordingTables& to, std::uint64_t offset, std::uint64_t bytes, SiteId site);
  // Large objects that began in these bytes are gone.
  void end_objects(std::uint64_t offset, std::uint64_t bytes);
  // Counted from the heap's first byte.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(const void* at) const;
  [[nodiscard]] int file_of_code(RecordingTables& to, std::uintptr_t address) FARHEAP_REQUIRES(code_mutex_);
  [[nodiscard]] std::uint32_t place_at(RecordingTables& to, os::WaitingPlace where) FARHEAP_REQUIRES(code_mutex_);
  [[nodiscard]] std::uintptr_t caller_in_other_file(RecordingTables& to, os::WaitingPlace where)
      FARHEAP_REQUIRES(code_mutex_);
  [[nodiscard]] bool is_looked_at(unsigned one_in_log2);
  void choose_sample();
  [[nodiscard]] StallFigures* stalls_of(RecordingTables& to, std::uint64_t key) const;

  const std::span<const std::byte> heap_;
  const RecordingRoom room_;
  const Now now_;
  CallSites sites_;
  Owners owners_;
  // Of sampled pages, the first of less than a page that begins there, and the last. What was freed stays until another
  // object lies there: nobody touches it.
  std::array<Owners, 2> at_edges_;
  UnitSites unit_sites_;
  os::ReservedArray<std::atomic<bool>> is_begun_;  // by page: something was touched there
  TouchOrder touch_order_;
  std::atomic<std::int64_t> last_touch_ns_{0}, between_touches_ns_{0};
  // Live bytes by site. What the tables say of them is for others to read: a forked child must not, because its parent
  // goes on writing there.
  os::ReservedArray<std::atomic<std::uint64_t>> live_;
  std::atomic<RecordingTables*> tables_{nullptr};
  std::atomic<std::uint32_t> faults_{0}, looks_{0}, one_in_log2_{0};
  std::atomic<std::int64_t> sampled_since_ns_{0};
  std::atomic<std::uint32_t> births_and_deaths_{0};  // of large objects

  base::Mutex making_;  // tried, never waited for by who allocates or serves faults
  std::string folder_ FARHEAP_GUARDED_BY(making_);
  bool is_attached_ FARHEAP_GUARDED_BY(making_) = false;
  bool has_failed_ FARHEAP_GUARDED_BY(making_) = false;
  os::SharedFile file_ FARHEAP_GUARDED_BY(making_);
  std::string path_ FARHEAP_GUARDED_BY(making_);  // of the file
  RecordingTables made_;                          // what tables_ points to
  base::Mutex code_mutex_;
  CodeRanges code_ FARHEAP_GUARDED_BY(code_mutex_);
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> places_ FARHEAP_GUARDED_BY(code_mutex_);
};

}  // namespace farheap::profile
