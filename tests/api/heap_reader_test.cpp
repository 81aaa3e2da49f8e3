// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is told of a heap that nobody has opened here, or somebody has.
#include "api/heap_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "heap_folder.hpp"
#include "segment/kept_segment.hpp"
#include "store/decorator.hpp"

namespace farheap::testing {
namespace {

class HeapReaderTest : public ::testing::Test {
 protected:
  HeapFolder folder;
};

// A pointer that lies at an offset of the heap (docs/formats.md).
constexpr std::uint64_t kOldestRecord = 5440 + 24;
constexpr std::uint64_t kDescription = 5568;
std::uint64_t& word_at(std::uint64_t address) { return *reinterpret_cast<std::uint64_t*>(address); }

HeapFacts must_look(const std::string& uri) {
  auto facts = Heap::look(uri);
  EXPECT_TRUE(facts.has_value()) << facts.error().message();
  return facts ? std::move(*facts) : HeapFacts();
}

void expect_equal(const std::vector<ObjectInfo>& seen, const Heap& heap) {
  std::size_t i = 0;
  heap.for_each_object([&](const ObjectInfo& one) {
    ASSERT_LT(i, seen.size());
    EXPECT_EQ(seen[i].kind, one.kind);
    EXPECT_EQ(seen[i].name, one.name);
    EXPECT_EQ(seen[i].type, one.type);
    EXPECT_EQ(seen[i].length, one.length);
    EXPECT_EQ(seen[i].bytes, one.bytes);
    EXPECT_EQ(seen[i].description, one.description);
    EXPECT_EQ(seen[i].address, one.address);
    ++i;
  });
  EXPECT_EQ(i, seen.size());
}

TEST_F(HeapReaderTest, LookTellsWhatTheOpenHeapTells) {
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  heap.construct<int>("number")(1);
  heap.construct<double>("many")[1000](0.5);
  heap.construct<long>(unique_instance)(2L);
  const char* const anonymous = heap.construct<char>(anonymous_instance)[100]('x');
  heap.construct<int>(std::string(100'000, 'n'))(3);  // its name is longer than a window
  ASSERT_TRUE(heap.describe(anonymous, "a hundred letters"));
  ASSERT_TRUE(heap.snapshot("monday"));
  ASSERT_TRUE(heap.destroy<double>("many"));
  ASSERT_TRUE(heap.commit());
  // Beside the writer, in its own process, where the addresses are taken.
  const HeapFacts facts = must_look(folder.uri());
  EXPECT_EQ(facts.id, heap.id());
  EXPECT_EQ(facts.uri, heap.uri());
  EXPECT_EQ(facts.format, 2u);
  EXPECT_EQ(facts.capacity_bytes, kSmall.capacity);
  EXPECT_TRUE(heap.owns(reinterpret_cast<void*>(facts.address)));
  expect_equal(facts.objects, heap);
  const auto versions = heap.versions().value();
  ASSERT_EQ(facts.versions.size(), versions.size());
  for (std::size_t i = 0; i < versions.size(); ++i) {
    EXPECT_EQ(facts.versions[i].name, versions[i].name);
    EXPECT_EQ(facts.versions[i].commit, versions[i].commit);
    EXPECT_EQ(facts.versions[i].pages, versions[i].pages);
    EXPECT_EQ(facts.versions[i].time_ns, versions[i].time_ns);
  }
  EXPECT_EQ(facts.version.commit, versions.back().commit);
  const HeapFacts monday = must_look(folder.uri() + "@monday");
  EXPECT_EQ(monday.version.name, "monday");
  EXPECT_EQ(monday.objects.size(), facts.objects.size() + 1);
}

TEST_F(HeapReaderTest, AnEmptyHeapAndMistakesGetAnAnswer) {
  EXPECT_EQ(Heap::look(folder.uri()).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder.file() + ".lock"));
  (void)must(Heap::create(folder.uri(), kSmall));
  EXPECT_TRUE(must_look(folder.uri()).objects.empty());
  const auto none = Heap::look(folder.uri() + "@monday");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Heap::look("mem:").error().code, ErrorCode::kInvalidArgument);
}

TEST_F(HeapReaderTest, AReaderKeepsTheVersionThatItHasSeen) {
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  auto* const numbers = heap.construct<std::uint64_t>("numbers")[500'000](1U);
  ASSERT_TRUE(heap.commit());
  auto reader = api::HeapReader::open(api::HeapPlace::parse(folder.uri()).value());
  ASSERT_TRUE(reader.has_value()) << reader.error().message();
  for (std::uint64_t value = 2; value < 6; ++value) {
    std::fill(numbers, numbers + 500'000, value);
    ASSERT_TRUE(heap.commit());
  }
  api::VersionBytes bytes = reader->bytes_of(reader->version("").value());
  std::uint64_t seen = 0;
  ASSERT_TRUE(bytes.stream(reinterpret_cast<std::uintptr_t>(numbers) + 8, 499'999 * 8, [&](auto piece) -> Status {
    for (std::size_t at = 0; at < piece.size(); at += 8) {
      std::uint64_t value = 0;
      std::memcpy(&value, piece.data() + at, 8);
      EXPECT_EQ(value, 1u);
      ++seen;
    }
    return {};
  }));
  EXPECT_EQ(seen, 499'999u);
}

class CountingStore final : public store::Decorator {
 public:
  CountingStore(std::unique_ptr<Store> inner, std::uint64_t& gets)
      : Decorator("counting", std::move(inner)), gets_(gets) {}
  Status get(std::span<Get> batch) override {
    ++gets_;
    return inner_->get(batch);
  }

 private:
  std::uint64_t& gets_;
};

class NoLeases final : public segment::VersionLeases {
 public:
  Status take(std::uint64_t) override { return {}; }
  Result<std::uint64_t> oldest() override { return kNobody; }
};

// Calls of the store's get() for all facts and all objects.
std::uint64_t reads_of(const std::string& uri, std::size_t objects) {
  std::uint64_t gets = 0;
  auto store = open_store(uri, {.lifetime = Lifetime::kKeep});
  EXPECT_TRUE(store.has_value());
  auto reader =
      api::HeapReader::open(std::make_unique<CountingStore>(std::move(*store), gets), std::make_unique<NoLeases>());
  EXPECT_TRUE(reader.has_value());
  EXPECT_TRUE(reader->versions().has_value());
  const auto version = reader->version("").value();
  api::VersionBytes bytes = reader->bytes_of(version);
  EXPECT_TRUE(api::read_books(bytes).has_value());
  EXPECT_EQ(api::read_objects(bytes, reader->pages_of(version)).value().size(), objects);
  return gets;
}

TEST_F(HeapReaderTest, ReadsAreFew) {
  constexpr std::size_t kObjects = 100'000;
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    heap.construct<std::uint64_t>("large")[4'000'000](1U);  // which nobody has to read
    ASSERT_TRUE(heap.commit());
  }
  EXPECT_LE(reads_of(folder.uri(), 1), 13u);
  {
    Heap heap = must(Heap::open(folder.uri(), kSmall));
    for (std::size_t i = 1; i < kObjects; ++i) heap.construct<std::uint64_t>("object " + std::to_string(i))(i);
    ASSERT_TRUE(heap.commit());
  }
  // 96 bytes a record, 16 a name, 16 a type: 195 windows of 64 KiB, and some that are not full.
  const std::uint64_t reads = reads_of(folder.uri(), kObjects);
  EXPECT_LE(reads, 230u);
  RecordProperty("reads", static_cast<int>(reads));
}

TEST_F(HeapReaderTest, TheHeapsDescriptionIsRead) {
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    auto* const text = static_cast<char*>(heap.allocate(64));
    std::strcpy(text, "what the graph is about");
    word_at(must_look(folder.uri()).address + kDescription) = reinterpret_cast<std::uintptr_t>(text);
    ASSERT_TRUE(heap.commit());
  }
  EXPECT_EQ(must_look(folder.uri()).description, "what the graph is about");
}

// A heap's own commit refuses to make such damage last. The segment below it knows nothing of what its pages hold.
std::uint64_t commit_below_the_heap(const std::string& uri, std::uint64_t address, std::uint64_t value) {
  auto store = open_store(uri, {.lifetime = Lifetime::kKeep});
  EXPECT_TRUE(store) << store.error().message();
  auto segment = segment::KeptSegment::open(std::move(*store), {.memory_bytes = 16 << 20, .clean_when_idle = false});
  EXPECT_TRUE(segment) << segment.error().message();
  const std::uint64_t before = std::exchange(word_at(address), value);
  EXPECT_TRUE((*segment)->commit(segment::KeptSegment::Kind::kCommit, "", [] {}));
  return before;
}

TEST_F(HeapReaderTest, DamagedListsEndWithASentence) {
  std::uint64_t record = 0;
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    for (int i = 0; i < 10; ++i) heap.construct<int>("number " + std::to_string(i))(i);
    ASSERT_TRUE(heap.commit());
    record = word_at(must_look(folder.uri()).address + kOldestRecord);
  }
  const std::uint64_t base = must_look(folder.uri()).address;
  struct Damage {
    std::uint64_t at, value;
  };
  for (const Damage& damage : {
           Damage{record + 24, record},                  // newer: itself
           Damage{record + 24, base + kSmall.capacity},  // outside
           Damage{record + 24, 0},                       // too early an end
           Damage{record + 40, UINT64_MAX / 2},          // length
           Damage{record + 64, 1},                       // name
           Damage{record + 72, base - 1},                // type
           Damage{record + 88, 0xffff'ffff},             // bytes of the name, kind
           Damage{base + kOldestRecord, 1},
           Damage{base + kDescription, 17},
       }) {
    const std::uint64_t before = commit_below_the_heap(folder.uri(), damage.at, damage.value);
    const auto facts = Heap::look(folder.uri());
    ASSERT_FALSE(facts) << damage.at - record;
    EXPECT_EQ(facts.error().code, ErrorCode::kCorrupt) << facts.error().message();
    EXPECT_EQ(commit_below_the_heap(folder.uri(), damage.at, before), damage.value);
  }
  EXPECT_EQ(must_look(folder.uri()).objects.size(), 10u);
}

TEST_F(HeapReaderTest, UsageTellsWhatIsAllocated) {
  std::uint64_t allocated = 0;
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    for (std::size_t i = 0; i < 1000; ++i) heap.construct<char>("object " + std::to_string(i))[i + 1]('x');
    heap.construct<char>("large")[5 << 20]('x');
    for (std::size_t i = 0; i < 1000; i += 3) heap.destroy<char>("object " + std::to_string(i));
    ASSERT_TRUE(heap.compact());  // nothing is in this thread's cache
    allocated = heap.statistics().allocated_bytes;
  }
  const auto usage = Heap::usage(folder.uri());
  ASSERT_TRUE(usage.has_value()) << usage.error().message();
  EXPECT_EQ(usage->allocated_bytes, allocated);
  EXPECT_GE(usage->page_bytes, 5u << 20);
  EXPECT_GE(usage->all_bytes, usage->page_bytes);
  EXPECT_GE(usage->store_bytes, usage->page_bytes);
  EXPECT_TRUE(usage->snapshots.empty());
}

TEST_F(HeapReaderTest, UsageTellsWhatEachSnapshotTakesAlone) {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kPages[] = {100, 200, 0, 50};  // changed after it
  constexpr std::size_t kOwn[] = {100, 100, 0, 0};     // the others of its pages are in the snapshot before, too
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    auto* const letters = heap.construct<char>("letters")[1000 * kPage]('a');
    ASSERT_TRUE(heap.commit());
    std::size_t number = 0;
    for (const std::size_t pages : kPages) {
      ASSERT_TRUE(heap.snapshot("snapshot " + std::to_string(number++)));
      for (std::size_t i = 0; i < pages; ++i) letters[i * kPage] = static_cast<char>('b' + number);
      ASSERT_TRUE(heap.commit());
    }
  }
  const auto usage = Heap::usage(folder.uri()).value();
  ASSERT_EQ(usage.snapshots.size(), std::size(kPages));
  for (std::size_t i = 0; i < std::size(kPages); ++i) {
    EXPECT_GE(usage.snapshots[i].own_bytes, kOwn[i] * kPage) << i;
    EXPECT_LE(usage.snapshots[i].own_bytes, (kOwn[i] + 16) * kPage) << i;  // and what changed of books
  }
  // What removing one gives back.
  for (const std::size_t i : {1u, 0u, 3u}) {
    const auto before = Heap::usage(folder.uri()).value();
    const auto one = std::ranges::find(before.snapshots, "snapshot " + std::to_string(i),
                                       [](const SnapshotUsage& each) { return each.version.name; });
    ASSERT_NE(one, before.snapshots.end());
    ASSERT_TRUE(must(Heap::open(folder.uri(), kSmall)).remove_snapshot(one->version.name));
    const auto after = Heap::usage(folder.uri()).value();
    EXPECT_NEAR(static_cast<double>(before.all_bytes - after.all_bytes), static_cast<double>(one->own_bytes), 8 * kPage)
        << i;
  }
}

TEST_F(HeapReaderTest, InLmdbAndBehindDecorators) {
  for (const std::string& uri : {"lmdb:" + folder.file("l"), "checksum+file:" + folder.file("c")}) {
    {
      Heap heap = must(Heap::create(uri, kSmall));
      heap.construct<int>("number")[1000](5);
      ASSERT_TRUE(heap.commit()) << uri;
      EXPECT_EQ(must_look(uri).objects.size(), 1u) << uri;
      heap.construct<int>("another")(5);
      ASSERT_TRUE(heap.commit()) << uri;
      EXPECT_EQ(must_look(uri).objects.size(), 2u) << uri;
    }
    EXPECT_EQ(must_look(uri).objects.size(), 2u) << uri;
  }
}

}  // namespace
}  // namespace farheap::testing
