// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include <thread>

#include "heap/heap.hpp"
#include "spy_space.hpp"

namespace farheap::heap {
namespace {

class HeapMisuseDeathTest : public testing::Test {
 protected:
  void free_and_flush(void* pointer) {
    heap_.free(pointer);
    heap_.flush_thread_cache();
  }
  SpySpace space_;
  Heap heap_{space_};
};

TEST_F(HeapMisuseDeathTest, FreedTwice) {
  void* object = heap_.allocate(100);
  void* other = heap_.allocate(100);
  heap_.free(object);
  EXPECT_DEATH(free_and_flush(object), "farheap: the program freed 0x[0-9a-f]+, which is free already");
  heap_.flush_thread_cache();
  EXPECT_DEATH(free_and_flush(object), "which is free already");
  heap_.free(other);
}

TEST_F(HeapMisuseDeathTest, FreedTwiceByAnotherThread) {
  void* object = heap_.allocate(100);
  std::thread([&] { heap_.free(object); }).join();
  EXPECT_DEATH(free_and_flush(object), "which is free already");
  EXPECT_DEATH(std::thread([&] { heap_.free(object); }).join(), "which is free already");  // at its end
}

TEST_F(HeapMisuseDeathTest, FreedTwiceLarge) {
  void* object = heap_.allocate(100'000);
  heap_.free(object);
  EXPECT_DEATH(heap_.free(object), "is not the start of an object, or was freed before");
  EXPECT_DEATH((void)heap_.usable_size(object), "is not the start of an object, or was freed before");
}

TEST_F(HeapMisuseDeathTest, NotTheStartOfAnObject) {
  auto* object = static_cast<std::byte*>(heap_.allocate(100));
  EXPECT_DEATH(free_and_flush(object + 16), "is not the start of an object");
  EXPECT_DEATH((void)heap_.reallocate(object + 16, 10), "is not the start of an object");
  auto* large = static_cast<std::byte*>(heap_.allocate(100'000));
  EXPECT_DEATH(heap_.free(large + 4096), "is not the start of an object");
  EXPECT_DEATH(heap_.free(large + 8), "is not the start of an object");
}

TEST_F(HeapMisuseDeathTest, NotOfThisHeap) {
  int local = 0;
  EXPECT_DEATH(heap_.free(&local), "lies outside of the heap");
  EXPECT_DEATH((void)heap_.usable_size(&local), "lies outside of the heap");
}

TEST_F(HeapMisuseDeathTest, NeverHandedOut) {
  void* object = heap_.allocate(100);
  EXPECT_DEATH(heap_.free(static_cast<std::byte*>(object) + 64 * base::kMiB), "is not the start of an object");
}

}  // namespace
}  // namespace farheap::heap
