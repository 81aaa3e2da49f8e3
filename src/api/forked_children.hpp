// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What wants to be told that this process is a forked child, before fork() returns there.
//
// Thread-safety: any thread.
#pragma once

namespace farheap::api {

class ForkWatcher {
 public:
  ForkWatcher(const ForkWatcher&) = delete;
  ForkWatcher& operator=(const ForkWatcher&) = delete;

 protected:
  ForkWatcher() = default;
  ~ForkWatcher() { watch_forks(false); }
  // From now on, or no longer. The last the latest before what is told is gone.
  void watch_forks(bool on);
  // In the child, in the thread that forked, which is its only one: locks that others held are held for ever.
  virtual void is_forked_child() noexcept = 0;

 private:
  friend class ForkWatchers;
  bool watches_ = false;
};

}  // namespace farheap::api
