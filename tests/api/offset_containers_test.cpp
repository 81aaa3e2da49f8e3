// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Containers with farheap::offset_allocator work wherever their bytes are: a heap's bytes are copied elsewhere, the
// heap is closed, and the copy is read.
#include <gtest/gtest.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <farheap/concurrent_map.hpp>
#include <farheap/containers/offset.hpp>
#include <farheap/json.hpp>
#include <farheap/string_store.hpp>
#include <forward_list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "container_cases.hpp"
#include "heap_copy.hpp"
#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

template <class Container>
class OffsetContainersTest : public ::testing::Test {
 protected:
  HeapFolder folder;
};

using OffsetContainerTypes =
    ::testing::Types<offset::vector<int>, offset::vector<bool>, offset::deque<int>, offset::list<int>,
                     offset::slist<int>, offset::string, offset::map<int, int>, offset::multimap<int, int>,
                     offset::set<int>, offset::multiset<int>, offset::flat_map<int, int>, offset::flat_set<int>,
                     offset::unordered_map<int, int>, offset::unordered_multimap<int, int>, offset::unordered_set<int>,
                     offset::unordered_multiset<int>, std::vector<int, offset_allocator<int>>,
                     std::deque<int, offset_allocator<int>>>;
TYPED_TEST_SUITE(OffsetContainersTest, OffsetContainerTypes);

TYPED_TEST(OffsetContainersTest, WorksAtAnotherAddressAndInTheNextRun) {
  std::unique_ptr<Heap> heap = std::make_unique<Heap>(must(Heap::create(this->folder.uri(), kSmall)));
  auto* const full = heap->construct<TypeParam>("full")(offset_allocator<std::byte>(*heap));
  auto* const empty = heap->construct<TypeParam>("empty")(heap->allocator<std::byte>());
  fill(*full);
  ASSERT_TRUE(heap->commit());
  {
    const Copy copy(*heap, full);
    heap.reset();  // who follows a pointer into it now ends the test
    const TypeParam& moved = copy.at_its_place(full);
    EXPECT_EQ(sum(moved), expected_sum<TypeParam>());
    EXPECT_EQ(found(moved), kElements);
    const TypeParam& moved_empty = copy.at_its_place(empty);
    EXPECT_TRUE(moved_empty.begin() == moved_empty.end());
  }
  heap = std::make_unique<Heap>(must(Heap::open(this->folder.uri(), kSmall)));
  auto* const again = heap->find<TypeParam>("full");
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(sum(*again), expected_sum<TypeParam>());
  again->clear();
  fill(*again);  // it takes memory from its heap in this run, too
  EXPECT_EQ(found(*again), kElements);
  EXPECT_TRUE(heap->destroy<TypeParam>("full"));
}

// Those that compile with an allocator of offset pointers, and keep raw ones all the same. Should one of these no
// longer die, farheap/containers/offset.hpp may name it.
template <class Container>
void is_not_for_offsets() {
  HeapFolder folder;
  auto heap = std::make_unique<Heap>(must(Heap::create(folder.uri(), kSmall)));
  auto* const full = heap->construct<Container>("full")(offset_allocator<std::byte>(*heap));
  fill(*full);
  const Copy copy(*heap, full);
  heap.reset();
  EXPECT_DEATH(std::fprintf(stderr, "%ld", sum(copy.at_its_place(full))), "");
}

TEST(OffsetContainers, ThoseOfTheOthersThatKeepRawPointers) {
  using IntPair = std::pair<const int, int>;
  is_not_for_offsets<std::vector<bool, offset_allocator<bool>>>();
  is_not_for_offsets<std::forward_list<int, offset_allocator<int>>>();
  is_not_for_offsets<std::unordered_map<int, int, std::hash<int>, std::equal_to<>, offset_allocator<IntPair>>>();
  is_not_for_offsets<
      boost::unordered_flat_map<int, int, boost::hash<int>, std::equal_to<>, offset_allocator<IntPair>>>();
}

TEST(OffsetContainers, TheHeapsOwnKindsWorkAtAnotherAddress) {
  using Map = concurrent_map<int, int, boost::hash<int>, std::equal_to<>, offset_allocator<std::pair<const int, int>>>;
  using Store = string_key_store<int, offset_allocator<std::byte>>;
  HeapFolder folder;
  auto heap = std::make_unique<Heap>(must(Heap::create(folder.uri(), kSmall)));
  const offset_allocator<std::byte> allocator(*heap);
  auto* const map = heap->construct<Map>("map")(allocator);
  auto* const store = heap->construct<Store>("store")(allocator);
  auto* const document = heap->construct<json::offset_value>("document")(allocator);
  for (int i = 0; i < kElements; ++i) {
    map->try_emplace(i, i + 1);
    store->insert("a key longer than a short string holds: " + std::to_string(i), i);
  }
  ASSERT_TRUE(json::parse_into(*document, R"({"a":[1,2,{"b":"a text longer than a short string holds"}]})"));
  const Copy copy(*heap, map);
  heap.reset();
  EXPECT_EQ(std::as_const(copy.at_its_place(map)).find(kElements - 1), kElements);
  EXPECT_EQ(copy.at_its_place(map).size(), std::size_t{kElements});
  const Store& moved_store = copy.at_its_place(store);
  EXPECT_EQ(moved_store.find("a key longer than a short string holds: 77")->second, 77);
  EXPECT_EQ(moved_store.size(), std::size_t{kElements});
  EXPECT_EQ(json::serialize(copy.at_its_place(document)).value(),
            R"({"a":[1,2,{"b":"a text longer than a short string holds"}]})");
}

TEST(OffsetContainers, OfContainersHandTheirAllocatorOn) {
  using WordMap = offset::map<offset::string, offset::vector<offset::string>>;
  HeapFolder folder;
  auto heap = std::make_unique<Heap>(must(Heap::create(folder.uri(), kSmall)));
  const offset_allocator<std::byte> allocator(*heap);
  auto* const words = heap->construct<WordMap>("words")(allocator);
  for (int i = 0; i < 100; ++i) {
    (*words)[offset::string("a key longer than a short string holds", allocator)].emplace_back(
        "and a long element in it");
  }
  const Copy copy(*heap, words);
  heap.reset();
  const WordMap& moved = copy.at_its_place(words);
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved.begin()->first, "a key longer than a short string holds");
  EXPECT_EQ(moved.begin()->second.at(99), "and a long element in it");
}

}  // namespace
}  // namespace farheap::testing
