// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A process that does not page may come to have more memory without asking: pages of addresses that it was given and
// has not touched, and copies of pages that it shares with its parent. That much is promised to it. An idle server
// process uses none of it, and a tree has many of them. So while a process of the run pages, a thread of `farheap run`
// looks which of the others have not grown for a while, and notes in the run page how much of its promise each of them
// leaves unused. Who is short of room has that meanwhile (RunPage::Others::lent_bytes). What one grows is its own at
// the next look; who grows by more than a little is not idle, and all of its promise counts again.
//
// The tool looks, and not the processes that page: their descriptors are the program's, and they may be stopped.
//
// Thread-safety: look() one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/condition.hpp"
#include "base/mutex.hpp"
#include "base/run_page.hpp"
#include "base/thread_safety.hpp"

namespace farheap::tool {

class IdleWatch {
 public:
  static constexpr std::chrono::milliseconds kLookEvery{10};
  static constexpr std::uint32_t kQuietLooks = 10;                    // then it is idle
  static constexpr std::uint64_t kLittle = std::uint64_t{256} << 10;  // that it may grow and be idle still
  static constexpr std::uint32_t kShareEvery = 20;                    // quiet looks, for some 0.1 ms each

  explicit IdleWatch(base::RunPage& page);
  // One look at all processes of the run.
  void look();

 private:
  struct Seen {
    std::int32_t pid = 0;
    std::uint32_t quiet_looks = 0;
    std::uint64_t quiet_bytes = 0;  // that it had when it became quiet
    std::uint64_t share_bytes = 0;  // its part of what it has and shares
  };
  [[nodiscard]] std::uint64_t look_at(const base::RunSlot& slot, Seen& seen) const;

  base::RunPage& page_;
  const std::uint32_t pid_namespace_;  // 0: /proc is another's, and nobody is looked at
  std::vector<Seen> seen_;             // by slot
};

// The thread, for as long as this lives. The page outlives it.
class IdleWatchThread {
 public:
  explicit IdleWatchThread(base::RunPage& page);
  ~IdleWatchThread();
  IdleWatchThread(const IdleWatchThread&) = delete;
  IdleWatchThread& operator=(const IdleWatchThread&) = delete;

 private:
  void watch();
  base::RunPage& page_;
  base::Mutex mutex_;
  base::Condition stop_;
  bool stopped_ FARHEAP_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace farheap::tool
