// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/forked_children.hpp"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "api/open_heaps.hpp"
#include "os/own_descriptors.hpp"

namespace farheap::api {

class ForkWatchers {
 public:
  // Never destroyed: a child may be forked while the program ends.
  static ForkWatchers& all() {
    static ForkWatchers& only = *new ForkWatchers;
    return only;
  }
  void change(ForkWatcher& watcher, bool on) {
    std::lock_guard lock(mutex_);
    if (watcher.watches_ == on) return;
    watcher.watches_ = on;
    if (on) {
      watchers_.push_back(&watcher);
    } else {
      std::erase(watchers_, &watcher);
    }
  }

 private:
  // The list is whole in the child because nobody else changes it during a fork.
  ForkWatchers() {
    pthread_atfork([] { all().mutex_.lock(); }, [] { all().mutex_.unlock(); },
                   [] {
                     all().mutex_.unlock();
                     os::leave_parents_descriptors();
                     OpenHeaps::all().forget_parents();  // before one of them is opened here
                     for (ForkWatcher* const one : std::vector(all().watchers_)) one->is_forked_child();
                   });
  }

  std::mutex mutex_;  // guards all below
  std::vector<ForkWatcher*> watchers_;
};

void ForkWatcher::watch_forks(bool on) { ForkWatchers::all().change(*this, on); }

}  // namespace farheap::api
