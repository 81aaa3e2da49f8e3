// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of a plan's phases a program is in. It begins with the first. Where it does not keep to the order of one it is
// taken to have gone on to the next, and behind the last one comes the first again. While it keeps to none, each round
// of looking rests longer before the next one: to make an order takes time.
//
// Thread-safety: plain data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "pager/order_source.hpp"

namespace farheap::plan {

class PhaseSearch {
 public:
  explicit PhaseSearch(std::size_t phases) : given_up_(phases) {}

  [[nodiscard]] std::size_t now() const { return now_; }
  // How it stands with the order of now(), asked again and again. True: now() is another phase from here on.
  [[nodiscard]] bool is_left(pager::OrderState state) {
    using pager::OrderState;
    if (state == OrderState::kNone || state == OrderState::kKept) return false;
    if (state == OrderState::kGivenUp) ++given_up_[now_];
    if (state != OrderState::kNeverKept) tried_ = rest_ = 0;
    if (rest_ > 0) {
      --rest_;
      return false;
    }
    if (!go_on()) return false;
    const std::size_t rounds = ++tried_ / given_up_.size();
    if (tried_ % given_up_.size() == 0) rest_ = std::uint64_t{1} << std::min(rounds, kMostRestLog2);
    return true;
  }
  // To the next one that may be of use. False: there is no other.
  bool go_on() {
    std::size_t next = now_;
    do {
      next = (next + 1) % given_up_.size();
    } while (next != now_ && given_up_[next] >= kMostGivenUp);
    return std::exchange(now_, next) != next;
  }

 private:
  static constexpr std::size_t kMostRestLog2 = 7;  // questions
  // Where a program goes on to something else, the order that it leaves costs more than it saves for a while.
  static constexpr unsigned kMostGivenUp = 2;
  std::vector<unsigned> given_up_;  // by phase: so often
  std::size_t now_ = 0;
  std::size_t tried_ = 0;   // phases, since the program kept to one
  std::uint64_t rest_ = 0;  // questions until the next one is tried
};

}  // namespace farheap::plan
