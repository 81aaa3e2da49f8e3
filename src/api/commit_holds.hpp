// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What holds back the cut of a commit while changes that belong together are made: Heap::pause(), and the containers
// that are used by several threads. A commit waits for those inside and lets nobody else in meanwhile, so it comes to
// its turn whatever the traffic. A thread may hold it several times over, for several heaps.
//
// Thread-safety: any thread; leave() in the thread that entered.
#pragma once

#include "base/gate.hpp"

namespace farheap::api {

class CommitHolds {
 public:
  void enter();
  void leave() noexcept;
  [[nodiscard]] bool has_this_thread() const noexcept;
  // Of a commit: nobody is inside until resume(). Requires: this thread is not inside.
  void stop() noexcept { gate_.close(); }
  void resume() noexcept { gate_.open(); }

 private:
  base::Gate gate_;
};

}  // namespace farheap::api
