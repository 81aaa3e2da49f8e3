// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Containers with farheap::offset_allocator work wherever their bytes are: a heap's bytes are copied elsewhere, the
// heap is closed, and the copy is read.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <deque>
#include <farheap/containers/offset.hpp>
#include <memory>
#include <vector>

#include "container_cases.hpp"
#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

// What a heap has handed out around an object, at another address.
class Copy {
 public:
  Copy(Heap& heap, const void* object) : from_(page_of(object) - kAround) {
    bytes_ = heap.statistics().segment_bytes + 2 * kAround;
    to_ = static_cast<std::byte*>(
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (to_ == MAP_FAILED || !heap.owns(from_) || !heap.owns(from_ + bytes_)) abort();
    std::memcpy(to_, from_, bytes_);
  }
  ~Copy() { munmap(to_, bytes_); }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  template <class T>
  [[nodiscard]] T& at_its_place(T* original) const {
    return *reinterpret_cast<T*>(to_ + (reinterpret_cast<const std::byte*>(original) - from_));
  }

 private:
  static constexpr std::size_t kAround = 4_MiB;
  static const std::byte* page_of(const void* object) {
    return reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(object) & ~std::uintptr_t{4095});
  }
  const std::byte* from_;
  std::byte* to_ = nullptr;
  std::size_t bytes_ = 0;
};

template <class Container>
class OffsetContainersTest : public ::testing::Test {
 protected:
  HeapFolder folder;
};

using Containers =
    ::testing::Types<offset::vector<int>, offset::vector<bool>, offset::deque<int>, offset::list<int>,
                     offset::slist<int>, offset::string, offset::map<int, int>, offset::multimap<int, int>,
                     offset::set<int>, offset::multiset<int>, offset::flat_map<int, int>, offset::flat_set<int>,
                     offset::unordered_map<int, int>, offset::unordered_multimap<int, int>, offset::unordered_set<int>,
                     offset::unordered_multiset<int>, std::vector<int, offset_allocator<int>>,
                     std::deque<int, offset_allocator<int>>>;
TYPED_TEST_SUITE(OffsetContainersTest, Containers);

TYPED_TEST(OffsetContainersTest, WorksAtAnotherAddress) {
  std::unique_ptr<Heap> heap = std::make_unique<Heap>(must(Heap::create(this->folder.uri(), kSmall)));
  auto* const full = heap->construct<TypeParam>("full")(offset_allocator<std::byte>(*heap));
  auto* const empty = heap->construct<TypeParam>("empty")(offset_allocator<std::byte>(*heap));
  fill(*full);
  const Copy copy(*heap, full);
  heap.reset();  // who follows a pointer into it now ends the test
  const TypeParam& moved = copy.at_its_place(full);
  EXPECT_EQ(sum(moved), expected_sum<TypeParam>());
  EXPECT_EQ(found(moved), kElements);
  const TypeParam& moved_empty = copy.at_its_place(empty);
  EXPECT_TRUE(moved_empty.begin() == moved_empty.end());
}

TYPED_TEST(OffsetContainersTest, LivesThroughReopening) {
  {
    Heap heap = must(Heap::create(this->folder.uri(), kSmall));
    fill(*heap.construct<TypeParam>("full")(heap.allocator<std::byte>()));
    ASSERT_TRUE(heap.commit());
  }
  Heap heap = must(Heap::open(this->folder.uri(), kSmall));
  auto* const full = heap.find<TypeParam>("full");
  ASSERT_NE(full, nullptr);
  EXPECT_EQ(sum(*full), expected_sum<TypeParam>());
  full->clear();
  fill(*full);
  EXPECT_EQ(found(*full), kElements);
  EXPECT_TRUE(heap.destroy<TypeParam>("full"));
}

TEST(OffsetContainers, OfContainersHandTheirAllocatorOn) {
  using Words = offset::map<offset::string, offset::vector<offset::string>>;
  HeapFolder folder;
  auto heap = std::make_unique<Heap>(must(Heap::create(folder.uri(), kSmall)));
  const offset_allocator<std::byte> allocator(*heap);
  auto* const words = heap->construct<Words>("words")(allocator);
  for (int i = 0; i < 100; ++i) {
    (*words)[offset::string("a key longer than a short string holds", allocator)].emplace_back(
        "and a long element in it");
  }
  const Copy copy(*heap, words);
  heap.reset();
  const Words& moved = copy.at_its_place(words);
  ASSERT_EQ(moved.size(), 1u);
  EXPECT_EQ(moved.begin()->first, "a key longer than a short string holds");
  EXPECT_EQ(moved.begin()->second.at(99), "and a long element in it");
}

}  // namespace
}  // namespace farheap::testing
