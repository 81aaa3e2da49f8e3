// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// metall::manager as programs use it: objects, their attributes, memory, and its ways to say no.
#include <gtest/gtest.h>

#include <metall/metall.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "store_folder.hpp"

namespace farheap::testing {
namespace {

using metall::manager;
using Kind = manager::instance_kind;
template <class T>
using Vector = boost::container::vector<T, manager::allocator_type<T>>;

class MetallManagerTest : public ::testing::Test {
 protected:
  MetallManagerTest() { metall::logger::set_log_level(metall::logger::level_filter::silent); }
  ~MetallManagerTest() override { metall::logger::set_log_level(metall::logger::level_filter::error); }
  manager create() { return {metall::create_only, path, kCapacity}; }

  StoreFolder folder;
  const std::filesystem::path path = folder / "store";
};

TEST_F(MetallManagerTest, ObjectsAreThereAgain) {
  {
    manager store = create();
    ASSERT_TRUE(store.check_sanity());
    EXPECT_FALSE(store.read_only());
    auto* const numbers = store.construct<Vector<int>>("numbers")(store.get_allocator());
    for (int i = 0; i < 1000; ++i) numbers->push_back(i);
    EXPECT_EQ(*store.find_or_construct<int>("one")(1), 1);
    EXPECT_EQ(*store.find_or_construct<int>("one")(2), 1);
  }
  manager store(metall::open_only, path);
  const auto [numbers, length] = store.find<Vector<int>>("numbers");
  ASSERT_NE(numbers, nullptr);
  EXPECT_EQ(length, 1U);
  ASSERT_EQ(numbers->size(), 1000U);
  EXPECT_EQ((*numbers)[999], 999);
  EXPECT_TRUE(store.destroy<Vector<int>>("numbers"));
  EXPECT_TRUE(store.destroy<int>("one"));
  EXPECT_TRUE(store.all_memory_deallocated());
}

TEST_F(MetallManagerTest, WhatIsTakenOrMissingIsNullptr) {
  manager store = create();
  EXPECT_NE(store.construct<int>("a")(1), nullptr);
  EXPECT_EQ(store.construct<int>("a")(2), nullptr) << "the name is taken";
  EXPECT_EQ(store.construct<char>("a")('b'), nullptr) << "by another type";
  EXPECT_EQ(store.construct<int>("")(1), nullptr);
  EXPECT_EQ(store.find<int>("b").first, nullptr);
  EXPECT_EQ(store.find<int>("b").second, 0U);
  EXPECT_EQ(store.find<int>(metall::anonymous_instance).first, nullptr);
  EXPECT_FALSE(store.destroy<int>("b"));
  EXPECT_FALSE(store.destroy<int>(metall::unique_instance));
  EXPECT_FALSE(store.destroy_ptr(static_cast<int*>(nullptr)));
}

TEST_F(MetallManagerTest, FindDoesNotLookAtTheTypeButItCanBeAskedFor) {
  manager store = create();
  int* const number = store.construct<int>("number")(5);
  EXPECT_EQ(static_cast<void*>(store.find<float>("number").first), number);
  EXPECT_TRUE(store.is_instance_type<int>(number));
  EXPECT_FALSE(store.is_instance_type<float>(number));
}

TEST_F(MetallManagerTest, ArraysOfLikeElementsAndFromIterators) {
  struct Pair {
    int first;
    float second;
    Pair(int a, float b) : first(a), second(b) {}
  };
  {
    manager store = create();
    const int firsts[] = {1, 2, 3};
    const float seconds[] = {0.5F, 1.5F, 2.5F};
    EXPECT_NE(store.construct<int>("sevens")[2][2](7), nullptr);
    EXPECT_NE(store.construct_it<Pair>("pairs")[3](&firsts[0], &seconds[0]), nullptr);
    EXPECT_EQ(store.find_or_construct_it<Pair>("pairs")[3](&firsts[0], &seconds[0]), store.find<Pair>("pairs").first);
    EXPECT_EQ(*store.construct<int>("nothing")(), 0) << "made from no value, it is zero";
  }
  manager store(metall::open_read_only, path);
  EXPECT_EQ(store.find<int>("sevens").second, 4U);
  EXPECT_EQ(store.find<int>("sevens").first[3], 7);
  const auto [pairs, length] = store.find<Pair>("pairs");
  ASSERT_EQ(length, 3U);
  EXPECT_EQ(pairs[2].first, 3);
  EXPECT_EQ(pairs[2].second, 2.5F);
}

TEST_F(MetallManagerTest, MoveOnlyArgumentsAreMoved) {
  manager store = create();
  struct Taker {
    int value;
    explicit Taker(std::unique_ptr<int> from) : value(*from) {}
  };
  EXPECT_EQ(store.construct<Taker>("taker")(std::make_unique<int>(9))->value, 9);
}

struct Counted {
  static inline int alive = 0;
  static inline int left = 0;  // until one throws
  Counted() {
    if (left-- == 0) throw std::runtime_error("as asked");
    ++alive;
  }
  ~Counted() { --alive; }
};

TEST_F(MetallManagerTest, AConstructorThatThrowsLeavesNothing) {
  manager store = create();
  Counted::left = 2;
  EXPECT_THROW(store.construct<Counted>("counted")[3](), std::runtime_error);
  EXPECT_EQ(Counted::alive, 0);
  EXPECT_EQ(store.find<Counted>("counted").first, nullptr);
  EXPECT_TRUE(store.all_memory_deallocated());
  Counted::left = 3;
  EXPECT_NE(store.construct<Counted>("counted")[3](), nullptr);
  EXPECT_TRUE(store.destroy<Counted>("counted"));
  EXPECT_EQ(Counted::alive, 0);
}

TEST_F(MetallManagerTest, NamesKindsLengthsAndDescriptions) {
  manager store = create();
  int* const named = store.construct<int>("named")[3](1);
  int* const unique = store.construct<int>(metall::unique_instance)(2);
  int* const anonymous = store.construct<int>(metall::anonymous_instance)(3);
  EXPECT_STREQ(store.get_instance_name(named), "named");
  EXPECT_STREQ(store.get_instance_name(unique), typeid(int).name());
  EXPECT_EQ(store.get_instance_name(anonymous), nullptr);
  EXPECT_EQ(store.get_instance_kind(named), Kind::named_kind);
  EXPECT_EQ(store.get_instance_kind(unique), Kind::unique_kind);
  EXPECT_EQ(store.get_instance_kind(anonymous), Kind::anonymous_kind);
  EXPECT_EQ(store.get_instance_length(named), 3U);
  EXPECT_EQ(store.get_instance_length(this), 0U) << "no object of the store";
  std::string text = "before";
  EXPECT_TRUE(store.get_instance_description(named, &text));
  EXPECT_EQ(text, "");
  EXPECT_TRUE(store.set_instance_description(anonymous, "nameless"));
  EXPECT_TRUE(store.get_instance_description(anonymous, &text));
  EXPECT_EQ(text, "nameless");
  EXPECT_FALSE(store.set_instance_description(this, "no"));
  EXPECT_EQ(store.find<int>(metall::unique_instance).first, unique);
  EXPECT_TRUE(store.destroy_ptr(anonymous));
  EXPECT_FALSE(store.destroy_ptr(anonymous));
}

TEST_F(MetallManagerTest, IteratorsShowWhatIsThere) {
  manager store = create();
  EXPECT_EQ(store.named_begin(), store.named_end());
  EXPECT_EQ(store.named_begin()->length(), 0U) << "nothing is there, and nothing breaks";
  (void)store.construct<int>("a")(1);
  auto* const b = store.construct<float>("b")[2](2);
  (void)store.construct<int>(metall::unique_instance)(3);
  (void)store.construct<int>(metall::anonymous_instance)(4);
  std::set<std::string> names;
  for (auto at = store.named_begin(); at != store.named_end(); ++at) names.insert(at->name());
  EXPECT_EQ(names, (std::set<std::string>{"a", "b"}));
  auto at = store.named_begin();
  at++;
  EXPECT_TRUE(at->is_type<float>());
  EXPECT_EQ(at->type_id(), typeid(float).hash_code());
  EXPECT_EQ(at->length(), 2U);
  EXPECT_EQ(static_cast<const char*>(store.get_address()) + at->offset(), reinterpret_cast<char*>(b));
  EXPECT_EQ(store.unique_begin()->name(), typeid(int).name());
  EXPECT_EQ(store.anonymous_begin()->name(), "");
  EXPECT_EQ(store.get_num_named_objects(), 2U);
  EXPECT_EQ(store.get_num_unique_objects(), 1U);
  EXPECT_EQ(store.get_num_anonymous_objects(), 1U);
}

TEST_F(MetallManagerTest, MemoryWithoutNames) {
  manager store = create();
  EXPECT_TRUE(store.all_memory_deallocated());
  void* const memory = store.allocate(100);
  ASSERT_NE(memory, nullptr);
  EXPECT_FALSE(store.all_memory_deallocated());
  store.deallocate(memory);
  store.deallocate(nullptr);
  void* const aligned = store.allocate_aligned(8192, 4096);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 4096, 0U);
  store.deallocate(aligned);
  EXPECT_EQ(store.allocate_aligned(24, 24), nullptr) << "no power of two";
  EXPECT_EQ(store.allocate_aligned(100, 64), nullptr) << "no multiple of it";
  EXPECT_EQ(store.allocate_aligned(8, 4), nullptr) << "too small";
  EXPECT_EQ(store.allocate_aligned(manager::chunk_size() * 2, manager::chunk_size() * 2), nullptr) << "too large";
  EXPECT_TRUE(store.all_memory_deallocated());
}

TEST_F(MetallManagerTest, AFullStoreSaysSoAndGoesOn) {
  manager store(metall::create_only, path, 1 << 24);
  std::vector<void*> taken;
  while (void* const memory = store.allocate(std::size_t{16} << 20)) taken.push_back(memory);
  EXPECT_GT(taken.size(), 2U);
  EXPECT_EQ(store.construct<char>("much")[std::size_t{64} << 20](), nullptr);
  Vector<char> bytes(store.get_allocator());
  EXPECT_THROW(bytes.resize(std::size_t{64} << 20), std::bad_alloc);
  EXPECT_THROW((void)store.get_allocator<int>().allocate(SIZE_MAX / 2), std::bad_array_new_length);
  EXPECT_TRUE(store.check_sanity());
  for (void* const memory : taken) store.deallocate(memory);
  EXPECT_NE(store.construct<char>("much")[std::size_t{64} << 20](), nullptr);
}

TEST_F(MetallManagerTest, WhatWasOpenedForReadingDoesNotChange) {
  {
    manager store = create();
    (void)store.construct<int>("one")(1);
  }
  manager store(metall::open_read_only, path);
  ASSERT_TRUE(store.check_sanity());
  EXPECT_TRUE(store.read_only());
  EXPECT_EQ(*store.find_or_construct<int>("one")(2), 1);
  EXPECT_EQ(store.find_or_construct<int>("two")(2), nullptr);
  EXPECT_EQ(store.construct<int>("two")(2), nullptr);
  EXPECT_FALSE(store.destroy<int>("one"));
  EXPECT_FALSE(store.destroy_ptr(store.find<int>("one").first));
  EXPECT_FALSE(store.set_instance_description(store.find<int>("one").first, "no"));
  EXPECT_EQ(store.allocate(8), nullptr);
  store.flush();
}

TEST_F(MetallManagerTest, AManagerWithoutAStoreDoesNothing) {
  manager store(metall::open_only, folder / "nowhere");
  EXPECT_FALSE(store.check_sanity());
  EXPECT_TRUE(store.read_only());
  EXPECT_EQ(store.construct<int>("a")(1), nullptr);
  EXPECT_EQ(store.find<int>("a").first, nullptr);
  EXPECT_FALSE(store.destroy<int>("a"));
  EXPECT_EQ(store.allocate(8), nullptr);
  EXPECT_EQ(store.get_address(), nullptr);
  EXPECT_EQ(store.get_size(), 0U);
  EXPECT_EQ(store.get_uuid(), "");
  EXPECT_EQ(store.named_begin(), store.named_end());
  EXPECT_THROW((void)store.get_allocator<int>().allocate(1), std::bad_alloc);
  EXPECT_FALSE(store.snapshot(folder / "copy"));
  store.deallocate(nullptr);
  store.flush();
}

TEST_F(MetallManagerTest, ManagersAreMoved) {
  manager first = create();
  (void)first.construct<int>("one")(1);
  manager second(std::move(first));
  EXPECT_FALSE(first.check_sanity());  // NOLINT(bugprone-use-after-move): what is left of it is promised
  EXPECT_EQ(*second.find<int>("one").first, 1);
}

TEST_F(MetallManagerTest, ThreadsConstructAndDestroyAtOnce) {
  manager store = create();
  std::vector<std::thread> threads;
  std::atomic<int> made = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        if (store.construct<int>(("shared" + std::to_string(i)).c_str())(t) != nullptr) ++made;
        if (t % 2 == 0) {
          store.deallocate(store.allocate(100));
        } else {
          EXPECT_TRUE(store.destroy_ptr(store.construct<int>(metall::anonymous_instance)(i)));
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(made, 200) << "each name is given once";
  EXPECT_EQ(store.get_num_named_objects(), 200U);
  EXPECT_EQ(store.get_num_anonymous_objects(), 0U);
}

}  // namespace
}  // namespace farheap::testing
