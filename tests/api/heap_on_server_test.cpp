// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heaps in stores on servers: what is done with files and locks there is done with names and leases here. The server is
// a store in memory that all handles share; tests/engines has the same on servers.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>

#include "api/heap_lock.hpp"
#include "heap_folder.hpp"
#include "heap_on_store.hpp"
#include "segment/versions.hpp"
#include "table_work.hpp"

namespace farheap::testing {
namespace {

constexpr char kUri[] = "redis://somewhere/0/graph";

class HeapOnServer : public ::testing::Test {
 protected:
  HeapOnServer()
      : heaps_([this](const api::HeapPlace& place) -> Result<std::unique_ptr<Store>> {
          if (!place.is_on_server()) return open_store(place.uri, {.lifetime = Lifetime::kKeep});
          std::lock_guard lock(mutex_);
          auto& store = servers_[place.uri];
          if (!store) store = std::move(*open_store("mem:"));
          return std::make_unique<SharedStore>(*store);
        }) {}
  std::uint64_t blocks(const std::string& uri = kUri) { return servers_[uri] ? servers_[uri]->usage()->blocks : 0; }

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Store>> servers_;
  HeapsOn heaps_;
  TableWork work_;
};

TEST_F(HeapOnServer, IsThereAgainAfterItWasClosed) {
  EXPECT_EQ(Heap::open(kUri, kSmall).error().code, ErrorCode::kNotFound);
  {
    Heap heap = must(Heap::open_or_create(kUri, kSmall));
    for (int i = 0; i < 5; ++i) work_.step(heap);
    ASSERT_TRUE(heap.commit());
    work_.step(heap);  // lost
  }
  Heap heap = must(Heap::open_or_create(kUri, kSmall));
  EXPECT_EQ(TableWork::steps_of(heap), 5u);
  EXPECT_EQ(work_.compare(heap), "");
  EXPECT_EQ(Heap::create(kUri, kSmall).error().code, ErrorCode::kConflict);
}

TEST_F(HeapOnServer, HasSnapshotsThatAreRead) {
  {
    Heap heap = must(Heap::create(kUri, kSmall));
    work_.step(heap);
    ASSERT_TRUE(heap.snapshot("one"));
    work_.step(heap);
    ASSERT_TRUE(heap.commit());
  }
  const Heap heap = must(Heap::open_read_only(std::string(kUri) + "@one", kSmall));
  EXPECT_EQ(TableWork::steps_of(heap), 1u);
  EXPECT_EQ(work_.compare(heap), "");
}

TEST_F(HeapOnServer, GoesBackToASnapshot) {
  {
    Heap heap = must(Heap::create(kUri, kSmall));
    work_.step(heap);
    ASSERT_TRUE(heap.snapshot("one"));
    work_.step(heap);
    ASSERT_TRUE(heap.commit());
  }
  ASSERT_TRUE(Heap::roll_back(std::string(kUri) + "@one"));
  Heap heap = must(Heap::open(kUri, kSmall));
  EXPECT_EQ(TableWork::steps_of(heap), 1u);
  EXPECT_EQ(work_.compare(heap), "");
}

TEST_F(HeapOnServer, HasOneWriterAndTellsTheNextWhoItIs) {
  Heap heap = must(Heap::create(kUri, kSmall));
  const auto second = Heap::open(kUri, kSmall);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_NE(second.error().why.find(std::to_string(getpid())), std::string::npos) << second.error().message();
  EXPECT_TRUE(Heap::has_writer(kUri).value());
  EXPECT_EQ(Heap::remove(kUri).error().code, ErrorCode::kConflict);
}

// The reader looks at pages that the writer would have given away long ago.
TEST_F(HeapOnServer, AReaderKeepsItsVersionBesideAWriter) {
  Heap heap = must(Heap::create(kUri, kSmall));
  work_.step(heap);
  ASSERT_TRUE(heap.commit());
  const auto facts = Heap::look(kUri);
  ASSERT_TRUE(facts) << facts.error().message();
  const auto place = api::HeapPlace::parse(kUri);
  auto reader = api::HeapLock::take(*place, api::HeapLock::For::kReading);
  ASSERT_TRUE(reader) << reader.error().message();
  auto store = place->open(**reader);
  ASSERT_TRUE(store);
  auto versions = segment::Versions::open_to_read(**store, **reader);
  ASSERT_TRUE(versions);
  for (int i = 0; i < 6; ++i) {
    work_.step(heap);
    ASSERT_TRUE(heap.commit());
  }
  const Status sound = (*versions)->check(true);
  EXPECT_TRUE(sound) << sound.error().message();
}

TEST_F(HeapOnServer, GoesWithAllOfItsBlocks) {
  {
    Heap heap = must(Heap::create(kUri, kSmall));
    work_.step(heap);
    ASSERT_TRUE(heap.commit());
  }
  EXPECT_GT(blocks(), 0u);
  const Status removed = Heap::remove(kUri);
  ASSERT_TRUE(removed) << removed.error().message();
  EXPECT_EQ(blocks(), 0u);
  EXPECT_EQ(Heap::remove(kUri).error().code, ErrorCode::kNotFound);
  Heap heap = must(Heap::create(kUri, kSmall));
  EXPECT_EQ(TableWork::steps_of(heap), 0u);
}

TEST_F(HeapOnServer, IsCopiedToAFileAndBack) {
  HeapFolder folder;
  {
    Heap heap = must(Heap::create(kUri, kSmall));
    work_.step(heap);
    ASSERT_TRUE(heap.snapshot("one"));
    work_.step(heap);
    ASSERT_TRUE(heap.commit());
  }
  Status copied = Heap::copy(kUri, folder.uri());
  ASSERT_TRUE(copied) << copied.error().message();
  const std::string back = "redis://somewhere/0/back";
  copied = Heap::copy(folder.uri(), back);
  ASSERT_TRUE(copied) << copied.error().message();
  EXPECT_EQ(Heap::copy(folder.uri(), kUri).error().code, ErrorCode::kConflict);
  const Status sound = Heap::check(back, {.data = true});
  EXPECT_TRUE(sound) << sound.error().message();
  Heap heap = must(Heap::open(back, kSmall));
  EXPECT_EQ(work_.compare(heap), "");
  EXPECT_EQ(TableWork::steps_of(heap), 2u);
  EXPECT_EQ(Heap::look(back)->versions.size(), 2u);
}

// Blocks of a copy that was interrupted are there, and no superblock.
TEST_F(HeapOnServer, WhatAnInterruptedCopyLeftIsInNobodysWay) {
  HeapFolder folder;
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    work_.step(heap);
    ASSERT_TRUE(heap.commit());
  }
  servers_[kUri] = std::move(*open_store("mem:"));
  const std::vector<std::byte> page(4096);
  Put put{.block = 77, .from = page};
  ASSERT_TRUE(servers_[kUri]->put({&put, 1}));
  const Status refused = Heap::copy(folder.uri(), kUri);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict) << "somebody else's, for all that is known";
}

TEST_F(HeapOnServer, UsersOfServersAreNoSnapshots) {
  const auto place = api::HeapPlace::parse("redis://user@somewhere:6379");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->snapshot, "");
  const auto both = api::HeapPlace::parse("checksum+redis+cluster://user@somewhere,else/graph@monday");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->snapshot, "monday");
  EXPECT_EQ(both->uri, "checksum+redis+cluster://user@somewhere,else/graph");
  EXPECT_TRUE(both->is_on_server());
  const auto two = api::HeapPlace::parse("pages=redis://somewhere/0/graph,sync=etcd://u@else/graph@monday");
  ASSERT_TRUE(two);
  EXPECT_EQ(two->snapshot, "monday");
  EXPECT_FALSE(api::HeapPlace::parse("mem:"));
  EXPECT_FALSE(api::HeapPlace::parse("nothing"));
}

}  // namespace
}  // namespace farheap::testing
