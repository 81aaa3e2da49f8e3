// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "counted_program.hpp"

namespace farheap::contexts {
namespace {

// Who writes the profile reads all trees while their threads count, and fold, on.
TEST(ContextTree, IsReadWhileItsThreadGoesOn) {
  const Functions functions(40);
  std::atomic<bool> goes_on{true};
  std::vector<std::unique_ptr<Program>> programs;
  for (const unsigned seed : {21u, 22u}) {
    programs.push_back(std::make_unique<Program>(functions, seed));
    programs.back()->has_reference = false;
  }
  std::vector<std::thread> threads;
  for (const auto& program : programs) {
    threads.emplace_back([&functions, &program] {
      while (program->folds < 10) step(*program, functions);
    });
  }
  std::uint64_t looks = 0, most = 0;
  std::thread reader([&] {
    while (goes_on) {
      for (const auto& program : programs) {
        Tree& tree = program->tree();
        tree.hold();
        std::uint64_t found = 0;
        for (const Node* block = tree.blocks(); block != nullptr; block = block->next, ++found) {
          // All that is above it is there.
          for (const Node* one = block; one != &tree.root(); one = one->parent) ASSERT_NE(one->kept, nullptr);
        }
        tree.let_go();
        most = std::max(most, found);
      }
      ++looks;
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  goes_on = false;
  reader.join();
  EXPECT_GT(looks, 0u);
  EXPECT_GT(most, 100u);
  for (const auto& program : programs) program->expect_whole(Program::Sites::kSome);
}

}  // namespace
}  // namespace farheap::contexts
