// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The whole pager without userfaultfd against a simple model: each page of the program holds one number in all its
// words; threads read, write, sweep and discard at random while the store is slow and stumbles.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "array_world.hpp"

namespace farheap::pager::testing {
namespace {

constexpr std::size_t kWords = kPageBytes / 8;

struct Program {
  explicit Program(World& its_world, std::uint64_t pages) : world(its_world), model(pages) {}
  World& world;
  struct Cell {
    std::mutex mutex;
    std::uint64_t value = 0;  // 0: fresh or discarded
  };
  std::vector<Cell> model;
  std::atomic<std::uint64_t> wrong{0};

  void read(PageNumber page, std::byte* buffer) {
    std::lock_guard lock(model[page].mutex);
    world.touch(page, false, buffer, [&](PageBytes& bytes) {
      std::uint64_t words[kWords];
      std::memcpy(words, bytes.data(), kPageBytes);
      for (const auto word : words) wrong += word != model[page].value;
    });
  }
  void write(PageNumber page, std::uint64_t value, std::byte* buffer) {
    std::lock_guard lock(model[page].mutex);
    model[page].value = value;
    // Word by word, as a program does: between two words the page may have left.
    for (std::size_t half = 0; half < 2; ++half) {
      world.touch(page, true, buffer, [&](PageBytes& bytes) {
        for (std::size_t i = half * kWords / 2; i < (half + 1) * kWords / 2; ++i) {
          std::memcpy(bytes.data() + i * 8, &value, 8);
        }
      });
    }
  }
  void discard(PageNumber first, std::uint64_t count) {
    std::vector<std::unique_lock<std::mutex>> locks;
    for (std::uint64_t i = 0; i < count; ++i) locks.emplace_back(model[first + i].mutex);
    world.pager->discard(first, count);
    for (std::uint64_t i = 0; i < count; ++i) model[first + i].value = 0;
  }
};

void run_thread(Program& program, std::uint64_t pages, std::uint64_t seed, int steps) {
  std::mt19937_64 random(seed);
  std::vector<PageBytes> buffer(512);
  for (int step = 0; step < steps; ++step) {
    const auto dice = random() % 100;
    const PageNumber page = random() % pages;
    if (dice < 5) {
      std::vector<PageNumber> several(12);
      for (auto& one : several) one = random() % pages;
      program.world.fault_together(several, random);
    } else if (dice < 40) {
      program.read(page, buffer[0].data());
    } else if (dice < 75) {
      program.write(page, random() % 5 == 0 ? 0 : random(), buffer[0].data());
    } else if (dice < 85) {  // a sweep, either way
      const std::uint64_t length = random() % 200;
      for (std::uint64_t i = 0; i < length; ++i) {
        const PageNumber at = dice < 82 ? (page + i) % pages : (page + pages - i) % pages;
        dice % 2 == 0 ? program.read(at, buffer[0].data()) : program.write(at, random(), buffer[0].data());
      }
    } else if (dice < 90) {
      const std::uint64_t count = 1 + random() % 40;
      if (page + count <= pages) program.discard(page, count);
    } else if (dice < 97) {
      const auto kind = static_cast<HintKind>(random() % 8);
      const std::uint64_t count = std::min<std::uint64_t>(1 + random() % 300, pages - page);
      // A loop comes or does not, and some are larger than memory.
      const bool is_long = kind >= HintKind::kLoopForward && random() % 2 == 0;
      program.world.pager->hint({kind, page, is_long ? 20 * count : count});
    } else if (dice < 98) {
      program.world.view.refuse(page, random() % 2 == 0);
    } else {
      program.world.budget.pages = 300 + random() % 600;
    }
  }
}

struct Case {
  const char* name;
  WorldOptions options;
  int threads;
};

class ModelTest : public ::testing::TestWithParam<Case> {};

TEST_P(ModelTest, EveryByteIsWhatWasWritten) {
  const auto& [name, options, threads] = GetParam();
  World world(options);
  Program program(world, options.pages);
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] { run_thread(program, options.pages, options.seed * 100 + i, 3000); });
  }
  for (auto& worker : workers) worker.join();

  std::vector<PageBytes> buffer(512);
  for (PageNumber page = 0; page < options.pages; ++page) program.read(page, buffer[0].data());
  EXPECT_EQ(program.wrong, 0u);
  EXPECT_EQ(world.view.broken_rules, 0);
  EXPECT_TRUE(world.lost.empty()) << world.lost[0];
  EXPECT_GT(world.counters.bytes_written, 0u) << "nothing ever left: the test tested nothing";
  EXPECT_GT(world.counters.faults_store, 0u);
  EXPECT_GT(world.together, 0u) << "no reads were in flight together";
  if (options.guards) {
    EXPECT_GT(world.backing.shown_at_rest, 0u) << "every page was copied out of the store";
  }
  world.stop();
  world.pager->freeze();
  world.pager->thaw();
  EXPECT_EQ(world.pager->check(), "");
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

INSTANTIATE_TEST_SUITE_P(
    Pager, ModelTest,
    ::testing::Values(
        Case{"one_thread", {.pages = 2048, .memory_pages = 500, .seed = 1}, 1},
        Case{"clock", {.pages = 4096, .memory_pages = 800, .policy = PolicyKind::kClock, .seed = 2}, 3},
        Case{"period", {.pages = 4096, .memory_pages = 800, .policy = PolicyKind::kPeriod, .seed = 21}, 3},
        Case{"s3fifo", {.pages = 4096, .memory_pages = 800, .seed = 3}, 3},
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
}  // namespace farheap::pager::testing
