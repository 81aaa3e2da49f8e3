// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <farheap/farheap.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
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
  const auto visit = [](void* context, const farheap_object* object) {
    auto& names = *static_cast<std::vector<std::string>*>(context);
    names.emplace_back(object->name);
    EXPECT_EQ(object->bytes, 8u);
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

TEST(CHeapTest, AttributesVersionsAndFactsAreTold) {
  const HeapFolder folder;
  const std::string uri = folder.uri();
  const farheap_options options{sizeof options, kMemory, 1_GiB, 0};
  farheap_heap* heap = farheap_heap_open_with(uri.c_str(), FARHEAP_CREATE, &options);
  ASSERT_NE(heap, nullptr) << farheap_last_error();
  void* const object = farheap_heap_construct(heap, "object", 24);
  ASSERT_NE(object, nullptr) << farheap_last_error();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(object) % 16, 0u);
  EXPECT_EQ(farheap_heap_owns(heap, object), 1);
  EXPECT_EQ(farheap_heap_owns(heap, &heap), 0);
  EXPECT_EQ(farheap_heap_construct(heap, "object", 24), nullptr);
  EXPECT_EQ(farheap_last_error_code(), FARHEAP_CONFLICT);
  EXPECT_EQ(farheap_heap_construct(heap, "huge", 2_GiB), nullptr);
  EXPECT_EQ(farheap_last_error_code(), FARHEAP_NO_SPACE);
  EXPECT_EQ(farheap_heap_describe(heap, object, "three words"), FARHEAP_DONE);
  EXPECT_EQ(farheap_heap_describe(heap, &heap, "nothing"), FARHEAP_NOT_FOUND);
  const auto look = [](void* context, const farheap_object* one) {
    EXPECT_STREQ(one->name, "object");
    EXPECT_STREQ(one->description, "three words");
    EXPECT_EQ(one->kind, FARHEAP_NAMED);
    EXPECT_EQ(one->bytes, 24u);
    EXPECT_EQ(one->length, 24u);
    EXPECT_EQ(one->address, context);
    return 5;
  };
  EXPECT_EQ(farheap_heap_attributes(heap, "object", look, object), 5);
  EXPECT_EQ(farheap_heap_attributes(heap, "other", look, object), FARHEAP_NOT_FOUND);

  EXPECT_EQ(farheap_heap_snapshot(heap, "one"), FARHEAP_DONE);
  EXPECT_EQ(farheap_heap_destroy(heap, "object"), FARHEAP_DONE);
  EXPECT_EQ(farheap_heap_compact(heap), FARHEAP_DONE);
  std::vector<std::string> names;
  const auto note = [](void* context, const farheap_version* version) {
    static_cast<std::vector<std::string>*>(context)->emplace_back(version->name);
    EXPECT_GT(version->commit, 0u);
    EXPECT_GT(version->pages, 0u);
    EXPECT_GT(version->time_ns, 0u);
    return 0;
  };
  EXPECT_EQ(farheap_heap_for_each_version(heap, note, &names), 0);
  EXPECT_EQ(names, (std::vector<std::string>{"one", ""}));

  farheap_statistics statistics{};
  statistics.structure_bytes = offsetof(farheap_statistics, faults);  // as an older caller knows it
  statistics.faults = 77;
  EXPECT_EQ(farheap_heap_statistics(heap, &statistics), FARHEAP_DONE);
  EXPECT_EQ(statistics.capacity_bytes, 1_GiB);
  EXPECT_EQ(statistics.objects, 0u);
  EXPECT_EQ(statistics.faults, 77u);
  char id[FARHEAP_ID_BYTES];
  EXPECT_EQ(farheap_heap_id(heap, id), FARHEAP_DONE);
  EXPECT_EQ(std::strlen(id), 32u);
  EXPECT_EQ(farheap_heap_is_read_only(heap), 0);
  farheap_heap_close(heap);

  EXPECT_EQ(farheap_heap_check(uri.c_str()), FARHEAP_DONE) << farheap_last_error();
  EXPECT_EQ(farheap_heap_roll_back(uri.c_str()), FARHEAP_DONE) << farheap_last_error();
  heap = farheap_heap_open(uri.c_str(), FARHEAP_READ_ONLY, kMemory);
  ASSERT_NE(heap, nullptr) << farheap_last_error();
  EXPECT_EQ(farheap_heap_find(heap, "object", nullptr), object);
  EXPECT_EQ(farheap_heap_is_read_only(heap), 1);
  farheap_heap_close(heap);
  EXPECT_EQ(farheap_heap_check("nonsense"), FARHEAP_INVALID_ARGUMENT);
}

TEST(CHeapTest, APauseHoldsCommitsUntilItEnds) {
  const HeapFolder folder;
  farheap_heap* const heap = farheap_heap_open(folder.uri().c_str(), FARHEAP_CREATE, kMemory);
  ASSERT_NE(heap, nullptr) << farheap_last_error();
  auto* const pair = static_cast<std::uint64_t*>(farheap_heap_construct(heap, "pair", 16));
  ASSERT_NE(pair, nullptr);
  farheap_pause* const pause = farheap_heap_pause(heap);
  ASSERT_NE(pause, nullptr);
  pair[0] = 1;
  std::atomic<bool> done{false};
  std::thread committer([&] {
    EXPECT_EQ(farheap_heap_commit(heap), FARHEAP_DONE);
    done = true;
  });
  usleep(20'000);
  EXPECT_FALSE(done);
  pair[1] = 1;
  farheap_heap_resume(pause);
  committer.join();
  farheap_heap_close(heap);
  farheap_heap* const again = farheap_heap_open(folder.uri().c_str(), FARHEAP_READ_ONLY, kMemory);
  ASSERT_NE(again, nullptr) << farheap_last_error();
  const auto* const kept = static_cast<const std::uint64_t*>(farheap_heap_find(again, "pair", nullptr));
  EXPECT_EQ(kept[0], 1u);
  EXPECT_EQ(kept[1], 1u);
  farheap_heap_close(again);
}

TEST(CHeapTest, EachThreadHasItsOwnError) {
  EXPECT_EQ(farheap_heap_check("file:/nowhere/at/all"), FARHEAP_NOT_FOUND);
  std::thread([] {
    EXPECT_STREQ(farheap_last_error(), "");
    EXPECT_EQ(farheap_last_error_code(), FARHEAP_DONE);
    EXPECT_EQ(farheap_heap_check("mem:"), FARHEAP_INVALID_ARGUMENT);
  }).join();
  EXPECT_EQ(farheap_last_error_code(), FARHEAP_NOT_FOUND);
  EXPECT_NE(std::string(farheap_last_error()).find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace farheap::testing
