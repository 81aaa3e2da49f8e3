// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values by text: unique and repeated keys, there again, and found by any text.
#include <gtest/gtest.h>

#include <algorithm>
#include <farheap/containers/offset.hpp>
#include <farheap/string_store.hpp>
#include <vector>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

template <class Store>
class StringStoreTest : public ::testing::Test {
 protected:
  HeapFolder folder;
};
using Stores = ::testing::Types<string_key_store<long>, string_key_store<long, offset_allocator<std::byte>>>;
TYPED_TEST_SUITE(StringStoreTest, Stores);

std::string text_of(int i) {
  return "key number " + std::to_string(i) + (i % 2 == 0 ? " which is longer than short ones" : "");
}

TYPED_TEST(StringStoreTest, UniqueKeys) {
  constexpr int kKeys = 5000;
  {
    Heap heap = must(Heap::create(this->folder.uri(), kSmall));
    auto& store = *heap.construct<TypeParam>("store")(heap.allocator<std::byte>());
    EXPECT_EQ(store.keys(), KeyUse::kUnique);
    for (int i = 0; i < kKeys; ++i) EXPECT_TRUE(store.insert(text_of(i), i).second);
    const auto [there, is_new] = store.insert(text_of(7), 1000);
    EXPECT_FALSE(is_new);
    EXPECT_EQ(there->second, 7);
    EXPECT_TRUE(heap.owns(std::to_address(&*there)));
    ASSERT_TRUE(heap.commit());
  }
  Heap heap = must(Heap::open(this->folder.uri(), kSmall));
  auto& store = *heap.find<TypeParam>("store");
  EXPECT_EQ(store.size(), static_cast<std::size_t>(kKeys));
  int wrong = 0;
  for (int i = 0; i < kKeys; ++i) {
    const auto found = store.find(text_of(i));
    wrong += found == store.end() || found->second != i || std::string_view(found->first) != text_of(i);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(store.contains("key number"));
  EXPECT_FALSE(store.insert_or_assign(text_of(7), 70));
  EXPECT_TRUE(store.insert_or_assign("", 71));
  EXPECT_EQ(store.find(text_of(7))->second, 70);
  EXPECT_EQ(store.find("")->second, 71);
  EXPECT_EQ(store.erase(text_of(7)), 1u);
  EXPECT_EQ(store.erase(text_of(7)), 0u);
  EXPECT_EQ(store.size(), static_cast<std::size_t>(kKeys));
  long sum = 0;
  for (const auto& [key, value] : std::as_const(store)) sum += value;
  EXPECT_EQ(sum, kKeys * (kKeys - 1L) / 2 - 7 + 71);
  store.clear();
  EXPECT_TRUE(store.empty());
  EXPECT_TRUE(heap.destroy<TypeParam>("store"));
}

TYPED_TEST(StringStoreTest, RepeatedKeys) {
  Heap heap = must(Heap::create(this->folder.uri(), kSmall));
  auto& store = *heap.construct<TypeParam>("store")(heap.allocator<std::byte>(), KeyUse::kRepeated);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(store.insert(text_of(i % 10), i).second);
  EXPECT_EQ(store.count(text_of(3)), 10u);
  EXPECT_EQ(store.count("none"), 0u);
  std::vector<long> values;
  const auto [first, last] = store.equal_range(text_of(3));
  for (auto i = first; i != last; ++i) values.push_back(i->second);
  std::ranges::sort(values);
  EXPECT_EQ(values, (std::vector<long>{3, 13, 23, 33, 43, 53, 63, 73, 83, 93}));
  store.erase(store.find(text_of(3)));
  EXPECT_EQ(store.count(text_of(3)), 9u);
  EXPECT_EQ(store.erase(text_of(3)), 9u);
  EXPECT_EQ(store.size(), 90u);
  const TypeParam copy(store, store.get_allocator());
  store.clear();
  EXPECT_EQ(copy.count(text_of(4)), 10u);
}

TEST(StringStore, ValuesThatTakeAnAllocatorGetTheHeaps) {
  using Text = boost::container::basic_string<char, std::char_traits<char>, allocator<char>>;
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  auto& store = *heap.construct<string_key_store<Text>>("store")(heap.allocator<std::byte>());
  store.insert("key", "a value that is longer than a short string");
  store.insert("empty");
  EXPECT_TRUE(heap.owns(store.find("key")->second.data()));
  EXPECT_EQ(store.find("key")->second, "a value that is longer than a short string");
  EXPECT_EQ(store.find("empty")->second, "");
}

TEST(StringStore, OutsideOfAHeap) {
  string_key_store<int, fallback_allocator<std::byte>> store{fallback_allocator<std::byte>()};
  store.insert("one", 1);
  EXPECT_EQ(store.find("one")->second, 1);
}

// What is kept is found by them.
TEST(StringStore, HashesNeverChange) { EXPECT_EQ(detail::hash_text("farheap"), 0x495e'15a3'2b7b'3ca5u); }

}  // namespace
}  // namespace farheap::testing
