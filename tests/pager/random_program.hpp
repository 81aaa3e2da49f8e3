// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that reads, writes, sweeps, discards and hints at random, beside a simple model of its memory: each page
// holds one number in all its words.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "array_world.hpp"
#include "tests/steps.hpp"
#include "tests/words.hpp"

namespace farheap::pager::testing {

struct Program {
  explicit Program(World& its_world, std::uint64_t pages) : world(its_world), model(pages) {}
  World& world;
  struct Cell {
    std::mutex mutex;
    std::uint64_t value = 0;   // 0: fresh or discarded
    std::uint64_t before = 0;  // what it was before its last write or discard
  };
  std::vector<Cell> model;
  std::atomic<std::uint64_t> wrong{0};

  void read(PageNumber page, std::byte* buffer) {
    std::lock_guard lock(model[page].mutex);
    world.touch(page, false, buffer,
                [&](PageBytes& bytes) { wrong += !test::repeats_word(bytes.data(), kPageBytes, model[page].value); });
  }
  void write(PageNumber page, std::uint64_t value, std::byte* buffer) {
    std::lock_guard lock(model[page].mutex);
    put(page, value, buffer);
  }
  // The page gets what it has once more, or what it had before. The store may still have those bytes.
  void write_again(PageNumber page, bool before, std::byte* buffer) {
    std::lock_guard lock(model[page].mutex);
    put(page, before ? model[page].before : model[page].value, buffer);
  }
  void discard(PageNumber first, std::uint64_t count) {
    std::vector<std::unique_lock<std::mutex>> locks;
    for (std::uint64_t i = 0; i < count; ++i) locks.emplace_back(model[first + i].mutex);
    world.pager->discard(first, count);
    for (std::uint64_t i = 0; i < count; ++i) note(model[first + i], 0);
  }
  // Reads neighbouring pages, which may so come together. Then every other one is given back, and gets the same
  // contents anew.
  void renew_neighbours(PageNumber first, std::uint64_t count, std::byte* buffer) {
    for (PageNumber page = first; page < first + count; ++page) read(page, buffer);
    for (PageNumber page = first + 1; page < first + count; page += 2) {
      discard(page, 1);
      write_again(page, true, buffer);
    }
  }

 private:
  static void note(Cell& cell, std::uint64_t value) {
    if (value != cell.value) cell.before = std::exchange(cell.value, value);
  }
  void put(PageNumber page, std::uint64_t value, std::byte* buffer) {
    note(model[page], value);
    // By halves: between two words of a program the page may have left.
    for (const std::size_t half : {std::size_t{0}, kPageBytes / 2}) {
      world.touch(page, true, buffer,
                  [&](PageBytes& bytes) { test::repeat_word(bytes.data() + half, kPageBytes / 2, value); });
    }
  }
};

// By the program or by its plan, or none any more. Nobody keeps to it.
inline void say_an_order(Program& program, std::uint64_t pages, std::mt19937_64& random) {
  const auto from = random() % 2 == 0 ? OrderFrom::kPlan : OrderFrom::kProgram;
  if (random() % 3 == 0) return program.world.pager->expect(nullptr, from);
  auto order = std::make_shared<PageOrder>(random() % 100);
  const std::uint64_t uses = 1 + random() % (2 * pages);
  for (PageNumber page = random() % pages, i = 0; i < uses; ++i, page = random() % 50 == 0 ? random() : page + 1) {
    order->add_use(page % pages);
  }
  const bool again = random() % 2 == 0;
  order->finish(again ? 0 : PageOrder::kNone, again ? uses : 0);
  program.world.pager->expect(std::move(order), from);
  program.world.pager->weigh_order();
}

inline void run_thread(Program& program, std::uint64_t pages, std::uint64_t seed, int steps) {
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
    } else if (dice < 65) {
      program.write(page, random() % 5 == 0 ? 0 : random(), buffer[0].data());
    } else if (dice < 75) {
      program.write_again(page, random() % 2 == 0, buffer[0].data());
    } else if (dice < 85) {  // a sweep, either way
      const std::uint64_t length = random() % 200;
      for (std::uint64_t i = 0; i < length; ++i) {
        const PageNumber at = dice < 82 ? (page + i) % pages : (page + pages - i) % pages;
        dice % 2 == 0 ? program.read(at, buffer[0].data()) : program.write(at, random(), buffer[0].data());
      }
    } else if (dice < 90) {
      const std::uint64_t count = 1 + random() % 40;
      if (dice < 88 && page + count <= pages) program.discard(page, count);
      if (dice >= 88) program.renew_neighbours(page / 8 * 8, 8, buffer[0].data());
    } else if (dice < 97) {
      const auto kind = static_cast<HintKind>(random() % 9);
      const std::uint64_t count = std::min<std::uint64_t>(1 + random() % 300, pages - page);
      // A loop comes or does not, and some are larger than memory.
      const bool is_long = kind >= HintKind::kLoopForward && random() % 2 == 0;
      program.world.pager->hint({kind, page, is_long ? 20 * count : count});
      if (dice == 96) say_an_order(program, pages, random);
    } else if (dice < 98) {
      program.world.view.refuse(page, random() % 2 == 0);
      for (int i = 0; i < 20; ++i) (void)program.world.pager->watch(random() % pages);
    } else {
      program.world.budget.pages = 300 + random() % 600;
    }
  }
}

// Threads run at random; then each page is read once more, and nothing may be wrong.
inline void run_and_compare(World& world, const WorldOptions& options, int threads) {
  Program program(world, options.pages);
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] { run_thread(program, options.pages, options.seed * 100 + i, test::steps(3000, 3)); });
  }
  for (auto& worker : workers) worker.join();
  std::vector<PageBytes> buffer(512);
  for (PageNumber page = 0; page < options.pages; ++page) program.read(page, buffer[0].data());
  EXPECT_EQ(program.wrong, 0u);
  EXPECT_EQ(world.view.broken_rules, 0);
  EXPECT_TRUE(world.lost.empty()) << world.lost[0];
  EXPECT_GT(world.counters.faults_store, 0u);
  world.stop();
  world.pager->freeze();
  world.pager->thaw();
  EXPECT_EQ(world.pager->check(), "");
}

}  // namespace farheap::pager::testing
