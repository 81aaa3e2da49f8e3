// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The directory of a kept heap without types: what other interfaces to a heap stand on.
#include <gtest/gtest.h>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

TEST(KeptHeapEntriesTest, EntriesAreFoundAddedAndRemovedWithoutTypes) {
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  int* const numbers = heap.construct<int>("numbers")[3](7);
  ASSERT_TRUE(heap.describe(numbers, "three sevens"));
  const auto found = heap.entry(ObjectKind::kNamed, "numbers");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->address, numbers);
  EXPECT_EQ(found->length, 3U);
  EXPECT_EQ(found->element_bytes, sizeof(int));
  EXPECT_EQ(found->type, typeid(int).name());
  EXPECT_EQ(found->description, "three sevens");
  EXPECT_EQ(heap.entry(numbers)->name, "numbers");
  EXPECT_FALSE(heap.entry(ObjectKind::kUnique, "numbers"));
  EXPECT_FALSE(heap.entry(&folder));

  void* const memory = heap.allocate(16);
  const ObjectEntry mine{.name = "mine", .type = "x", .length = 2, .element_bytes = 8, .address = memory};
  EXPECT_TRUE(heap.add_entry(mine));
  EXPECT_FALSE(heap.add_entry(mine)) << "twice under one name";
  EXPECT_EQ(heap.remove_entry(ObjectKind::kNamed, "mine").length, 2U);
  EXPECT_EQ(heap.remove_entry(ObjectKind::kNamed, "mine").first, nullptr);
  EXPECT_EQ(heap.remove_entry(memory).first, nullptr);
  heap.deallocate(memory);
  EXPECT_EQ(heap.remove_entry(numbers).first, numbers);
  EXPECT_EQ(heap.find<int>("numbers"), nullptr);
  EXPECT_EQ(numbers[2], 7) << "its memory stays";
  heap.deallocate(numbers);
}

TEST(KeptHeapEntriesTest, WhenAllIsFreedTheTableOfNamesIsLeft) {
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  EXPECT_EQ(heap.statistics().allocated_bytes, heap.statistics().index_bytes);
  for (int i = 0; i < 500; ++i) (void)heap.construct<int>(std::to_string(i))(i);
  EXPECT_GT(heap.statistics().allocated_bytes, heap.statistics().index_bytes);
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(heap.destroy<int>(std::to_string(i)));
  EXPECT_GT(heap.statistics().index_bytes, 0U);
  EXPECT_EQ(heap.statistics().allocated_bytes, heap.statistics().index_bytes);
}

TEST(KeptHeapEntriesTest, AnObjectIsAsFarFromTheHeapsAddressAsWhenTheHeapIsLookedAt) {
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  const auto* const object = reinterpret_cast<const std::byte*>(heap.construct<int>("one")(1));
  ASSERT_TRUE(heap.commit());
  const HeapFacts facts = Heap::look(folder.uri()).value();
  ASSERT_EQ(facts.objects.size(), 1U);
  EXPECT_EQ(static_cast<std::uint64_t>(object - static_cast<const std::byte*>(heap.address())),
            reinterpret_cast<std::uintptr_t>(facts.objects[0].address) - facts.address);
}

TEST(KeptHeapEntriesTest, WhoAsksForAWriterTakesNothing) {
  HeapFolder folder;
  EXPECT_EQ(Heap::has_writer(folder.uri()).error().code, ErrorCode::kNotFound);
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    EXPECT_TRUE(Heap::has_writer(folder.uri()).value());
  }
  EXPECT_FALSE(Heap::has_writer(folder.uri()).value());
  Heap reader = must(Heap::open_read_only(folder.uri(), kSmall));
  EXPECT_FALSE(Heap::has_writer(folder.uri()).value());
}

}  // namespace
}  // namespace farheap::testing
