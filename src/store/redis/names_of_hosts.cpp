// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/names_of_hosts.hpp"

#include <arpa/inet.h>
#include <linux/futex.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include "base/mutex.hpp"
#include "os/boot_clock.hpp"
#include "os/fork_mark.hpp"
#include "os/runtime_threads.hpp"
#include "store/fork_lock.hpp"

namespace farheap::store::redis {
namespace {

constexpr std::size_t kMostAddresses = 16;
constexpr std::int64_t kFreshNs = 1'000'000'000;

struct Answer {
  std::vector<HostAddress> found;
  std::string why;
};

Answer ask_library(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  Answer answer;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) return answer.why = gai_strerror(error), answer;
  for (const addrinfo* one = list; one != nullptr && answer.found.size() < kMostAddresses; one = one->ai_next) {
    if (one->ai_addrlen > sizeof(sockaddr_storage)) continue;
    HostAddress here{.length = one->ai_addrlen};
    std::memcpy(&here.address, one->ai_addr, one->ai_addrlen);
    answer.found.push_back(here);
  }
  freeaddrinfo(list);
  return answer;
}

// "10.0.0.5", "::1": nothing to be asked.
bool is_number(const Address& host, HostAddress& number) {
  auto* const four = reinterpret_cast<sockaddr_in*>(&number.address);
  auto* const six = reinterpret_cast<sockaddr_in6*>(&number.address);
  if (inet_pton(AF_INET, host.host.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET, four->sin_port = htons(host.port), number.length = sizeof *four;
  } else if (inet_pton(AF_INET6, host.host.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6, six->sin6_port = htons(host.port), number.length = sizeof *six;
  }
  return number.length != 0;
}

// Of a process. Never goes away: its thread does not either.
class Names {
 public:
  static Names& all() {
    static auto* const names = new Names;
    return *names;
  }

  std::vector<HostAddress> look_up(const Address& host, std::chrono::nanoseconds patience, std::string& why) {
    const base::LockGuard guard(lock_);
    take_answer();
    Known& known = known_[host.text()];
    if (os::boot_clock_ns() >= known.fresh_until_ns) {
      const bool is_asked = ask(host);
      if (is_asked) wait(os::boot_clock_ns() + patience.count());
      take_answer();
      if (known.answer.found.empty() && known.answer.why.empty()) known.answer.why = "its address was not told in time";
    }
    why = known.answer.why;
    return known.answer.found;
  }
  void forget(const Address& host) {
    const base::LockGuard guard(lock_);
    known_[host.text()].fresh_until_ns = 0;
  }
  void renew() {
    const base::LockGuard guard(lock_);
    if (has_thread_) (void)start_thread();
  }

 private:
  enum State : std::uint32_t { kIdle, kAsked, kAnswered };
  struct Known {
    Answer answer;  // the last one with addresses, if any had
    std::int64_t fresh_until_ns = 0;
  };

  // False: there is no thread.
  bool start_thread() FARHEAP_REQUIRES(lock_) {
    if (has_thread_ && !mark_.is_gone()) return true;
    state_.store(kIdle);  // what was asked in the parent is answered there
    mark_.set();
    return has_thread_ = os::start_runtime_thread(run, this).has_value();
  }

  // False: the answer to an earlier question is not there yet, and may never be.
  bool ask(const Address& host) FARHEAP_REQUIRES(lock_) {
    // The first time who asks does it: paging begins in the middle of a program's malloc(), whose lock another thread
    // would wait for.
    Known& known = known_[host.text()];
    if (known.answer.found.empty() || !start_thread()) {
      Answer answer = ask_library(host.host, host.port);
      if (!answer.found.empty()) known.fresh_until_ns = os::boot_clock_ns() + kFreshNs;
      if (!answer.found.empty() || known.answer.found.empty()) known.answer = std::move(answer);
      return false;
    }
    if (state_.load() != kIdle) return false;
    asked_ = host;
    state_.store(kAsked);
    syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    return true;
  }

  void wait(std::int64_t until_ns) FARHEAP_REQUIRES(lock_) {
    while (state_.load() == kAsked) {
      const std::int64_t left = until_ns - os::boot_clock_ns();
      if (left <= 0) return;
      const timespec limit{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
      syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, kAsked, &limit, nullptr, 0);
    }
  }

  void take_answer() FARHEAP_REQUIRES(lock_) {
    if (mark_.is_gone() || state_.load() != kAnswered) return;
    Known& known = known_[asked_.text()];
    if (!answer_.found.empty() || known.answer.found.empty()) known.answer = std::move(answer_);
    known.fresh_until_ns = known.answer.found.empty() ? 0 : os::boot_clock_ns() + kFreshNs;
    answer_ = {};
    state_.store(kIdle);
  }

  static void* run(void* names) {
    auto& self = *static_cast<Names*>(names);
    for (;;) {
      const std::uint32_t seen = self.state_.load();
      if (seen != kAsked) {
        syscall(SYS_futex, &self.state_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
        continue;
      }
      self.answer_ = ask_library(self.asked_.host, self.asked_.port);
      self.state_.store(kAnswered);
      syscall(SYS_futex, &self.state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
  }

  ForkLock lock_;
  std::map<std::string, Known> known_ FARHEAP_GUARDED_BY(lock_);
  bool has_thread_ FARHEAP_GUARDED_BY(lock_) = false;  // here, or (the mark is gone) in the parent
  os::ForkMark mark_;
  std::atomic<std::uint32_t> state_{kIdle};
  Address asked_;  // the thread's while it is asked
  Answer answer_;  // likewise
};

}  // namespace

std::vector<HostAddress> addresses_of(const Address& host, std::chrono::nanoseconds patience, std::string& why) {
  HostAddress number;
  if (is_number(host, number)) return {number};
  return Names::all().look_up(host, patience, why);
}

void forget_addresses_of(const Address& host) {
  HostAddress number;
  if (!is_number(host, number)) Names::all().forget(host);
}

void renew_names_of_hosts() { Names::all().renew(); }

}  // namespace farheap::store::redis
