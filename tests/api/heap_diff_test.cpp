// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How two versions of a heap differ.
#include <gtest/gtest.h>

#include <map>

#include "heap_folder.hpp"
#include "segment/superblock.hpp"

namespace farheap::testing {
namespace {

using What = ObjectDifference::What;

HeapDifference must_diff(const std::string& a, const std::string& b) {
  auto found = Heap::diff(a, b);
  EXPECT_TRUE(found.has_value()) << found.error().message();
  if (!found) return {};
  EXPECT_EQ(found->pages_only_in_a + found->pages_only_in_b + found->pages_changed,
            found->pages_of_books + found->pages_of_objects + found->pages_of_others);
  return std::move(*found);
}

std::map<std::string, const ObjectDifference*> by_name(const HeapDifference& difference) {
  std::map<std::string, const ObjectDifference*> all;
  for (const ObjectDifference& one : difference.objects) {
    all[one.what == What::kOnlyInB ? one.b.name : one.a.name] = &one;
  }
  return all;
}

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 64;  // of the objects below

// As a copy of a heap has it: an id of its own, and whose copy it is.
void give_own_id(const std::string& uri) {
  auto store = open_store(uri, {.lifetime = Lifetime::kKeep});
  ASSERT_TRUE(store.has_value());
  auto found = segment::read_superblock(**store);
  ASSERT_TRUE(found.has_value());
  found->content.origin = found->content.id;
  found->content.id.fill(std::byte{7});
  ++found->content.commit;
  ASSERT_TRUE(segment::write_superblock(**store, found->content, found->versions));
}

class HeapDiffTest : public ::testing::Test {
 protected:
  HeapFolder folder;
  const std::string before = folder.uri() + "@before";
};

TEST_F(HeapDiffTest, ObjectsThatChangedAreNamedWithTheirPages) {
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  auto* const one = heap.construct<char>("one")[kPages * kPage]('1');
  auto* const two = heap.construct<char>("two")[kPages * kPage]('2');
  heap.construct<char>("goes")[kPages * kPage]('g');
  heap.construct<int>("small")(1);
  heap.construct<int>("beside")(1);  // on one page with it
  auto* const data = static_cast<char*>(heap.allocate(kPages * kPage));
  std::fill(data, data + kPages * kPage, 'd');
  ASSERT_TRUE(heap.snapshot("before"));
  EXPECT_TRUE(must_diff(before, folder.uri()).is_none());

  one[5 * kPage] = 'x';
  one[7 * kPage + 100] = 'x';
  std::fill(two, two + kPages * kPage, '2');  // written again with what it held
  *heap.find<int>("small") = 2;
  data[9 * kPage] = 'x';
  heap.destroy<char>("goes");
  heap.construct<char>("comes")[2 * kPages * kPage]('c');
  ASSERT_TRUE(heap.commit());

  const HeapDifference difference = must_diff(before, folder.uri());
  EXPECT_EQ(difference.id, heap.id());
  EXPECT_EQ(difference.a.name, "before");
  EXPECT_LT(difference.a.commit, difference.b.commit);
  const auto objects = by_name(difference);
  ASSERT_EQ(objects.size(), 4u);
  EXPECT_EQ(objects.at("one")->what, What::kChanged);
  EXPECT_TRUE(objects.at("one")->bytes_differ);
  EXPECT_EQ(objects.at("one")->pages, 2u);
  EXPECT_EQ(objects.at("small")->what, What::kChanged);
  EXPECT_EQ(objects.at("small")->pages, 1u);
  EXPECT_EQ(objects.at("goes")->what, What::kOnlyInA);
  EXPECT_EQ(objects.at("comes")->what, What::kOnlyInB);
  EXPECT_EQ(objects.at("comes")->pages, 2 * kPages);
  EXPECT_GT(difference.pages_of_books, 0u);
  EXPECT_GE(difference.pages_of_others, 1u);  // `data`, and records of the directory
  EXPECT_LT(difference.pages_of_others, kPages);

  // The other way round.
  const HeapDifference back = must_diff(folder.uri(), before);
  EXPECT_EQ(back.pages_only_in_a, difference.pages_only_in_b);
  EXPECT_EQ(back.pages_only_in_b, difference.pages_only_in_a);
  EXPECT_EQ(back.pages_changed, difference.pages_changed);
  EXPECT_EQ(by_name(back).at("comes")->what, What::kOnlyInA);
}

TEST_F(HeapDiffTest, AnObjectThatMovedOrChangedItsTypeIsChanged) {
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  heap.construct<int>("same")(1);
  heap.construct<int>("moved")(5);
  heap.construct<int>("retyped")(1);
  const int* const described = heap.construct<int>("described")(1);
  ASSERT_TRUE(heap.snapshot("before"));
  heap.destroy<int>("moved");
  heap.construct<int>(anonymous_instance)(6);  // takes its place
  heap.construct<int>("moved")(5);
  heap.destroy<int>("retyped");
  heap.construct<std::uint64_t>("retyped")(1U);
  ASSERT_TRUE(heap.describe(described, "new"));
  ASSERT_TRUE(heap.commit());
  const auto difference = must_diff(before, folder.uri());
  const auto objects = by_name(difference);
  EXPECT_FALSE(objects.contains("same"));
  ASSERT_TRUE(objects.contains("moved"));
  EXPECT_NE(objects.at("moved")->a.address, objects.at("moved")->b.address);
  EXPECT_FALSE(objects.at("moved")->bytes_differ);
  ASSERT_TRUE(objects.contains("retyped"));
  EXPECT_TRUE(objects.at("retyped")->bytes_differ);
  ASSERT_TRUE(objects.contains("described"));
  EXPECT_FALSE(objects.at("described")->bytes_differ);
  EXPECT_EQ(objects.at("described")->b.description, "new");
}

TEST_F(HeapDiffTest, TwoSnapshotsAndACopy) {
  const std::string copy = folder.uri("copy");
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    auto* const numbers = heap.construct<char>("letters")[kPages * kPage]('a');
    ASSERT_TRUE(heap.snapshot("before"));
    numbers[3 * kPage] = 'b';
    ASSERT_TRUE(heap.snapshot("after"));
    numbers[4 * kPage] = 'c';
    ASSERT_TRUE(heap.commit());
    EXPECT_EQ(by_name(must_diff(before, folder.uri() + "@after")).at("letters")->pages, 1u);
    EXPECT_EQ(by_name(must_diff(before, folder.uri())).at("letters")->pages, 2u);
    EXPECT_EQ(by_name(must_diff("file:" + folder.file("./heap") + "@after", folder.uri())).at("letters")->pages, 1u);
  }
  for (const char* const end : {"", ".versions"}) {
    std::filesystem::copy_file(folder.file() + end, folder.file("copy") + end);
  }
  EXPECT_TRUE(must_diff(folder.uri(), copy).is_none());
  {
    // Both go on from here: one slot may hold different pages.
    Heap heap = must(Heap::open(folder.uri(), kSmall));
    heap.find<char>("letters")[9 * kPage] = 'x';
    ASSERT_TRUE(heap.commit());
  }
  {
    Heap heap = must(Heap::open(copy, kSmall));
    heap.find<char>("letters")[9 * kPage] = 'y';
    ASSERT_TRUE(heap.commit());
  }
  give_own_id(copy);
  const auto difference = must_diff(folder.uri(), copy);
  EXPECT_EQ(by_name(difference).at("letters")->pages, 1u);
  EXPECT_EQ(by_name(must_diff(before, copy + "@before")).size(), 0u);
}

TEST_F(HeapDiffTest, DifferentHeapsAreRefused) {
  (void)must(Heap::create(folder.uri(), kSmall));
  (void)must(Heap::create(folder.uri("other"), kSmall));
  const auto refused = Heap::diff(folder.uri(), folder.uri("other"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message().find("different heaps"), std::string::npos) << refused.error().message();
  EXPECT_EQ(Heap::diff(folder.uri(), folder.uri() + "@nothing").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Heap::diff(folder.uri(), folder.uri("nothing")).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace farheap::testing
