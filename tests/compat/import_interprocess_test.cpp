// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objects of a Boost.Interprocess file, in a heap.
#include <gtest/gtest.h>

#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/containers/map.hpp>
#include <boost/interprocess/containers/string.hpp>
#include <boost/interprocess/containers/vector.hpp>
#include <farheap/import_interprocess.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <scoped_allocator>
#include <stdexcept>
#include <string>
#include <vector>

#include "../api/heap_folder.hpp"

namespace farheap::testing {
namespace {

namespace bip = boost::interprocess;
template <class T>
using OldAllocator = bip::allocator<T, bip::managed_mapped_file::segment_manager>;
using OldText = bip::basic_string<char, std::char_traits<char>, OldAllocator<char>>;
using OldNumbers = bip::vector<int, OldAllocator<int>>;
using OldWords = bip::map<int, OldText, std::less<>, OldAllocator<std::pair<const int, OldText>>>;
using Numbers = std::vector<int, allocator<int>>;
using Text = std::basic_string<char, std::char_traits<char>, allocator<char>>;
using Words = std::map<int, Text, std::less<>, std::scoped_allocator_adaptor<allocator<std::pair<const int, Text>>>>;

struct Point {
  double x, y;
};

class ImportInterprocessTest : public ::testing::Test {
 protected:
  ImportInterprocessTest() {
    bip::managed_mapped_file old(bip::create_only, file.c_str(), 1 << 20);
    old.construct<Point>("points")[3](Point{1.5, 2.5});
    auto* const numbers = old.construct<OldNumbers>("numbers")(old.get_allocator<int>());
    for (int i = 0; i < 1000; ++i) numbers->push_back(i);
    auto* const words = old.construct<OldWords>("words")(std::less<>(), old.get_allocator<char>());
    for (int i = 0; i < 100; ++i) {
      words->emplace(
          i, OldText(("a text too long to lie in the string " + std::to_string(i)).c_str(), old.get_allocator<char>()));
    }
  }
  static Numbers numbers_of(const OldNumbers& old, const Heap& heap) {
    return Numbers(old.begin(), old.end(), heap.allocator<int>());
  }

  HeapFolder folder;
  const std::string file = folder.file("old");
};

TEST_F(ImportInterprocessTest, ObjectsAreCopiedByTheCallersTypes) {
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    auto old = InterprocessFile::open(file).value();
    EXPECT_EQ(old.names().size(), 3U);
    ASSERT_TRUE(old.copy<Point>("points", heap));
    ASSERT_TRUE((old.copy<OldNumbers, Numbers>("numbers", heap,
                                               [&](const OldNumbers& from) { return numbers_of(from, heap); })));
    ASSERT_TRUE((old.copy<OldWords, Words>("words", heap, [&](const OldWords& from) {
      Words words(heap.allocator<std::pair<const int, Text>>());
      for (const auto& [key, text] : from) words.emplace(key, std::string_view(text.data(), text.size()));
      return words;
    })));
    ASSERT_TRUE(heap.commit());
  }
  std::filesystem::remove(file);
  Heap heap = must(Heap::open(folder.uri(), kSmall));
  const auto points = heap.find_array<Point>("points");
  ASSERT_EQ(points.length, 3U);
  EXPECT_EQ(points.first[2].y, 2.5);
  EXPECT_EQ(heap.find<Numbers>("numbers")->at(999), 999);
  EXPECT_EQ(heap.find<Words>("words")->at(42), "a text too long to lie in the string 42");
  EXPECT_TRUE(heap.destroy<Words>("words"));
}

TEST_F(ImportInterprocessTest, TheFileIsNotChanged) {
  const auto bytes = [&] {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string before = bytes();
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  auto old = InterprocessFile::open(file).value();
  ASSERT_TRUE(old.copy<Point>("points", heap));
  old.segment().find<Point>("points").first->x = 7;
  EXPECT_EQ(bytes(), before);
}

TEST_F(ImportInterprocessTest, MistakesGetASentenceAndLeaveNothing) {
  EXPECT_EQ(InterprocessFile::open(folder.file("nowhere")).error().code, ErrorCode::kNotFound);
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  auto old = InterprocessFile::open(file).value();
  EXPECT_EQ(old.copy<Point>("none", heap).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(old.copy<Point>("points", heap));
  const std::uint64_t before = heap.statistics().allocated_bytes;
  EXPECT_EQ(old.copy<Point>("points", heap).error().code, ErrorCode::kConflict);
  const auto fails = [&](const OldNumbers&) -> Numbers { throw std::runtime_error("as asked"); };
  EXPECT_THROW((void)(old.copy<OldNumbers, Numbers>("numbers", heap, fails)), std::runtime_error);
  EXPECT_EQ(heap.statistics().allocated_bytes, before);
}

}  // namespace
}  // namespace farheap::testing
