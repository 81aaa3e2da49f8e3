// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a segment does for the guards of a program (farheap/residency.h): keeps a table of the pages that are away,
// shows it to the program's modules, and fetches what a guard has found there in the thread that is about to touch it.
//
// Invariant: what a view names is there until the process ends.
//
// Thread-safety: any thread. fetch() in signal handlers, too; add() and remove() are the loader's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.hpp"
#include "farheap/residency.h"
#include "os/mapping.hpp"
#include "pager/pager.hpp"

namespace farheap::segment {

class Guards {
 public:
  // A module's view: filled now, or when paging begins. Requires: it begins as residency.h says.
  void add(farheap_residency& view);
  void remove(farheap_residency& view);
  // The program was translated.
  [[nodiscard]] bool has_views();

  // Paging has begun. `buffer_pages`: what a fault may need. The pager outlives this.
  void begin(std::byte* base, std::uint64_t pages, std::uint32_t buffer_pages, pager::Pager& pager);
  // Does nothing where that is not this thread's business: a fault does it then.
  void fetch(const void* at, bool write);

  void lock_for_fork() FARHEAP_ACQUIRE(mutex_) { mutex_.lock(); }
  void unlock_in_parent() FARHEAP_RELEASE(mutex_) { mutex_.unlock(); }
  void unlock_in_child() FARHEAP_RELEASE(mutex_);

 private:
  static constexpr unsigned kBuffers = 8;  // threads that fetch at the same time; more fault
  // Of buffers; -1: none is free.
  [[nodiscard]] int take_buffer();
  // With the first view.
  void make_table() FARHEAP_REQUIRES(mutex_);
  void show(farheap_residency& view) const;

  base::Mutex mutex_;
  std::vector<farheap_residency*> views_ FARHEAP_GUARDED_BY(mutex_);
  os::ReservedArray<std::atomic<std::uint8_t>> away_;
  os::Mapping buffers_;
  std::size_t buffer_bytes_ = 0;
  std::byte* base_ = nullptr;
  std::uint64_t pages_ = 0;
  pager::Pager* pager_ = nullptr;
  std::atomic<bool> works_{false};       // all of the above is there
  std::atomic<std::uint32_t> taken_{0};  // a bit for each buffer
};

}  // namespace farheap::segment
