// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What heaps need of the stack of the thread that calls: programs with many threads give them little.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <farheap/farheap.hpp>
#include <functional>
#include <string>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

// Runs `body` on a stack of its own and returns how many bytes of it were written to.
std::size_t stack_used(const std::function<void()>& body) {
  constexpr std::size_t kBytes = 256 << 10;
  constexpr unsigned char kUntouched = 0xa7;
  void* const stack = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(stack, kUntouched, kBytes);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kBytes);
  const auto call = [](void* what) -> void* {
    (*static_cast<const std::function<void()>*>(what))();
    return nullptr;
  };
  pthread_t thread;
  EXPECT_EQ(pthread_create(&thread, &attributes, call, const_cast<std::function<void()>*>(&body)), 0);
  pthread_join(thread, nullptr);
  const auto* const bytes = static_cast<const unsigned char*>(stack);
  const auto* const deepest = std::find_if(bytes, bytes + kBytes, [](unsigned char c) { return c != kUntouched; });
  const auto used = static_cast<std::size_t>(bytes + kBytes - deepest);
  munmap(stack, kBytes);
  return used;
}

class SmallStack : public ::testing::TestWithParam<std::string> {};

// A thread of 32 KiB keeps half of it for the program. What it takes to begin a thread counts, too.
TEST_P(SmallStack, IsEnoughToChangeAndCommit) {
  const HeapFolder folder;
  Heap heap = must(Heap::create(GetParam() + folder.uri(), kSmall));
  auto* const array = static_cast<char*>(heap.allocate(48 << 20));
  ASSERT_NE(array, nullptr);
  std::string why;
  const auto keep = [&](const Status& status) {
    if (!status) why = status.error().message();
  };
  const std::size_t nothing = stack_used([] {});
  const std::size_t used = stack_used([&] {
    for (int round = 1; round < 4; ++round) {
      for (std::size_t at = 0; at < (48 << 20); at += 4096) array[at] = static_cast<char>(round);
      keep(heap.commit());
      *heap.find_or_construct<int>("number")(0) = round;
      keep(heap.commit());
    }
    keep(heap.snapshot("a snapshot"));
  });
  EXPECT_EQ(why, "");
  EXPECT_LE(used - nothing, 12 << 10);
}

INSTANTIATE_TEST_SUITE_P(Stores, SmallStack, ::testing::Values("", "checksum+"),
                         [](const auto& one) { return "Store" + std::to_string(one.index); });

}  // namespace
}  // namespace farheap::testing
