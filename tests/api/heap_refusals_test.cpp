// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program that does not look at errors sees of them: exceptions that say what is wrong.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <farheap/farheap.h>
#include <farheap/containers/std.hpp>
#include <farheap/json.hpp>
#include <string>

#include "heap_folder.hpp"
#include "thrown_by.hpp"

namespace farheap::testing {
namespace {

// It threw 'Bad expected access'.
TEST(HeapRefusalsTest, TheValueOfAnErrorThrowsItsMessage) {
  HeapFolder folder;
  const auto opened = Heap::open(folder.uri());
  ASSERT_FALSE(opened);
  EXPECT_EQ(thrown_by<BadResult>([&] { (void)Heap::open(folder.uri()).value(); }), opened.error().message());
  const Result<int> none = fail(ErrorCode::kNotFound, "cannot look", "there", "nothing is there", "look elsewhere");
  EXPECT_EQ(thrown_by<std::exception>([&] { (void)none.value(); }),
            "cannot look: there: nothing is there; look elsewhere");
  try {
    (void)none.value();
  } catch (const tl::bad_expected_access<Error>& error) {  // as before it had a message
    EXPECT_EQ(error.error().code, ErrorCode::kNotFound);
  }
}

class ReadOnlyHeapTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    ASSERT_NE(heap.construct<int>("one")(1), nullptr);
    ASSERT_NE(heap.construct<farheap::vector<int>>("numbers")(heap.allocator<int>()), nullptr);
    ASSERT_NE(heap.construct<json::value>("json")(heap.allocator<std::byte>()), nullptr);
    ASSERT_TRUE(heap.commit());
  }
  HeapFolder folder;
};

// It threw std::bad_alloc, as if there were no room.
TEST_F(ReadOnlyHeapTest, ConstructingANameInAHeapOpenedForReadingSaysSo) {
  Heap heap = must(Heap::open_read_only(folder.uri(), kSmall));
  const std::string what = thrown_by<ReadOnlyHeap>([&] { (void)heap.construct<int>("two")(2); });
  EXPECT_NE(what.find("cannot construct the object 'two'"), what.npos) << what;
  EXPECT_NE(what.find("opened for reading"), what.npos) << what;
  EXPECT_THROW((void)heap.find_or_construct<int>("two")(2), ReadOnlyHeap);
  EXPECT_EQ(*heap.find_or_construct<int>("one")(7), 1) << "what is there is found";
  EXPECT_THROW((void)heap.construct<int>(anonymous_instance)(2), ReadOnlyHeap);
}

TEST_F(ReadOnlyHeapTest, EveryOtherChangeSaysSoToo) {
  Heap heap = must(Heap::open_read_only(folder.uri(), kSmall));
  EXPECT_THROW(heap.destroy<int>("one"), ReadOnlyHeap);
  EXPECT_THROW(heap.destroy_ptr(heap.find<int>("one")), ReadOnlyHeap);
  EXPECT_THROW((void)heap.remove_entry(ObjectKind::kNamed, "one"), ReadOnlyHeap);
  EXPECT_THROW((void)heap.remove_entry(heap.find<int>("one")), ReadOnlyHeap);
  EXPECT_THROW((void)heap.add_entry(
                   {.name = "x", .type = "i", .length = 1, .element_bytes = 4, .address = heap.find<int>("one")}),
               ReadOnlyHeap);
  EXPECT_THROW((void)heap.allocator<int>().allocate(3), ReadOnlyHeap);
  EXPECT_THROW((void)heap.resource()->allocate(3), ReadOnlyHeap);
  EXPECT_THROW(heap.find<farheap::vector<int>>("numbers")->reserve(100), ReadOnlyHeap);
  EXPECT_EQ(heap.allocate(16), nullptr);
  for (const Status& status : {heap.describe(heap.find<int>("one"), "text"), heap.set_description("text"),
                               heap.commit(), json::parse_into(*heap.find<json::value>("json"), "[1,2,3]")}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(status.error().message().find("opened for reading"), std::string::npos) << status.error().message();
  }
}

TEST_F(ReadOnlyHeapTest, InCItIsAnErrorInWords) {
  farheap_heap* const heap = farheap_heap_open(folder.uri().c_str(), FARHEAP_READ_ONLY, 32_MiB);
  ASSERT_NE(heap, nullptr) << farheap_last_error();
  const std::string words = "opened for reading";
  EXPECT_EQ(farheap_heap_construct(heap, "two", 8), nullptr);
  EXPECT_NE(std::string(farheap_last_error()).find(words), std::string::npos) << farheap_last_error();
  EXPECT_EQ(farheap_last_error_code(), FARHEAP_INVALID_ARGUMENT);
  EXPECT_EQ(farheap_heap_named(heap, "two", 8), nullptr);
  EXPECT_NE(std::string(farheap_last_error()).find(words), std::string::npos) << farheap_last_error();
  EXPECT_EQ(farheap_heap_allocate(heap, 8, 0), nullptr);
  EXPECT_NE(std::string(farheap_last_error()).find(words), std::string::npos) << farheap_last_error();
  farheap_heap_close(heap);
}

TEST(HeapRefusalsTest, AFullHeapSaysThatItIsFull) {
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), {.memory = 32_MiB, .capacity = 256_MiB}));
  const std::string what = thrown_by<std::bad_alloc>([&] { (void)heap.construct<char>("big")[300_MiB](); });
  EXPECT_NE(what.find("the heap is full: " + folder.uri()), what.npos) << what;
  EXPECT_NE(what.find("300.0 MiB of its 256.0 MiB"), what.npos) << what;
  EXPECT_THROW((void)heap.allocator<char>().allocate(300_MiB), HeapFull);
  EXPECT_THROW((void)heap.resource()->allocate(300_MiB), HeapFull);
  EXPECT_THROW((void)heap.construct<int>("none")[0](), std::bad_array_new_length);
}

// Names of 500 characters, as the compiler mangles them.
TEST(HeapRefusalsTest, AnotherTypeIsToldAsPeopleReadIt) {
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  using Index = farheap::map<farheap::string, farheap::vector<int>>;
  (void)heap.construct<Index>("index")();
  const std::string what = thrown_by<TypeMismatch>([&] { (void)heap.find<farheap::vector<farheap::string>>("index"); });
  EXPECT_EQ(what,
            "the object 'index' is of type farheap::map<farheap::string, farheap::vector<int>> of 56 bytes, and was "
            "asked for "
            "as farheap::vector<farheap::string> of 40 bytes");
}

// 30 lines of the compiler's, and then a program that had to name an allocator.
TEST(HeapRefusalsTest, AContainerThatIsGivenNoAllocatorGetsTheHeaps) {
  HeapFolder folder;
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    auto* const index = heap.construct<farheap::map<farheap::string, farheap::vector<int>>>("index")();
    index->emplace("word", 0).first->second.push_back(3);
    EXPECT_TRUE(heap.owns(index->begin()->first.get_allocator().root()));
    EXPECT_EQ(heap.construct<farheap::vector<int>>("seven")(7, 1)->size(), 7u);
    EXPECT_EQ(*heap.construct<farheap::string>("text")("a text that is longer than what fits within a string itself"),
              "a text that is longer than what fits within a string itself");
    auto* const poly = heap.construct<std::pmr::vector<int>>("pmr")();
    EXPECT_EQ(poly->get_allocator().resource(), heap.resource());
    auto* const either = heap.construct<std::vector<int, fallback_allocator<int>>>("either")();
    EXPECT_TRUE(either->get_allocator().in_heap());
    auto* const given = heap.construct<farheap::vector<int>>("given")(heap.allocator<int>());
    EXPECT_EQ(given->size(), 0u);
    ASSERT_TRUE(heap.commit());
  }
  Heap heap = must(Heap::open(folder.uri(), kSmall));
  auto& index = *heap.find<farheap::map<farheap::string, farheap::vector<int>>>("index");
  EXPECT_EQ(index.find("word")->second.at(0), 3);
}

}  // namespace
}  // namespace farheap::testing
