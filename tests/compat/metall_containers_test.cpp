// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Metall's containers in a datastore. Each is filled, and read again in a copy that lies at other addresses, because
// the original is open beside it: nothing in them may be a plain pointer.
#include <gtest/gtest.h>

#include <metall/container/concurrent_map.hpp>
#include <metall/container/deque.hpp>
#include <metall/container/list.hpp>
#include <metall/container/map.hpp>
#include <metall/container/priority_queue.hpp>
#include <metall/container/queue.hpp>
#include <metall/container/set.hpp>
#include <metall/container/stack.hpp>
#include <metall/container/string.hpp>
#include <metall/container/string_key_store.hpp>
#include <metall/container/unordered_flat_map.hpp>
#include <metall/container/unordered_flat_set.hpp>
#include <metall/container/unordered_map.hpp>
#include <metall/container/unordered_set.hpp>
#include <metall/container/vector.hpp>
#include <metall/metall.hpp>
#include <metall/utility/hash.hpp>
#include <metall/utility/random.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "store_folder.hpp"

namespace farheap::testing {
namespace {

namespace mc = metall::container;
using metall::manager;

// Objects that are filled in a store, and read in a copy of it beside it.
class MetallContainersTest : public ::testing::Test {
 protected:
  template <class T, class Fill>
  void fill(const char* name, const Fill& fill_one) {
    fill_one(*store_.construct<T>(name)(store_.get_allocator()));
  }
  void move() {
    ASSERT_TRUE(store_.snapshot(folder_ / "copy"));
    copy_.emplace(metall::open_only, folder_ / "copy");
    ASSERT_NE(copy_->get_address(), store_.get_address());
  }
  template <class T>
  T& moved(const char* name) {
    return *copy_->find<T>(name).first;
  }

 private:
  StoreFolder folder_;
  manager store_{metall::create_only, folder_ / "store", kCapacity};
  std::optional<manager> copy_;
};

TEST_F(MetallContainersTest, Sequences) {
  const auto numbers = [](auto& sequence) {
    for (int i = 0; i < 1000; ++i) sequence.push_back(i);
  };
  using OfStd = std::vector<int, manager::allocator_type<int>>;
  fill<mc::vector<int>>("vector", numbers);
  fill<mc::deque<int>>("deque", numbers);
  fill<mc::list<int>>("list", numbers);
  fill<OfStd>("std::vector", numbers);
  move();
  const auto sum = [](const auto& sequence) { return std::accumulate(sequence.begin(), sequence.end(), 0); };
  EXPECT_EQ(sum(moved<mc::vector<int>>("vector")), 499500);
  EXPECT_EQ(sum(moved<mc::deque<int>>("deque")), 499500);
  EXPECT_EQ(sum(moved<mc::list<int>>("list")), 499500);
  EXPECT_EQ(sum(moved<OfStd>("std::vector")), 499500);
  numbers(moved<mc::list<int>>("list"));  // it goes on where it lies now
  EXPECT_EQ(moved<mc::list<int>>("list").size(), 2000U);
}

TEST_F(MetallContainersTest, MapsAndSets) {
  const auto pairs = [](auto& map) {
    for (int i = 0; i < 1000; ++i) map.emplace(i % 500, i);
  };
  const auto keys = [](auto& set) {
    for (int i = 0; i < 1000; ++i) set.insert(i % 500);
  };
  fill<mc::map<int, int>>("map", pairs);
  fill<mc::multimap<int, int>>("multimap", pairs);
  fill<mc::unordered_map<int, int>>("unordered_map", pairs);
  fill<mc::unordered_multimap<int, int>>("unordered_multimap", pairs);
  fill<mc::set<int>>("set", keys);
  fill<mc::multiset<int>>("multiset", keys);
  fill<mc::unordered_set<int>>("unordered_set", keys);
  fill<mc::unordered_multiset<int>>("unordered_multiset", keys);
  move();
  EXPECT_EQ((moved<mc::map<int, int>>("map").at(7)), 7);
  EXPECT_EQ((moved<mc::multimap<int, int>>("multimap").count(7)), 2U);
  EXPECT_EQ((moved<mc::unordered_map<int, int>>("unordered_map").at(7)), 7);
  auto& multimap = moved<mc::unordered_multimap<int, int>>("unordered_multimap");
  EXPECT_EQ(multimap.count(7), 2U);
  pairs(multimap);
  EXPECT_EQ(multimap.size(), 2000U);
  EXPECT_EQ(moved<mc::set<int>>("set").size(), 500U);
  EXPECT_EQ(moved<mc::multiset<int>>("multiset").count(7), 2U);
  EXPECT_EQ(moved<mc::unordered_set<int>>("unordered_set").count(7), 1U);
  EXPECT_EQ(moved<mc::unordered_multiset<int>>("unordered_multiset").count(7), 2U);
}

TEST_F(MetallContainersTest, Adaptors) {
  const auto numbers = [](auto& adaptor) {
    for (int i = 0; i < 10; ++i) adaptor.push(i);
  };
  fill<mc::stack<int>>("stack", numbers);
  fill<mc::queue<int>>("queue", numbers);
  fill<mc::priority_queue<int>>("priority", numbers);
  fill<mc::priority_queue<int, mc::vector<int>, std::greater<>>>("least first", numbers);
  move();
  EXPECT_EQ(moved<mc::stack<int>>("stack").top(), 9);
  EXPECT_EQ(moved<mc::queue<int>>("queue").front(), 0);
  EXPECT_EQ(moved<mc::priority_queue<int>>("priority").top(), 9);
  EXPECT_EQ((moved<mc::priority_queue<int, mc::vector<int>, std::greater<>>>("least first").top()), 0);
}

TEST_F(MetallContainersTest, TextsInMapsInVectors) {
  using Text = mc::string;
  using Map = mc::map<int, Text, std::less<>, manager::scoped_allocator_type<std::pair<const int, Text>>>;
  using Maps = mc::vector<Map, manager::scoped_allocator_type<Map>>;
  fill<Maps>("maps", [](Maps& all) {
    all.resize(3);
    for (int i = 0; i < 100; ++i) {
      all[2][i] = ("a text that is too long to lie in the string, " + std::to_string(i)).c_str();
    }
  });
  move();
  EXPECT_EQ(moved<Maps>("maps").at(2).at(42), "a text that is too long to lie in the string, 42");
}

TEST_F(MetallContainersTest, AFallbackAllocatorTakesFromMallocWithoutAStore) {
  using Numbers = mc::vector<int, manager::fallback_allocator<int>>;
  Numbers outside;
  for (int i = 0; i < 1000; ++i) outside.push_back(i);
  EXPECT_FALSE(outside.get_allocator().stateful_allocator_available());
  EXPECT_THROW((void)outside.get_allocator().allocate(SIZE_MAX / 2), std::bad_array_new_length);
  fill<Numbers>("numbers", [&](Numbers& numbers) {
    EXPECT_TRUE(numbers.get_stored_allocator().stateful_allocator_available());
    numbers = outside;
  });
  move();
  EXPECT_EQ(moved<Numbers>("numbers"), outside);
  EXPECT_NE(moved<Numbers>("numbers").get_allocator(), outside.get_allocator());
}

TEST_F(MetallContainersTest, ThreadsChangeAConcurrentMap) {
  using Map = mc::concurrent_map<int, int, std::less<int>, metall::utility::hash<int>,
                                 manager::allocator_type<std::pair<const int, int>>, 16>;
  fill<Map>("map", [](Map& filled) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 500; ++i) {
          EXPECT_TRUE(filled.insert({t * 1000 + i, 1}));
          filled.edit(-1, [](int& count) { ++count; });
          auto [value, lock] = filled.scoped_edit(-2);
          --value;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_FALSE(filled.insert({0, 2}));
  });
  move();
  const Map& map = moved<Map>("map");
  EXPECT_EQ(map.size(), 2002U);
  EXPECT_EQ(map.find(-1)->second, 2000);
  EXPECT_EQ(map.find(-2)->second, -2000);
  EXPECT_EQ(map.find(777), map.cend());
  std::size_t seen = 0;
  for (auto at = map.cbegin(); at != map.cend(); ++at) ++seen;
  EXPECT_EQ(seen, 2002U);
}

TEST_F(MetallContainersTest, ValuesByText) {
  using Store = mc::string_key_store<mc::string>;
  const std::string long_key(1000, 'k');
  fill<Store>("store", [&](Store& filled) {
    const auto text = [&](const char* from) { return mc::string(from, filled.get_allocator()); };
    EXPECT_TRUE(filled.insert("empty"));
    EXPECT_TRUE(filled.insert(long_key, text("one")));
    EXPECT_TRUE(filled.insert(long_key, text("two")));
    EXPECT_TRUE(filled.insert("gone", text("x")));
    EXPECT_EQ(filled.erase("gone"), 1U);
  });
  move();
  auto& store = moved<Store>("store");
  EXPECT_EQ(store.size(), 3U);
  EXPECT_EQ(store.count(long_key), 2U);
  EXPECT_EQ(store.value(store.find("empty")), "");
  EXPECT_EQ(store.find("gone"), store.end());
  store.value(store.find("empty")) = "filled";
  EXPECT_EQ(store.value(store.find("empty")), "filled");
  std::size_t found = 0;
  for (auto [at, end] = store.equal_range(long_key); at != end; ++at, ++found) EXPECT_EQ(store.key(at), long_key);
  EXPECT_EQ(found, 2U);
}

TEST(MetallStringKeyStoreTest, AUniqueStoreReplacesValues) {
  mc::string_key_store<int, manager::fallback_allocator<std::byte>> store(true, 7);
  EXPECT_TRUE(store.unique());
  EXPECT_EQ(store.hash_seed(), 7U);
  EXPECT_TRUE(store.insert("a", 1));
  EXPECT_FALSE(store.insert("a"));
  EXPECT_TRUE(store.insert("a", 2));
  EXPECT_EQ(store.size(), 1U);
  EXPECT_EQ(store.value(store.find("a")), 2);
  EXPECT_EQ(store.erase(store.begin()), store.end());
}

TEST(MetallUtilityTest, HashesAndRandomNumbersAreTheSameInEveryRun) {
  EXPECT_EQ(metall::utility::str_hash<>()("text"), metall::utility::str_hash<>()(std::string("text")));
  EXPECT_NE(metall::utility::str_hash<1>()("text"), metall::utility::str_hash<2>()("text"));
  EXPECT_NE(metall::utility::hash<>()(1), metall::utility::hash<>()(2));
  metall::utility::rand_512 first(1), second(1);
  EXPECT_TRUE(first.equal(second));
  EXPECT_EQ(first(), second());
  (void)first();
  EXPECT_FALSE(first.equal(second));
  metall::utility::rand_1024 third(1);
  std::uint64_t ones = 0;
  for (int i = 0; i < 1000; ++i) ones += static_cast<std::uint64_t>(std::popcount(third()));
  EXPECT_NEAR(static_cast<double>(ones), 32000, 1000) << "half of the bits";
}

}  // namespace
}  // namespace farheap::testing
