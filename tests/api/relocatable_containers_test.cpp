// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Containers of relocatable heaps: a copy of the heap's files opens beside it, at another address, and both go on.
#include <gtest/gtest.h>

#include <farheap/concurrent_map.hpp>
#include <farheap/containers/offset.hpp>
#include <farheap/json.hpp>
#include <farheap/string_store.hpp>
#include <filesystem>
#include <string>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

using Words = offset::map<offset::string, offset::vector<int>>;
using Table = offset::unordered_map<int, int>;
using Counts = concurrent_map<int, int, boost::hash<int>, std::equal_to<>, offset_allocator<std::pair<const int, int>>>;
using Store = string_key_store<int, offset_allocator<std::byte>>;

constexpr int kKeysOfEach = 2000;

std::string key_of(int i) { return "a key longer than a short string holds: " + std::to_string(i); }

void put(Heap& heap, int first) {
  const offset_allocator<std::byte> allocator(heap);
  auto& words = *heap.find_or_construct<Words>("words")(allocator);
  auto& table = *heap.find_or_construct<Table>("table")(allocator);
  auto& counts = *heap.find_or_construct<Counts>("counts")(allocator);
  auto& store = *heap.find_or_construct<Store>("store")(allocator);
  auto& document = *heap.find_or_construct<json::offset_value>("document")(allocator);
  for (int i = first; i < first + kKeysOfEach; ++i) {
    words[offset::string(key_of(i).c_str(), allocator)].push_back(i);
    table[i] = i;
    counts.edit(i)->second = i;
    store.insert(key_of(i), i);
    document[key_of(i)] = i;
  }
}

// Of the keys from `first`, how many are in all of them.
int found(const Heap& heap, int first) {
  const auto& words = *heap.find<Words>("words");
  const auto& table = *heap.find<Table>("table");
  const Counts& counts = *heap.find<Counts>("counts");
  const Store& store = *heap.find<Store>("store");
  const json::offset_value& document = *heap.find<json::offset_value>("document");
  int count = 0;
  for (int i = first; i < first + kKeysOfEach; ++i) {
    const auto word = words.find(key_of(i).c_str());
    const auto entry = table.find(i);
    const auto stored = store.find(key_of(i));
    const auto* const member = document.find(key_of(i));
    count += word != words.end() && word->second.at(0) == i && entry != table.end() && entry->second == i &&
             counts.find(i) == i && stored != store.end() && stored->second == i && member != nullptr &&
             member->as_int64() == i;
  }
  return count;
}

TEST(RelocatableContainersTest, ACopyOpensBesideItsOriginalAndBothGoOn) {
  HeapFolder folder;
  HeapOptions options = kSmall;
  options.relocatable = true;
  {
    Heap heap = must(Heap::create(folder.uri("a"), options));
    put(heap, 0);
    ASSERT_TRUE(heap.commit());
  }
  for (const char* const end : {"", ".versions"}) {
    std::filesystem::copy_file(folder.file("a") + end, folder.file("b") + end);
  }
  {
    Heap original = must(Heap::open(folder.uri("a"), options));
    Heap copy = must(Heap::open(folder.uri("b"), options));
    EXPECT_NE(original.find<Words>("words"), copy.find<Words>("words"));
    EXPECT_EQ(found(original, 0), kKeysOfEach);
    EXPECT_EQ(found(copy, 0), kKeysOfEach);
    put(original, 100'000);
    put(copy, 200'000);
    EXPECT_TRUE(copy.owns(copy.find<Store>("store")->find(key_of(200'001))->first.data()));
    ASSERT_TRUE(original.commit());
    ASSERT_TRUE(copy.commit());
  }
  Heap copy = must(Heap::open(folder.uri("b"), options));
  Heap original = must(Heap::open(folder.uri("a"), options));  // the other way round
  EXPECT_EQ(found(original, 0) + found(original, 100'000), 2 * kKeysOfEach);
  EXPECT_EQ(found(copy, 0) + found(copy, 200'000), 2 * kKeysOfEach);
  EXPECT_EQ(found(original, 200'000), 0);
  EXPECT_EQ(found(copy, 100'000), 0);
  EXPECT_TRUE(copy.destroy<Words>("words"));
  EXPECT_TRUE(copy.destroy<Counts>("counts"));
  EXPECT_TRUE(copy.destroy<json::offset_value>("document"));
}

}  // namespace
}  // namespace farheap::testing
