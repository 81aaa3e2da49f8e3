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
#include <scoped_allocator>
#include <string>
#include <thread>
#include <vector>

#include "store_folder.hpp"

namespace farheap::testing {
namespace {

namespace mc = metall::container;
using metall::manager;

// Fills an object of type T in a store, and reads it in a copy of the store beside it.
template <class T>
class Moved {
 public:
  template <class Fill>
  explicit Moved(const Fill& fill) {
    manager store(metall::create_only, folder_ / "store", kCapacity);
    fill(*store.construct<T>("object")(store.get_allocator()));
    original_ = std::make_unique<manager>(std::move(store));
    EXPECT_TRUE(original_->snapshot(folder_ / "copy"));
    copy_ = std::make_unique<manager>(metall::open_only, folder_ / "copy");
    EXPECT_NE(copy_->get_address(), original_->get_address());
  }
  T& operator*() { return *copy_->find<T>("object").first; }
  T* operator->() { return &**this; }

 private:
  StoreFolder folder_;
  std::unique_ptr<manager> original_, copy_;
};

TEST(MetallContainersTest, Sequences) {
  const auto fill = [](auto& sequence) {
    for (int i = 0; i < 1000; ++i) sequence.push_back(i);
  };
  const auto sum = [](const auto& sequence) { return std::accumulate(sequence.begin(), sequence.end(), 0); };
  Moved<mc::vector<int>> vector(fill);
  EXPECT_EQ(sum(*vector), 499500);
  Moved<mc::deque<int>> deque(fill);
  EXPECT_EQ(sum(*deque), 499500);
  Moved<mc::list<int>> list(fill);
  EXPECT_EQ(sum(*list), 499500);
  fill(*list);  // it goes on where it lies now
  EXPECT_EQ(list->size(), 2000U);
}

TEST(MetallContainersTest, OrderedAndUnordered) {
  const auto fill = [](auto& map) {
    for (int i = 0; i < 1000; ++i) map.emplace(i % 500, i);
  };
  Moved<mc::map<int, int>> map(fill);
  EXPECT_EQ(map->at(7), 7);
  Moved<mc::multimap<int, int>> multimap(fill);
  EXPECT_EQ(multimap->count(7), 2U);
  Moved<mc::unordered_map<int, int>> unordered(fill);
  EXPECT_EQ(unordered->at(7), 7);
  Moved<mc::unordered_multimap<int, int>> unordered_multi(fill);
  EXPECT_EQ(unordered_multi->count(7), 2U);
  fill(*unordered_multi);
  EXPECT_EQ(unordered_multi->size(), 2000U);
  const auto fill_set = [](auto& set) {
    for (int i = 0; i < 1000; ++i) set.insert(i % 500);
  };
  Moved<mc::set<int>> set(fill_set);
  EXPECT_EQ(set->size(), 500U);
  Moved<mc::multiset<int>> multiset(fill_set);
  EXPECT_EQ(multiset->count(7), 2U);
  Moved<mc::unordered_set<int>> unordered_set(fill_set);
  EXPECT_EQ(unordered_set->count(7), 1U);
  Moved<mc::unordered_multiset<int>> unordered_multiset(fill_set);
  EXPECT_EQ(unordered_multiset->count(7), 2U);
}

TEST(MetallContainersTest, Adaptors) {
  const auto fill = [](auto& adaptor) {
    for (int i = 0; i < 10; ++i) adaptor.push(i);
  };
  Moved<mc::stack<int>> stack(fill);
  EXPECT_EQ(stack->top(), 9);
  Moved<mc::queue<int>> queue(fill);
  EXPECT_EQ(queue->front(), 0);
  Moved<mc::priority_queue<int>> priority(fill);
  EXPECT_EQ(priority->top(), 9);
}

TEST(MetallContainersTest, StandardVectorsWithItsAllocator) {
  Moved<std::vector<int, manager::allocator_type<int>>> vector([](auto& numbers) {
    for (int i = 0; i < 1000; ++i) numbers.push_back(i);
  });
  EXPECT_EQ((*vector)[999], 999);
}

TEST(MetallContainersTest, TextsInMapsInVectors) {
  using Text = mc::string;
  using Map = mc::map<int, Text, std::less<>, manager::scoped_allocator_type<std::pair<const int, Text>>>;
  using Maps = mc::vector<Map, manager::scoped_allocator_type<Map>>;
  Moved<Maps> maps([](auto& all) {
    all.resize(3);
    for (int i = 0; i < 100; ++i)
      all[2][i] = ("a text that is too long to lie in the string, " + std::to_string(i)).c_str();
  });
  EXPECT_EQ(maps->at(2).at(42), "a text that is too long to lie in the string, 42");
}

TEST(MetallContainersTest, AFallbackAllocatorTakesFromMallocWithoutAStore) {
  using Numbers = mc::vector<int, manager::fallback_allocator<int>>;
  Numbers outside;
  for (int i = 0; i < 1000; ++i) outside.push_back(i);
  EXPECT_FALSE(outside.get_allocator().stateful_allocator_available());
  Moved<Numbers> inside([&](auto& numbers) {
    EXPECT_TRUE(numbers.get_stored_allocator().stateful_allocator_available());
    numbers = outside;
  });
  EXPECT_EQ(*inside, outside);
  EXPECT_NE(inside->get_allocator(), outside.get_allocator());
  EXPECT_THROW((void)outside.get_allocator().allocate(SIZE_MAX / 2), std::bad_array_new_length);
}

TEST(MetallContainersTest, ThreadsChangeAConcurrentMap) {
  using Map = mc::concurrent_map<int, int, std::less<int>, metall::utility::hash<int>,
                                 manager::allocator_type<std::pair<const int, int>>, 16>;
  Moved<Map> map([](Map& filled) {
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
  EXPECT_EQ(map->size(), 2002U);
  EXPECT_EQ(map->find(-1)->second, 2000);
  EXPECT_EQ(map->find(-2)->second, -2000);
  EXPECT_EQ(map->find(777), map->cend());
  std::size_t seen = 0;
  for (auto at = map->cbegin(); at != map->cend(); ++at) ++seen;
  EXPECT_EQ(seen, 2002U);
}

TEST(MetallContainersTest, ValuesByText) {
  using Store = mc::string_key_store<mc::string>;
  const std::string long_key(1000, 'k');
  Moved<Store> store([&](Store& filled) {
    const auto text = [&](const char* from) { return mc::string(from, filled.get_allocator()); };
    EXPECT_TRUE(filled.insert("empty"));
    EXPECT_TRUE(filled.insert(long_key, text("one")));
    EXPECT_TRUE(filled.insert(long_key, text("two")));
    EXPECT_TRUE(filled.insert("gone", text("x")));
    EXPECT_EQ(filled.erase("gone"), 1U);
  });
  EXPECT_EQ(store->size(), 3U);
  EXPECT_EQ(store->count(long_key), 2U);
  EXPECT_EQ(store->value(store->find("empty")), "");
  EXPECT_EQ(store->find("gone"), store->end());
  store->value(store->find("empty")) = "filled";
  EXPECT_EQ(store->value(store->find("empty")), "filled");
  std::size_t found = 0;
  for (auto [at, end] = store->equal_range(long_key); at != end; ++at, ++found) EXPECT_EQ(store->key(at), long_key);
  EXPECT_EQ(found, 2U);
}

TEST(MetallContainersTest, AUniqueStoreReplacesValues) {
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

TEST(MetallContainersTest, HashesAndRandomNumbersAreTheSameInEveryRun) {
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
