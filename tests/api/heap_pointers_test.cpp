// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pointers out of a heap: what the compiler cannot see, because it is a member of somebody's class, is found by its
// looks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <farheap/containers/std.hpp>
#include <farheap/heap_facts.hpp>
#include <new>
#include <string>
#include <vector>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

// No text ends in the last byte of its addresses, nor in that of the end of 100 ints there. Addresses of malloc()
// looked like text sometimes.
template <class T>
struct NoTextInAddresses {
  using value_type = T;
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kAlignment)); }
  void deallocate(T* at, std::size_t) { ::operator delete(at, kAlignment); }
  bool operator==(const NoTextInAddresses&) const = default;
  static constexpr std::align_val_t kAlignment{256};
};
using Outside = std::vector<int, NoTextInAddresses<int>>;

struct Hidden {  // its member is not seen when it is compiled
  int number = 7;
  Outside outside = Outside(100, 1);
};

TEST(HeapPointersTest, PointersOutOfTheHeapAreFoundAndSaidToBeAGuess) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "NOT TESTED: a sanitizer's malloc() has memory where no other has it";
#endif
  HeapFolder folder;
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    (void)heap.construct<Hidden>("hidden")[3]();
    auto* const list = heap.construct<farheap::vector<Hidden>>("list")();
    list->resize(4);
    auto* const sound = heap.construct<farheap::map<farheap::string, farheap::vector<int>>>("sound")();
    for (int i = 0; i < 1000; ++i) sound->emplace("a word that takes memory of its own " + std::to_string(i), i % 10);
    // Into the program. Its last byte is none of a text's, as those of most addresses, by chance.
    alignas(256) static const char of_the_program[256] = "of the program";
    (void)heap.construct<std::string_view>("text")(of_the_program, 14);
    std::uint64_t text = 0;
    std::memcpy(&text, "abcdeU", 6);
    (void)heap.construct<std::uint64_t>("looks")(text);  // text, and not a pointer, though it could be one
    ASSERT_TRUE(heap.commit());
  }
  const auto found = Heap::foreign_pointers(folder.uri());
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->left_out, 0u);
  const auto words_of = [&](std::string_view object, bool is_own) {
    std::uint64_t words = 0;
    for (const auto& place : found->places) {
      if (place.object == object && place.is_own == is_own) words += place.count;
    }
    return words;
  };
  EXPECT_EQ(words_of("hidden", true), 9u) << "three pointers in each of three vectors";
  EXPECT_EQ(words_of("list", false), 12u) << "in memory that it leads to";
  EXPECT_EQ(words_of("list", true), 0u);
  EXPECT_EQ(words_of("sound", true) + words_of("sound", false), 0u);
  EXPECT_EQ(words_of("text", true), 1u);
  EXPECT_EQ(words_of("looks", true), 0u);
  EXPECT_EQ(found->words, 22u);
  const auto first = std::ranges::find(found->places, "hidden", &ForeignPointers::Place::object);
  ASSERT_NE(first, found->places.end());
  EXPECT_EQ(first->bytes, sizeof(Hidden));
  EXPECT_EQ(first->offset % 8, 0u);
  EXPECT_EQ(first->count, 3u);
}

TEST(HeapPointersTest, AHeapWithoutAnyHasNone) {
  HeapFolder folder;
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    auto* const map = heap.construct<farheap::unordered_map<farheap::string, double>>("map")();
    for (int i = 0; i < 5000; ++i) map->emplace(std::to_string(i), i / 7.0);
    (void)heap.construct<std::pmr::vector<int>>("pmr")(100);
    for (int i = 0; i < 100; ++i) heap.deallocate(heap.allocate(static_cast<std::size_t>(i) * 100));
    void* const sparse = heap.allocate(1_GiB);  // never touched, so never read
    ASSERT_NE(sparse, nullptr);
    ASSERT_TRUE(heap.commit());
  }
  const auto found = Heap::foreign_pointers(folder.uri());
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->words, 0u);
  EXPECT_TRUE(found->places.empty());
}

}  // namespace
}  // namespace farheap::testing
