// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/lead.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <thread>
#include <vector>

namespace farheap::pager {
namespace {

TEST(LeadTest, OneAtATimeHasIt) {
  Lead lead;
  int inside = 0, times = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        if (!lead.take([] { return true; })) continue;
        EXPECT_EQ(++inside, 1);
        ++times;
        --inside;
        lead.give();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(times, 8000);
}

TEST(LeadTest, WhoIsWantedElsewhereGoesWhenToldThoughNobodyGivesIt) {
  Lead lead;
  std::atomic<bool> wanted{true}, asked{false};
  ASSERT_TRUE(lead.take([] { return true; }));
  std::thread other([&] {
    EXPECT_FALSE(lead.take([&] {
      asked = true;
      return wanted.load();
    }));
  });
  while (!asked) std::this_thread::yield();
  wanted = false;
  lead.tell();
  other.join();
  lead.give();
}

// As the handlers of a FaultLoop: more desks are opened while they wait at, or have the lead of, the ones before. A
// queue is looked after at every moment by who sleeps, or will be by one who does not.
TEST(LeadTest, EveryQueueIsServedWhileDesksAreOpened) {
  constexpr unsigned kQueues = 4, kHandlers = 8;
  for (int round = 0; round < 40; ++round) {
    std::vector<Lead> leads(kQueues);
    std::vector<std::atomic<int>> events(kQueues);
    std::atomic<unsigned> awake{1};
    std::atomic<int> left{200}, served{0};
    const auto desks = [&] { return std::bit_floor(std::clamp(awake.load() / 2, 1u, kQueues)); };
    std::vector<std::thread> handlers;
    for (unsigned number = 0; number < kHandlers; ++number) {
      handlers.emplace_back([&, number] {
        while (awake.load() <= number && left > 0) std::this_thread::yield();
        while (left > 0) {
          const unsigned desk = number % desks();
          if (!leads[desk].take([&] { return number % desks() == desk; })) continue;
          // Sleeps as one who polls: what it looks after is settled before, and only an event wakes it.
          const unsigned step = desks();
          if (number % step != desk) {
            leads[desk].give();
            continue;
          }
          for (bool has_served = false; !has_served && left > 0;) {
            for (unsigned queue = desk; queue < kQueues && !has_served; queue += step) {
              int waiting = events[queue].load();
              has_served = waiting > 0 && events[queue].compare_exchange_strong(waiting, waiting - 1);
            }
            if (!has_served) std::this_thread::yield();
          }
          ++served;
          leads[desk].give();
          if (number == 0 || served % 16 == 0) {
            unsigned now = awake.load();
            if (now < kHandlers && awake.compare_exchange_strong(now, now + 1)) {
              for (Lead& one : leads) one.tell();
            }
          }
        }
        for (Lead& one : leads) one.tell();
      });
    }
    // One fault at a time, as of one thread: it waits until it is served.
    for (int i = 0; i < 200; ++i, --left) {
      std::atomic<int>& queue = events[static_cast<unsigned>(i * 7 + round) % kQueues];
      ++queue;
      while (queue != 0) std::this_thread::yield();
    }
    for (std::thread& handler : handlers) handler.join();
  }
}

}  // namespace
}  // namespace farheap::pager
