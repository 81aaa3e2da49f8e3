// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The whole pager without userfaultfd against a simple model of a program's memory, while the store is slow and
// stumbles.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <memory>
#include <random>
#include <string>

#include "random_program.hpp"

namespace farheap::pager::testing::model_test {
namespace {

struct Case {
  const char* name;
  WorldOptions options;
  int threads;
};

// What nobody will do; but each block comes so often that a program that goes anywhere seems to follow it now and then.
std::shared_ptr<const PageOrder> wrong_order(std::uint64_t pages) {
  std::mt19937_64 random(1);
  auto order = std::make_shared<PageOrder>(16);
  for (int i = 0; i < 20'000; ++i) {
    const PageNumber page = random() % pages;
    for (PageNumber near = page; near < std::min(page + 8, pages); ++near) order->add_use(near);
  }
  order->finish();
  return order;
}

class ModelTest : public ::testing::TestWithParam<Case> {};

TEST_P(ModelTest, EveryByteIsWhatWasWritten) {
  const auto& [name, options, threads] = GetParam();
  World world(options);
  run_and_compare(world, options, threads);
  EXPECT_GT(world.counters.bytes_written, 0u) << "nothing ever left: the test tested nothing";
  EXPECT_GT(world.together, 0u) << "no reads were in flight together";
  if (options.guards) {
    EXPECT_GT(world.backing.shown_at_rest, 0u) << "every page was copied out of the store";
  }
  EXPECT_EQ(world.counters.guard_fetches != 0, options.guards);
  for (PageNumber page = 0; options.guards && page < options.pages; ++page) {
    ASSERT_EQ(world.away[page] != 0, is_away(world.pager->state(page))) << page;
  }
  const auto heat = world.heat->read().total();
  EXPECT_EQ(heat[base::Heat::kFresh], world.counters.faults_fresh);
  EXPECT_EQ(heat[base::Heat::kProbation], world.counters.faults_probation);
  EXPECT_EQ(heat[base::Heat::kStore], world.counters.faults_store);
  EXPECT_EQ(heat[base::Heat::kWaited], world.counters.faults_waited);
  EXPECT_EQ(heat[base::Heat::kBytesRead], world.counters.bytes_read);
  EXPECT_EQ(heat[base::Heat::kBytesWritten], world.counters.bytes_written);
}

bool sleeps(pid_t thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/stat", thread));
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  return name_end != std::string::npos && line.compare(name_end + 2, 1, "S") == 0;
}

// The child's evictor let faults through that were its parent's: a thousand times for each page that left.
TEST(PagerFork, AChildHasNoFaultsOfItsParentAtTheDoor) {
  World world({});
  Program program(world, 8);
  world.stop();
  world.pager->freeze();
  std::atomic<pid_t> faulting{0};
  std::thread thread([&] {
    std::vector<PageBytes> buffer(512);
    faulting = gettid();
    program.read(3, buffer[0].data());
  });
  while (faulting == 0 || !sleeps(faulting)) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    world.pager->thaw_in_child();
    _exit(world.pager->check().empty() ? 0 : 1);
  }
  world.pager->thaw();
  thread.join();
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// The pager's mutex was held while the backing was told that pages are zeros: faults waited until its books, or a block
// of them in the store, were at hand.
TEST(PagerLocks, NobodyWaitsForABackingThatForgets) {
  for (const bool vanish : {false, true}) {
    World world({.pages = 512, .memory_pages = 100, .evictors = 1});
    std::vector<std::thread> asking;
    std::atomic<unsigned> forgotten{0}, kept_waiting{0};
    world.backing.at_forget = [&] {  // by the evictor alone
      ++forgotten;
      if (kept_waiting != 0) return;
      auto has_answer = std::make_shared<std::promise<void>>();
      auto answer = has_answer->get_future();
      asking.emplace_back([&world, has_answer] {
        (void)world.pager->has_changes();
        has_answer->set_value();
      });
      if (answer.wait_for(std::chrono::seconds(10)) != std::future_status::ready) ++kept_waiting;
    };
    Program program(world, 512);
    std::vector<PageBytes> buffer(512);
    // Zeros that leave as such, or pages that are gone behind the pager's back.
    for (PageNumber page = 0; page < 512; ++page) {
      if (vanish) program.write(page, page + 1, buffer[0].data());
      program.read(page, buffer[0].data());
      if (vanish && page % 8 == 0) world.view.vanish(page);
    }
    world.stop();
    for (auto& thread : asking) thread.join();
    EXPECT_GT(forgotten, 0u);
    EXPECT_EQ(kept_waiting, 0u);
    EXPECT_EQ(world.view.broken_rules, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pager, ModelTest,
    ::testing::Values(
        Case{"one_thread", {.pages = 2048, .memory_pages = 500, .seed = 1}, 1},
        Case{"clock", {.pages = 4096, .memory_pages = 800, .policy = PolicyKind::kClock, .seed = 2}, 3},
        Case{"period", {.pages = 4096, .memory_pages = 800, .policy = PolicyKind::kPeriod, .seed = 21}, 3},
        Case{"s3fifo", {.pages = 4096, .memory_pages = 800, .seed = 3}, 3},
        Case{"wrong_order",
             {.pages = 4096,
              .memory_pages = 800,
              .policy = PolicyKind::kPeriod,
              .seed = 22,
              .expected_order = wrong_order(4096)},
             3},
        Case{"wrong_order_errors",
             {.pages = 2048,
              .memory_pages = 400,
              .faults = {.read_error = 0.02, .write_error = 0.02, .full = 0.1},
              .seed = 23,
              .expected_order = wrong_order(1024)},
             3},
        Case{"slow_store", {.pages = 2048, .memory_pages = 400, .faults = {.delay_us = 300}, .seed = 4}, 4},
        Case{"errors",
             {.pages = 2048, .memory_pages = 400, .faults = {.read_error = 0.02, .write_error = 0.02}, .seed = 5},
             3},
        Case{"full_disk", {.pages = 2048, .memory_pages = 400, .faults = {.full = 0.2, .delay_us = 50}, .seed = 6}, 3},
        Case{"no_read_ahead", {.pages = 2048, .memory_pages = 400, .seed = 7, .read_ahead_pages = 0}, 3},
        Case{"guards", {.pages = 2048, .memory_pages = 400, .faults = {.delay_us = 50}, .seed = 8, .guards = true}, 4},
        Case{"guards_errors",
             {.pages = 2048,
              .memory_pages = 400,
              .policy = PolicyKind::kPeriod,
              .faults = {.read_error = 0.02, .write_error = 0.02, .full = 0.1},
              .seed = 9,
              .guards = true},
             3}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace farheap::pager::testing::model_test
