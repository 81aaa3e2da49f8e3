// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each container that farheap/containers.hpp names lives through close and reopen, empty and full, here and in another
// process.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <farheap/containers.hpp>
#include <string>

#include "container_cases.hpp"
#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

using Pair = std::pair<const int, int>;
namespace bc = boost_containers;

template <class Container>
class ContainersTest : public ::testing::Test {
 protected:
  HeapFolder folder;
};

using Containers =
    ::testing::Types<vector<int>, vector<bool>, deque<int>, list<int>, forward_list<int>, map<int, int>, set<int>,
                     multimap<int, int>, multiset<int>, unordered_map<int, int>, unordered_set<int>,
                     unordered_multimap<int, int>, unordered_multiset<int>, string, bc::vector<int>,
                     bc::stable_vector<int>, bc::deque<int>, bc::list<int>, bc::slist<int>, bc::string,
                     bc::map<int, int>, bc::set<int>, bc::multimap<int, int>, bc::multiset<int>, bc::flat_map<int, int>,
                     bc::flat_set<int>, bc::flat_multimap<int, int>, bc::flat_multiset<int>,
                     bc::unordered_map<int, int>, bc::unordered_set<int>, bc::unordered_multimap<int, int>,
                     bc::unordered_multiset<int>, bc::unordered_flat_map<int, int>, bc::unordered_flat_set<int>>;
TYPED_TEST_SUITE(ContainersTest, Containers);

TYPED_TEST(ContainersTest, LivesThroughReopening) {
  {
    Heap heap = must(Heap::create(this->folder.uri(), kSmall));
    auto* const full = heap.construct<TypeParam>("full")(heap.allocator<std::byte>());
    auto* const empty = heap.construct<TypeParam>("empty")(heap.allocator<std::byte>());
    fill(*full);
    EXPECT_EQ(outward_pointers(heap, *full), 0);
    EXPECT_EQ(outward_pointers(heap, *empty), 0);
    ASSERT_TRUE(heap.commit());
  }
  Heap heap = must(Heap::open(this->folder.uri(), kSmall));
  auto* const full = heap.find<TypeParam>("full");
  auto* const empty = heap.find<TypeParam>("empty");
  ASSERT_NE(full, nullptr);
  ASSERT_NE(empty, nullptr);
  EXPECT_EQ(sum(*full), expected_sum<TypeParam>());
  EXPECT_EQ(found(*full), kElements);
  EXPECT_TRUE(empty->begin() == empty->end());
  fill(*empty);  // it takes memory from its heap in this run, too
  EXPECT_EQ(sum(*empty), expected_sum<TypeParam>());
  const auto before = heap.statistics().allocated_bytes;
  EXPECT_TRUE(heap.destroy<TypeParam>("full"));
  EXPECT_TRUE(heap.destroy<TypeParam>("empty"));
  EXPECT_LT(heap.statistics().allocated_bytes, before);
  ASSERT_TRUE(heap.commit());
}

using Words = map<string, vector<string>>;
using Table = bc::unordered_flat_map<int, int>;

TEST(ContainersInAnotherProcess, DISABLED_AreWritten) {
  Heap heap = must(Heap::create(getenv("FARHEAP_TEST_URI"), kSmall));
  const auto allocator = heap.allocator<std::byte>();
  auto& words = *heap.construct<Words>("words")(allocator);
  for (int i = 0; i < 300; ++i)
    words[string("a key longer than a short string holds", allocator)].emplace_back("element");
  heap.construct<Table>("empty")(allocator);
  auto& emptied = *heap.construct<Table>("emptied")(allocator);
  emptied.emplace(1, 2);
  emptied.clear();
  emptied.rehash(0);
  auto& assigned = *heap.construct<Table>("assigned")(allocator);
  assigned = Table(allocator);
  ASSERT_TRUE(heap.commit());
}

// The program lies elsewhere there: what points into it is found out.
TEST(ContainersInAnotherProcess, AreRead) {
  HeapFolder folder;
  ASSERT_EQ(setenv("FARHEAP_TEST_URI", folder.uri().c_str(), 1), 0);
  const pid_t writer = fork();
  if (writer == 0) {
    execl("/proc/self/exe", "writer", "--gtest_filter=ContainersInAnotherProcess.DISABLED_AreWritten",
          "--gtest_also_run_disabled_tests", static_cast<char*>(nullptr));
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(writer, &status, 0), writer);
  ASSERT_EQ(status, 0);
  Heap heap = must(Heap::open(folder.uri(), kSmall));
  const auto& words = *heap.find<Words>("words");
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words.find("a key longer than a short string holds")->second.size(), 300u);
  EXPECT_EQ(words.begin()->second[299], "element");
  for (const char* const name : {"empty", "emptied", "assigned"}) {
    auto& table = *heap.find<Table>(name);
    EXPECT_EQ(table.find(1), table.end()) << name;
    table.emplace(3, 4);
    EXPECT_EQ(table.at(3), 4) << name;
  }
}

TEST(Containers, StringsAreFoundByTextWithoutACopy) {
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  auto& counts = *heap.construct<unordered_map<string, int>>("counts")(heap.allocator<std::byte>());
  counts[string("one", heap.allocator<char>())] = 1;
  EXPECT_EQ(counts.find("one")->second, 1);
  EXPECT_EQ(counts.find(std::string_view("two")), counts.end());
}

TEST(Containers, AMapLargerThanMemoryIsReadAgain) {
  HeapFolder folder;
  constexpr int kKeys = 150'000;
  const HeapOptions options{.memory = 16_MiB, .capacity = 4_GiB};
  using Large = unordered_map<int, string>;
  {
    Heap heap = must(Heap::create(folder.uri(), options));
    auto& large = *heap.construct<Large>("large")(heap.allocator<std::byte>());
    for (int i = 0; i < kKeys; ++i) {
      large.try_emplace(i, std::string(200, static_cast<char>('a' + i % 26)));
    }
    EXPECT_GT(heap.statistics().allocated_bytes, 2 * options.memory);
    EXPECT_LE(heap.statistics().memory_bytes, options.memory);
    ASSERT_TRUE(heap.commit());
  }
  Heap heap = must(Heap::open(folder.uri(), options));
  const auto& large = *heap.find<Large>("large");
  int wrong = 0;
  for (int i = 0; i < kKeys; i += 7) wrong += large.at(i) != std::string(200, static_cast<char>('a' + i % 26)).c_str();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(heap.statistics().memory_bytes, options.memory);
}

}  // namespace
}  // namespace farheap::testing
