// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that make more contexts than there is room for: what is folded, what stays, and what it all takes.
#include <gtest/gtest.h>

#include "counted_program.hpp"

namespace farheap::contexts {
namespace {

TEST(ContextTree, FoldsAsAPlainTreeOfTheSameProgramDoes) {
  const Functions functions(40);
  for (const unsigned seed : {1u, 2u}) {
    Program program(functions, seed);
    while (program.folds < 8) step(program, functions);
    EXPECT_GT(program.folded, 2000u);
    EXPECT_LE(program.most_held, kMost);
    program.expect_whole();
  }
}

TEST(ContextTree, TakesNoMoreHoweverLongTheProgramRuns) {
  const Functions functions(60);
  Program program(functions, 7);
  program.has_reference = false;
  for (int i = 0; i < 150'000; ++i) step(program, functions);
  EXPECT_GT(program.folds, 40u);
  EXPECT_LE(program.most_held, kMost);
  program.expect_whole();
}

// Visits of the context that f1, f2, f3 and f4 reach, one below the other.
std::uint64_t visits_of_chain(const Tree& tree, const Functions& functions) {
  for (const auto& [path, one] : figures_of(tree)) {
    if (path.size() != 4) continue;
    bool is_chain = true;
    for (std::uint32_t i = 0; i < 4; ++i) is_chain &= path[i] == std::pair(&functions[i], std::uint32_t{0});
    if (is_chain) return one.entries;
  }
  return 0;
}

// What comes late finds the tree full of what was hotter for long, and cannot be hotter than that in all.
TEST(ContextTree, WhatBecomesHotLateStays) {
  const Functions functions(60);
  Program program(functions, 3);
  program.has_reference = false;
  while (program.folds < 20) {
    step(program, functions);
    if (program.depth() != 0) program.work(50'000'000);
  }
  while (program.depth() != 0) program.end();
  const std::uint64_t before = program.folds;
  std::uint64_t visits = 0;
  while (program.folds < before + 10) {
    for (std::uint32_t i = 0; i < 4; ++i) program.call(i);
    ++visits;
    program.work(3000);
    for (std::uint32_t i = 0; i < 4; ++i) program.end();
    for (int i = 0; i < 20; ++i) step(program, functions);
    while (program.depth() != 0) program.end();
  }
  EXPECT_LE(program.most_held, kMost);
  EXPECT_GT(visits_of_chain(program.tree(), functions), visits / 10 * 9);
  program.expect_whole();
}

// A function with a layout of its own finds room among those that have filled all of it.
TEST(ContextTree, MemoryGoesFromOneLayoutToAnother) {
  const Functions functions(60);
  Program program(functions, 5);
  program.has_reference = false;
  const auto fill_by = [&](std::uint32_t remainder, std::uint64_t folds) {
    for (const std::uint64_t until = program.folds + folds; program.folds < until;) {
      for (int depth = 0; depth < 8; ++depth) {
        program.call(program.any(3) * 20 + remainder);  // of one layout: loops of a fourth, slots of a fifth
        if (program.is_in_quiet()) break;
        program.work(10);
        program.call(program.any(60));
        if (program.is_in_quiet()) break;
      }
      while (program.depth() != 0) program.end();
    }
  };
  fill_by(0, 6);
  fill_by(19, 6);
  fill_by(7, 6);
  EXPECT_LE(program.most_held, kMost);
  program.expect_whole();
}

TEST(ContextTree, WithoutItsStacksFoldsNothingAndCountsBelowTheRoot) {
  const Functions functions(40);
  Program program(functions, 11);
  program.has_reference = false;
  program.stacks_can_be_read = false;
  for (int i = 0; i < 200'000; ++i) step(program, functions);
  EXPECT_GT(program.folds, 1u);
  EXPECT_EQ(sum_of(figures_of(program.tree())).folded, 0u);
  EXPECT_LE(program.most_held, kMost + (kMost >> 3)) << "one more context for each function";
  program.expect_whole(Program::Sites::kSome);  // tables of accesses have no room either
}

TEST(ContextTree, OfAForkedChildBeginsAnew) {
  const Functions functions(40);
  Program program(functions, 12);
  while (program.folds < 2) step(program, functions);
  program.tree().begin_anew_in_child();
  const Figures sum = sum_of(figures_of(program.tree()));
  EXPECT_EQ(sum, Figures{});
  EXPECT_TRUE(sites_of(program.tree()).empty());
}

}  // namespace
}  // namespace farheap::contexts
