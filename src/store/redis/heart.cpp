// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/heart.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "os/boot_clock.hpp"
#include "os/fork_mark.hpp"
#include "os/runtime_threads.hpp"
#include "store/fork_lock.hpp"

namespace farheap::store::redis {

// Of a process. Never goes away: its thread does not either.
struct Hearts {
  static Hearts& all() {
    static auto* const hearts = new Hearts;
    return *hearts;
  }

  void add(Heart& heart) {
    const base::LockGuard guard(lock);
    hearts.push_back(&heart);
    start_thread();
    ring();
  }
  void remove(Heart& heart) {
    const base::LockGuard guard(lock);
    std::erase(hearts, &heart);
    heart.beat_ = nullptr;
  }
  // Without the lock where there is a thread: it may be the one that asks, and have the lock.
  void renew() {
    if (!mark.is_gone()) return;
    const base::LockGuard guard(lock);
    start_thread();
  }

 private:
  // Once in a process's life.
  void start_thread() FARHEAP_REQUIRES(lock) {
    if (has_thread && !mark.is_gone()) return;
    has_thread = true;
    mark.set();
    if (Status started = os::start_runtime_thread(run, this); !started) {
      base::log(base::LogLevel::kWarn, "{}", started.error().message());
    }
  }
  void ring() {
    bell.fetch_add(1);
    syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

  // Beats where it is due, and says when to look again.
  std::int64_t beat() {
    constexpr std::int64_t kHour = std::int64_t{3600} * 1'000'000'000;
    const base::LockGuard guard(lock);
    std::int64_t next = os::boot_clock_ns() + kHour;
    for (Heart* const heart : hearts) {
      if (os::boot_clock_ns() >= heart->next_ns_) {
        heart->beat_();
        heart->next_ns_ = os::boot_clock_ns() + heart->every_.count();
      }
      next = std::min(next, heart->next_ns_);
    }
    return next;
  }

  static void* run(void* hearts) {
    auto& self = *static_cast<Hearts*>(hearts);
    for (;;) {
      const std::uint32_t rung = self.bell.load();
      const std::int64_t wait = std::max<std::int64_t>(self.beat() - os::boot_clock_ns(), 0);
      // By the clock that stands while the machine sleeps: then a beat comes late, as all does.
      const timespec limit{.tv_sec = wait / 1'000'000'000, .tv_nsec = wait % 1'000'000'000};
      syscall(SYS_futex, &self.bell, FUTEX_WAIT_PRIVATE, rung, &limit, nullptr, 0);
    }
  }

  ForkLock lock;
  std::vector<Heart*> hearts FARHEAP_GUARDED_BY(lock);
  bool has_thread FARHEAP_GUARDED_BY(lock) = false;  // here, or (the mark is gone) in the parent
  os::ForkMark mark;
  std::atomic<std::uint32_t> bell{0};
};

void Heart::start(std::chrono::nanoseconds every, std::function<void()> beat) {
  every_ = every;
  beat_ = std::move(beat);
  next_ns_ = os::boot_clock_ns() + every.count();
  Hearts::all().add(*this);
}

void Heart::renew() {
  if (beat_) Hearts::all().renew();
}

void Heart::stop() {
  if (beat_) Hearts::all().remove(*this);
}

}  // namespace farheap::store::redis
