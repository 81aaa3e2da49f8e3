// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Books that are damaged: the check ends, reads nothing outside of the segment, and sees what matters.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kept_segment.hpp"

namespace farheap::heap {
namespace {

class HeapCheck : public testing::Test {
 protected:
  HeapCheck() {
    std::mt19937 random(1);
    for (int i = 0; i < 5000; ++i) {
      objects_.push_back(segment_.heap().allocate(1 + random() % (i % 40 == 0 ? 100'000 : 2000)));
    }
    for (std::size_t i = 0; i < objects_.size(); i += 3) segment_.heap().free(objects_[i]);
  }
  ~HeapCheck() override { segment_.heap().detach(); }
  [[nodiscard]] std::string found() {
    std::string why;
    return segment_.heap().check(why, segment_.range()) ? "" : why;
  }
  std::byte* books() { return segment_.base() - KeptSegment::kBooksBytes; }

  KeptSegment segment_;
  std::vector<void*> objects_;
};

TEST_F(HeapCheck, FindsNothingInAHeapInUse) {
  EXPECT_EQ(found(), "");
  std::thread([&] { (void)segment_.heap().allocate(10); }).join();
  EXPECT_EQ(found(), "");
}

TEST_F(HeapCheck, OrdinaryHeapsCanBeCheckedToo) {
  Heap heap(segment_);
  void* object = heap.allocate(100);
  std::string why;
  EXPECT_TRUE(heap.check(why)) << why;
  heap.free(object);
}

// Single bits and whole words anywhere in the books: never a crash, never an endless walk.
TEST_F(HeapCheck, EndsOnAnyDamage) {
  std::mt19937_64 random(2);
  std::vector<std::size_t> touched;
  for (std::size_t at = 0; at < KeptSegment::kBooksBytes; at += 8) {
    if (*reinterpret_cast<std::uint64_t*>(books() + at) != 0) touched.push_back(at);
  }
  std::size_t seen = 0;
  constexpr std::size_t kDamages = 1500;
  for (std::size_t i = 0; i < kDamages; ++i) {
    // Half of them in the heap itself and the thread caches' heads, which are small beside the tables.
    std::size_t at =
        i % 2 == 0 ? touched[random() % touched.size()] : offsetof(KeptBooks, heap) + random() % (sizeof(Heap) / 8) * 8;
    auto& word = *reinterpret_cast<std::uint64_t*>(books() + at);
    std::uint64_t before = word;
    switch (random() % 4) {
      case 0: word ^= std::uint64_t{1} << (random() % 64); break;
      case 1: word = random(); break;
      case 2: word += 8; break;
      default: word = *reinterpret_cast<std::uint64_t*>(books() + touched[random() % touched.size()]);
    }
    seen += !found().empty();
    word = before;
  }
  EXPECT_GT(seen, kDamages / 4) << "the rest are locks, hints, and parts that nothing depends on";
  EXPECT_EQ(found(), "");
}

}  // namespace
}  // namespace farheap::heap
