// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <farheap/farheap.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

constexpr std::uint64_t kMemory = 32_MiB;

TEST(CHeapTest, ObjectsAreThereAgainAndErrorsAreTold) {
  const HeapFolder folder;
  const std::string uri = folder.uri();
  EXPECT_EQ(farheap_heap_open(uri.c_str(), FARHEAP_OPEN, kMemory), nullptr);
  EXPECT_NE(std::string(farheap_last_error()).find("does not exist"), std::string::npos) << farheap_last_error();
  farheap_heap* heap = farheap_heap_open(uri.c_str(), FARHEAP_CREATE, kMemory);
  ASSERT_NE(heap, nullptr) << farheap_last_error();
  auto* const text = static_cast<char*>(farheap_heap_named(heap, "text", 100));
  ASSERT_NE(text, nullptr) << farheap_last_error();
  EXPECT_EQ(text[99], 0);
  std::strcpy(text, "kept");
  EXPECT_EQ(farheap_heap_named(heap, "text", 100), text);
  EXPECT_EQ(farheap_heap_named(heap, "text", 50), nullptr);
  EXPECT_NE(std::string(farheap_last_error()).find("100 bytes"), std::string::npos) << farheap_last_error();
  EXPECT_EQ(farheap_heap_snapshot(heap, "one"), FARHEAP_DONE);
  EXPECT_EQ(farheap_heap_snapshot(heap, "one"), FARHEAP_CONFLICT);
  std::strcpy(text, "later");
  EXPECT_EQ(farheap_heap_commit(heap), FARHEAP_DONE);
  EXPECT_EQ(farheap_heap_destroy(heap, "text"), FARHEAP_DONE);
  EXPECT_EQ(farheap_heap_destroy(heap, "text"), FARHEAP_NOT_FOUND);
  farheap_heap_close(heap);

  for (const auto& [name, expected] : {std::pair{uri, "later"}, {uri + "@one", "kept"}}) {
    heap = farheap_heap_open(name.c_str(), FARHEAP_READ_ONLY, kMemory);
    ASSERT_NE(heap, nullptr) << farheap_last_error();
    std::size_t bytes = 0;
    EXPECT_STREQ(static_cast<const char*>(farheap_heap_find(heap, "text", &bytes)), expected);
    EXPECT_EQ(bytes, 100u);
    EXPECT_NE(farheap_heap_commit(heap), FARHEAP_DONE);
    farheap_heap_close(heap);
  }
  EXPECT_EQ(farheap_heap_remove(uri.c_str()), FARHEAP_DONE);
  EXPECT_EQ(farheap_heap_remove(uri.c_str()), FARHEAP_NOT_FOUND);
}

TEST(CHeapTest, ObjectsAreVisitedUntilItIsEnough) {
  const HeapFolder folder;
  farheap_heap* const heap = farheap_heap_open(folder.uri().c_str(), FARHEAP_OPEN_OR_CREATE, kMemory);
  ASSERT_NE(heap, nullptr) << farheap_last_error();
  for (const char* name : {"a", "b", "c"}) ASSERT_NE(farheap_heap_named(heap, name, 8), nullptr);
  std::vector<std::string> seen;
  const auto visit = [](void* context, const char* name, void*, std::size_t bytes) {
    auto& names = *static_cast<std::vector<std::string>*>(context);
    names.emplace_back(name);
    EXPECT_EQ(bytes, 8u);
    return names.size() == 2 ? 7 : 0;
  };
  EXPECT_EQ(farheap_heap_for_each(heap, visit, &seen), 7);
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b"}));
  void* const memory = farheap_heap_allocate(heap, 100, 0);
  void* const moved = farheap_heap_reallocate(heap, memory, 100'000);
  ASSERT_NE(moved, nullptr);
  farheap_heap_deallocate(heap, moved);
  farheap_heap_close(heap);
  farheap_heap_close(nullptr);
}

}  // namespace
}  // namespace farheap::testing
