// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Allocators beside farheap::allocator: one container type in and outside of heaps, and what assignments keep.
#include <gtest/gtest.h>

#include <farheap/containers/offset.hpp>
#include <farheap/containers/std.hpp>
#include <map>
#include <vector>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

class AllocatorsTest : public ::testing::Test {
 protected:
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
};

template <class Numbers>
void in_and_out(Heap& heap) {
  Numbers outside;
  for (int i = 0; i < 1000; ++i) outside.push_back(i);
  EXPECT_FALSE(heap.owns(std::to_address(outside.data())));
  auto& inside = *heap.construct<Numbers>(anonymous_instance)(heap.allocator<int>());
  inside = outside;
  EXPECT_TRUE(heap.owns(std::to_address(inside.data())));
  inside.clear();
  inside.shrink_to_fit();
  inside = std::move(outside);  // of unequal memory: copied
  EXPECT_TRUE(heap.owns(std::to_address(inside.data())));
  EXPECT_EQ(inside.size(), 1000u);
  EXPECT_EQ(inside[999], 999);
  Numbers out_again;
  out_again = inside;
  EXPECT_FALSE(heap.owns(std::to_address(out_again.data())));
  EXPECT_EQ(out_again[500], 500);
  EXPECT_TRUE(heap.destroy_ptr(&inside));
}

TEST_F(AllocatorsTest, OneTypeInAndOutsideOfAHeap) {
  in_and_out<std::vector<int, fallback_allocator<int>>>(heap);
  in_and_out<boost::container::vector<int, offset::fallback_allocator<int>>>(heap);
  EXPECT_EQ(heap.statistics().objects, 0u);
}

TEST_F(AllocatorsTest, AScopedFallbackReachesTheElements) {
  using Text = std::basic_string<char, std::char_traits<char>, fallback_allocator<char>>;
  using Texts = std::vector<Text, scoped_fallback_allocator<Text>>;
  const std::string long_text(100, 'x');
  Texts outside;
  outside.emplace_back(long_text.c_str());
  EXPECT_FALSE(heap.owns(outside[0].data()));
  auto& inside = *heap.construct<Texts>("texts")(heap.allocator<std::byte>());
  inside.emplace_back(long_text.c_str());
  inside.push_back(outside[0]);
  EXPECT_TRUE(heap.owns(inside[0].data()));
  EXPECT_TRUE(heap.owns(inside[1].data()));
  EXPECT_EQ(inside[1], long_text.c_str());
}

TEST_F(AllocatorsTest, AnAssignedContainerStaysInItsHeap) {
  Heap other = must(Heap::create(folder.uri("other"), kSmall));
  auto& here = *heap.construct<vector<int>>("here")(heap.allocator<int>());
  auto& there = *other.construct<vector<int>>("there")(other.allocator<int>());
  there.assign(1000, 5);
  here = std::move(there);
  EXPECT_TRUE(heap.owns(here.data()));
  EXPECT_EQ(here.at(999), 5);
}

TEST_F(AllocatorsTest, TheyAreMadeFromEachOther) {
  const allocator<int> plain = heap.allocator<int>();
  const offset_allocator<char> offsets(plain);
  EXPECT_EQ(offsets, offset_allocator<char>(heap));
  EXPECT_EQ(offset_allocator<long>(offsets).root(), plain.root());
  const fallback_allocator<int> kept(heap);
  EXPECT_TRUE(kept.in_heap());
  EXPECT_EQ(kept, fallback_allocator<long>(plain));
  EXPECT_FALSE(fallback_allocator<int>() == kept);
  EXPECT_TRUE(fallback_allocator<int>() == fallback_allocator<long>());
  EXPECT_TRUE(offset::fallback_allocator<int>(plain).in_heap());
}

}  // namespace
}  // namespace farheap::testing
