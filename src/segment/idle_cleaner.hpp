// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Brings pages together that commits have scattered, a leaf of the map at a time, when no commit has been made for a
// while: so a sweep over what was changed here and there stays a sweep over the store. It stops as soon as somebody
// commits again. What it has moved becomes lasting with the next commit.
//
// Thread-safety: any thread.
#pragma once

#include <pthread.h>

#include "base/condition.hpp"
#include "base/mutex.hpp"
#include "segment/versions.hpp"

namespace farheap::segment {

class IdleCleaner {
 public:
  explicit IdleCleaner(Versions& versions) : versions_(versions) {}
  // Waits for its thread.
  ~IdleCleaner();
  IdleCleaner(const IdleCleaner&) = delete;
  IdleCleaner& operator=(const IdleCleaner&) = delete;

  // Around a commit. Its thread starts with the first one that ends. Without a thread nothing is cleaned, and nothing
  // is lost.
  void begin_commit();
  void end_commit();

 private:
  static void* run(void* cleaner);
  void work();
  // False: there is something else to do, or nothing left.
  [[nodiscard]] bool clean_some(std::byte* buffer);

  Versions& versions_;
  base::Mutex mutex_;
  base::Condition changed_;
  pthread_t thread_{};  // set before started_
  bool started_ FARHEAP_GUARDED_BY(mutex_) = false;
  bool stopping_ FARHEAP_GUARDED_BY(mutex_) = false;
  bool committing_ FARHEAP_GUARDED_BY(mutex_) = false;
  bool is_due_ FARHEAP_GUARDED_BY(mutex_) = false;  // commits were made since it has looked
};

}  // namespace farheap::segment
