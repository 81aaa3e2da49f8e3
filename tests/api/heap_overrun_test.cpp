// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that write behind the end of an object: what a heap knows of it, and that no commit makes it last.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "heap_folder.hpp"
#include "thrown_by.hpp"

namespace farheap::testing {
namespace {

class HeapOverrunTest : public ::testing::Test {
 protected:
  HeapFolder folder;

  // The newest commit is sound, and has these numbers and this many objects.
  void expect_last_commit(double first, std::uint64_t objects) const {
    EXPECT_TRUE(Heap::check(folder.uri()));
    Heap heap = must(Heap::open(folder.uri(), kSmall));
    EXPECT_EQ(heap.find<double>("a")[0], first);
    EXPECT_EQ(heap.statistics().objects, objects);
    EXPECT_TRUE(heap.commit());
  }
};

// It gave the array of 100, in silence.
TEST_F(HeapOverrunTest, AnArrayOfAnotherLengthThanAskedForIsNoMatch) {
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  (void)heap.construct<double>("a")[100](1.0);
  const std::string what = thrown_by<TypeMismatch>([&] { (void)heap.find_or_construct<double>("a")[100'000](0.0); });
  EXPECT_NE(what.find("'a' has 100 elements of type double, and was asked for with 100000"), what.npos) << what;
  EXPECT_THROW((void)heap.find_or_construct<double>("a")[1](), TypeMismatch);
  EXPECT_NE(heap.find_or_construct<double>("a")[100](), nullptr);
  EXPECT_NE(heap.find_or_construct<double>("a")(), nullptr) << "no length was asked for";
  EXPECT_EQ(heap.construct<double>("a")[7](), nullptr) << "there is one of that name, whatever its length";
  EXPECT_EQ(heap.find_array<double>("a").length, 100u);
  (void)heap.construct<double>(unique_instance)[3]();
  EXPECT_THROW((void)heap.find_or_construct<double>(unique_instance)[4](), TypeMismatch);
}

TEST_F(HeapOverrunTest, ACommitDoesNotMakeTheOverrunOfAnArrayLast) {
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    double* const numbers = heap.construct<double>("a")[100](1.0);
    ASSERT_TRUE(heap.commit());
    for (int i = 0; i < 50; ++i) (void)heap.construct<int>("neighbour" + std::to_string(i))(i);
    ASSERT_TRUE(heap.commit());
    const auto last = heap.last_commit();
    for (std::size_t i = 0; i < 100'000; ++i) numbers[i] = 1.5;
    const Status status = heap.commit();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(status.error().remedy.find("as it was at commit " + std::to_string(last)), std::string::npos)
        << status.error().message();
    EXPECT_FALSE(heap.snapshot("damaged"));
    EXPECT_EQ(heap.last_commit(), last);
  }
  expect_last_commit(1.0, 51);
}

// Before the first commit of a process nothing is known of the directory: all of it is looked at.
TEST_F(HeapOverrunTest, TheFirstCommitAfterOpeningLooksAtAll) {
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    (void)heap.construct<double>("a")[100](1.0);
    (void)heap.construct<int>("b")(2);
    ASSERT_TRUE(heap.commit());
  }
  {
    Heap heap = must(Heap::open(folder.uri(), kSmall));
    double* const numbers = heap.find<double>("a");
    for (std::size_t i = 0; i < 100'000; ++i) numbers[i] = 0.0;
    const Status status = heap.commit();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
  }
  expect_last_commit(1.0, 2);
}

// One part at a time: each has to be seen by itself.
TEST_F(HeapOverrunTest, EachPartOfTheDirectoryThatIsHitIsSeen) {
  struct Hit {
    const char* what;
    std::byte* (*at)(Heap&);
    std::size_t bytes;
  };
  const auto name_of = [](Heap& heap) {
    return reinterpret_cast<std::byte*>(const_cast<char*>(heap.entry(ObjectKind::kNamed, "victim")->name.data()));
  };
  const auto type_of = [](Heap& heap) {
    return reinterpret_cast<std::byte*>(const_cast<char*>(heap.entry(ObjectKind::kNamed, "victim")->type.data()));
  };
  // A record holds the object's address at 32, and lies in a slab near it.
  const auto record_of = [](Heap& heap) -> std::byte* {
    const auto victim = reinterpret_cast<std::uintptr_t>(heap.entry(ObjectKind::kNamed, "victim")->address);
    for (std::uintptr_t at = victim / 2_MiB * 2_MiB; at < victim / 2_MiB * 2_MiB + 2_MiB; at += 8) {
      if (std::memcmp(reinterpret_cast<const void*>(at), &victim, sizeof victim) == 0) {
        return reinterpret_cast<std::byte*>(at) - 32;
      }
    }
    return nullptr;
  };
  const auto record = +record_of;
  for (const Hit& hit : {Hit{"a name", +name_of, 4}, Hit{"a type", +type_of, 1}, Hit{"a record", record, 96},
                         Hit{"a link", record, 8}}) {
    SCOPED_TRACE(hit.what);
    HeapFolder place;
    {
      Heap heap = must(Heap::create(place.uri(), kSmall));
      (void)heap.construct<double>("a")[100](1.0);
      (void)heap.construct<double>("victim")(2.0);
      ASSERT_TRUE(heap.commit());
      std::byte* const at = hit.at(heap);
      ASSERT_NE(at, nullptr);
      std::memset(at, 0x41, hit.bytes);
      const Status status = heap.commit();
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
    }
    EXPECT_TRUE(Heap::check(place.uri()));
  }
}

// What was written out before the commit, because memory was short, is looked at all the same.
TEST_F(HeapOverrunTest, DamageThatLeftMemoryBeforeTheCommitIsSeen) {
  {
    Heap heap = must(Heap::create(folder.uri(), {.memory = 16_MiB, .capacity = 4_GiB}));
    double* const numbers = heap.construct<double>("a")[100](1.0);
    (void)heap.construct<int>("b")(2);
    ASSERT_TRUE(heap.commit());
    for (std::size_t i = 0; i < 30'000; ++i) numbers[i] = 0.5;
    void* const large = heap.allocate(64_MiB);
    for (std::size_t i = 0; i < 64_MiB; i += 4096) static_cast<char*>(large)[i] = 1;
    ASSERT_GT(heap.statistics().bytes_written, 0u);
    ASSERT_FALSE(heap.commit());
  }
  expect_last_commit(1.0, 2);
}

// Whatever a program does that is allowed is no damage.
TEST_F(HeapOverrunTest, WhatIsNoOverrunIsCommitted) {
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 300; ++i) {
      const std::string name = "object" + std::to_string(i % 37 == 0 ? i : round * 1000 + i);
      if (auto* const made = heap.construct<double>(name)[static_cast<std::size_t>(i % 5) + 1](1.0); made != nullptr) {
        if (i % 3 == 0) {
          ASSERT_TRUE(heap.describe(made, std::string(static_cast<std::size_t>(i), 'x')));
        }
        if (i % 7 == 0) {
          ASSERT_TRUE(heap.destroy_ptr(made));
        }
      }
      if (i % 50 == 0) {
        ASSERT_TRUE(heap.commit()) << round << " " << i;
      }
    }
    (void)heap.construct<int>(anonymous_instance)(round);
  }
  const Status last = heap.commit();
  EXPECT_TRUE(last) << last.error().message();
}

}  // namespace
}  // namespace farheap::testing
