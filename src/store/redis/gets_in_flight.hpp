// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gets that are asked for one after the other, and answered as they come: for the misses of a program. Connections of
// their own. What a server does not answer in time, or answers with an error, is asked again by RedisStore::get(),
// which has patience.
//
// Thread-safety: as GetsInFlight.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "store/redis/blocks.hpp"
#include "store/redis/redis_store.hpp"

namespace farheap::store::redis {

class RedisGetsInFlight final : public GetsInFlight {
 public:
  // nullptr where there are no descriptors to be had.
  [[nodiscard]] static std::unique_ptr<RedisGetsInFlight> make(RedisStore& store, unsigned most);
  ~RedisGetsInFlight() override;

  bool begin(Get& entry) override;
  Get* take() override;
  int descriptor() const override { return poll_; }

 private:
  RedisGetsInFlight(RedisStore& store, unsigned most) : store_(store), most_(most) {}
  struct Waiting {
    Waiting(Get& get, std::size_t block_bytes) : entry(&get), batch({&get, 1}, block_bytes) {}
    Get* entry;
    GetBatch batch;
    unsigned node = Nodes::kNobody;
    std::vector<Command> commands;
    std::size_t answered = 0;  // of the commands
    bool is_refused = false;
    base::Clock::time_point since = base::Clock::now();
  };
  using Queue = std::list<Waiting>;
  [[nodiscard]] bool set_up();
  void renew_in_child();
  [[nodiscard]] unsigned destination(const Waiting& one) const;
  [[nodiscard]] bool send(Waiting& one);
  [[nodiscard]] bool take_answer(Line& line, Waiting& one);
  [[nodiscard]] Get* ask_store(Get& entry);
  void give_up(unsigned node);
  void look_at_timer();
  void set_timer(std::chrono::nanoseconds from_now);

  RedisStore& store_;
  const unsigned most_;
  std::unique_ptr<Lane> lane_;
  Queue waiting_;               // in the order they were asked
  std::vector<Get*> to_store_;  // not answered
  int poll_ = -1;               // of the sockets, and of the timer
  int timer_ = -1;
  bool is_timer_set_ = false;
  base::Clock::time_point timer_end_;  // asking the clock is no system call
  os::ForkMark mark_;
};

}  // namespace farheap::store::redis
