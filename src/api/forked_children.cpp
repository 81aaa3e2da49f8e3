// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/forked_children.hpp"

#include <pthread.h>

#include <algorithm>
#include <vector>

#include "api/open_heaps.hpp"
#include "base/mutex.hpp"
#include "os/last_thread.hpp"
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
    base::LockGuard lock(mutex_);
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
    pthread_atfork([]() FARHEAP_ACQUIRE(all().mutex_) { all().mutex_.lock(); },
                   []() FARHEAP_RELEASE(all().mutex_) { all().mutex_.unlock(); },
                   []() FARHEAP_RELEASE(all().mutex_) {
                     const std::vector<ForkWatcher*> told = all().watchers_;
                     all().mutex_.unlock();  // who is told may want to be told no more
                     os::leave_parents_descriptors();
                     os::this_is_the_main_thread();
                     OpenHeaps::all().forget_parents();  // before one of them is opened here
                     for (ForkWatcher* const one : told) one->is_forked_child();
                   });
  }

  base::Mutex mutex_;
  std::vector<ForkWatcher*> watchers_ FARHEAP_GUARDED_BY(mutex_);
};

void ForkWatcher::watch_forks(bool on) { ForkWatchers::all().change(*this, on); }

}  // namespace farheap::api
