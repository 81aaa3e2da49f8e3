// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/lane.hpp"

#include <fmt/format.h>

#include "base/mutex.hpp"
#include "base/random_number.hpp"

namespace farheap::store::redis {

Lanes::Lanes(Shared& shared) : shared_(shared), client_(fmt::format("{:016x}", base::random_number())) {}

Lanes::~Lanes() = default;

std::unique_ptr<Lane> Lanes::make() {
  auto lane = std::make_unique<Lane>();
  lane->id = fmt::format("{}-{}", client_, made_.fetch_add(1));
  return lane;
}

Lanes::Guard Lanes::take() {
  if (mark_.is_gone()) renew_in_child();
  for (;;) {
    const unsigned before = given_back_.load();
    for (unsigned number = 0; number < kMost; ++number) {
      if (taken_[number].exchange(true, std::memory_order_acquire)) continue;
      if (!lanes_[number]) lanes_[number] = make();
      return {*this, number};
    }
    given_back_.wait(before);
  }
}

void Lanes::give_back(unsigned number) {
  taken_[number].store(false, std::memory_order_release);
  given_back_.fetch_add(1);
  given_back_.notify_one();
}

// The parent goes on with its connections. What another thread of it was using is in no state to be looked at: it stays
// as it is, and open.
void Lanes::renew_in_child() {
  base::LockGuard guard(lock_);
  if (!mark_.is_gone()) return;
  for (unsigned number = 0; number < kMost; ++number) {
    if (taken_[number].load()) (void)lanes_[number].release();
    lanes_[number].reset();
    taken_[number].store(false);
  }
  client_ = fmt::format("{:016x}", base::random_number());
  shared_.renew_numbers();
  mark_.set();
  shared_.heart.renew();
}

}  // namespace farheap::store::redis
