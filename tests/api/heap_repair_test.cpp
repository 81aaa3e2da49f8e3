// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Damaged heaps: what is whole is found, takes the place of the heap, and the damaged files stay.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "heap_folder.hpp"
#include "segment/kept_segment.hpp"
#include "segment/versions_salvage.hpp"

namespace farheap::testing {
namespace {

constexpr std::size_t kNumbers = 200'000;

std::string message(const Status& status) { return status ? "" : status.error().message(); }
std::string message(const Result<RepairReport>& report) { return report ? "" : report.error().message(); }

class HeapRepairTest : public ::testing::Test {
 protected:
  // Snapshots one and two, and the commits 3 and 4 after them: all numbers are 1, 2, 3, 4.
  void make(const std::string& uri) {
    Heap heap = must(Heap::create(uri, kSmall));
    auto* const numbers = heap.construct<std::uint64_t>("numbers")[kNumbers](1U);
    ASSERT_TRUE(heap.snapshot("one"));
    for (std::uint64_t number = 2; number <= 4; ++number) {
      std::fill(numbers, numbers + kNumbers, number);
      ASSERT_NE(heap.allocate(64_MiB), nullptr);  // so that the first page changes
      ASSERT_EQ(message(number == 2 ? heap.snapshot("two") : heap.commit()), "");
    }
    id_ = heap.id();
    address_ = numbers;
  }
  void SetUp() override {
    make(folder.uri());
    auto store = open_store(folder.uri(), {.lifetime = Lifetime::kKeep});
    superblocks_ = *segment::whole_superblocks(**store);
    snapshots_ = *segment::Versions::at(**store, superblocks_[0])->snapshots();
  }
  void flip(const std::string& file, std::uint64_t at) const {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const auto byte = static_cast<char>(stream.get() ^ 0x10);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(byte);
    ASSERT_TRUE(stream.good());
  }
  void flip_in_slot(std::uint64_t slot) const { flip(folder.file(), slot * 4096 + 77); }
  std::uint64_t number_in(const std::string& uri) const {
    const Heap heap = must(Heap::open_read_only(uri, kSmall));
    const auto [first, length] = heap.find_array<std::uint64_t>("numbers");
    EXPECT_EQ(heap.id(), id_);
    EXPECT_EQ(first, address_);
    const bool alike =
        length == kNumbers && std::all_of(first, first + length, [&](auto one) { return one == *first; });
    return alike ? *first : 0;
  }
  // As text: what each version of a heap has, by age.
  std::string numbers(const std::string& uri) const {
    std::string text;
    const std::vector<VersionInfo> versions = must(Heap::open_read_only(uri, kSmall)).versions().value();
    for (const VersionInfo& one : versions) {
      text += one.name + "=" + std::to_string(number_in(one.name.empty() ? uri : uri + "@" + one.name)) + " ";
    }
    return text;
  }
  // Repairs it, and says what was lost and what is there then.
  std::string repaired(const std::string& uri) const {
    EXPECT_FALSE(Heap::check(uri, {.data = true}));
    const auto report = Heap::repair(uri);
    EXPECT_EQ(message(report), "");
    if (!report) return {};
    EXPECT_FALSE(report->was_sound);
    EXPECT_FALSE(report->old_files.empty());
    for (const auto& one : report->old_files) EXPECT_TRUE(std::filesystem::exists(one)) << one;
    EXPECT_EQ(message(Heap::check(uri, {.data = true})), "");
    const auto versions = must(Heap::open_read_only(uri, kSmall)).versions().value();
    EXPECT_EQ(versions.size(), report->kept.size());
    {
      Heap heap = must(Heap::open(uri, kSmall));  // and it goes on
      heap.construct<int>("after")(1);
      EXPECT_EQ(message(heap.commit()), "");
    }
    for (const auto& one : std::filesystem::directory_iterator(std::filesystem::path(folder.file()).parent_path())) {
      EXPECT_EQ(one.path().string().find(".repaired"), std::string::npos) << one.path();
    }
    return std::to_string(report->lost.size()) + " lost: " + numbers(uri);
  }

  HeapFolder folder;
  std::string id_;
  const void* address_ = nullptr;
  std::vector<segment::Superblock> superblocks_;
  std::vector<segment::Snapshot> snapshots_;
};

TEST_F(HeapRepairTest, ASoundHeapIsLeftAlone) {
  const auto report = Heap::repair(folder.uri());
  ASSERT_EQ(message(report), "");
  EXPECT_TRUE(report->was_sound);
  EXPECT_EQ(numbers(folder.uri()), "one=1 two=2 =4 ");
}

TEST_F(HeapRepairTest, ADamagedSuperblockIsMadeAnew) {
  flip_in_slot(superblocks_[0].commit % 2);
  ASSERT_EQ(message(Heap::repair(folder.uri())), "");
  EXPECT_EQ(numbers(folder.uri()), "one=1 two=2 =3 ");
  flip_in_slot(superblocks_[1].commit % 2);  // the one that was whole
  EXPECT_EQ(numbers(folder.uri()), "one=1 two=2 =3 ");
}

TEST_F(HeapRepairTest, WithoutTheNewestMapTheCommitBeforeIsTheNewest) {
  flip_in_slot(superblocks_[0].map.at.slot());
  EXPECT_EQ(repaired(folder.uri()), "1 lost: one=1 two=2 =3 ");
}

TEST_F(HeapRepairTest, WithoutASnapshotsMapTheOthersStay) {
  flip_in_slot(snapshots_[0].map.at.slot());
  EXPECT_EQ(repaired(folder.uri()), "1 lost: two=2 =4 ");
}

TEST_F(HeapRepairTest, WithoutBothNewestMapsTheNewestSnapshotIsTheNewest) {
  flip_in_slot(superblocks_[0].map.at.slot());
  flip_in_slot(superblocks_[1].map.at.slot());
  EXPECT_EQ(repaired(folder.uri()), "2 lost: one=1 two=2 =2 ");
}

TEST_F(HeapRepairTest, NothingIsLostWithBooksThatCanBeMadeAnew) {
  flip_in_slot(superblocks_[0].space.at.slot());
  EXPECT_EQ(repaired(folder.uri()), "0 lost: one=1 two=2 =4 ");
}

TEST_F(HeapRepairTest, NorWithListsOfDeadSlots) {
  flip_in_slot(superblocks_[0].dead.at.slot());
  flip_in_slot(snapshots_[1].dead.tree.at.slot());
  EXPECT_EQ(repaired(folder.uri()), "0 lost: one=1 two=2 =4 ");
}

TEST_F(HeapRepairTest, WithoutTheTableOfSnapshotsTheNewestVersionStays) {
  flip_in_slot(superblocks_[0].snapshots.at.slot());
  EXPECT_EQ(repaired(folder.uri()), "2 lost: =4 ");
}

// The first page of the heap, as the newest version has it: its map is whole.
TEST_F(HeapRepairTest, WithoutTheAllocatorsBooksAVersionIsLost) {
  std::uint64_t slot = 0;
  {
    auto store = open_store(folder.uri(), {.lifetime = Lifetime::kKeep});
    segment::BlockTree map(**store, "the map", superblocks_[0].map);
    slot = segment::SlotRef((**map.find(0))[0]).slot();
  }
  flip(folder.file(), slot * 4096);  // the magic
  EXPECT_EQ(Heap::open(folder.uri(), kSmall).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(repaired(folder.uri()), "1 lost: one=1 two=2 =3 ");
}

TEST_F(HeapRepairTest, TheTableOfBlocksIsNotNeeded) {
  flip(folder.file() + ".versions", 0);
  EXPECT_EQ(repaired(folder.uri()), "0 lost: one=1 two=2 =4 ");
  ASSERT_TRUE(std::filesystem::remove(folder.file() + ".versions"));
  const auto report = Heap::repair(folder.uri());
  ASSERT_EQ(message(report), "");
  EXPECT_EQ(numbers(folder.uri()), "one=1 two=2 =4 ");
  EXPECT_EQ(report->old_files.size(), 1U);
  EXPECT_TRUE(report->old_files[0].ends_with(".damaged.2"));
}

TEST_F(HeapRepairTest, WithoutSuperblocksThereIsNothing) {
  flip_in_slot(0);
  flip_in_slot(1);
  const auto report = Heap::repair(folder.uri());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(std::filesystem::exists(folder.file()));
  EXPECT_FALSE(std::filesystem::exists(folder.file() + ".damaged"));
  EXPECT_FALSE(std::filesystem::exists(folder.file() + ".repaired"));
}

TEST_F(HeapRepairTest, InLmdbAndUnderChecksums) {
  for (const std::string& uri : {"lmdb:" + folder.file("l"), "checksum+file:" + folder.file("c")}) {
    make(uri);
    {
      auto store = open_store(uri, {.lifetime = Lifetime::kKeep});
      const auto superblocks = *segment::whole_superblocks(**store);
      ASSERT_EQ(message((*store)->erase(superblocks[0].map.at.slot(), 1)), "");
    }
    EXPECT_EQ(repaired(uri), "1 lost: one=1 two=2 =3 ") << uri;
  }
}

TEST_F(HeapRepairTest, SomebodyElsesHeapIsNotReplaced) {
  flip_in_slot(superblocks_[0].map.at.slot());
  ASSERT_EQ(message(Heap::copy(folder.uri() + "@one", folder.uri() + ".repaired")), "");
  EXPECT_EQ(Heap::repair(folder.uri()).error().code, ErrorCode::kConflict);
  ASSERT_EQ(message(Heap::remove(folder.uri() + ".repaired")), "");
  const Heap reader = must(Heap::open_read_only(folder.uri() + "@one", kSmall));
  EXPECT_FALSE(Heap::repair(folder.uri()));
}

// Data pages have sums in a store with checksums: what is damaged is told when it is read, and by check with data.
TEST_F(HeapRepairTest, ChecksumsTellOfDamagedData) {
  const std::string uri = "checksum+file:" + folder.file("sums");
  make(uri);
  std::string bytes;
  {
    std::ifstream stream(folder.file("sums"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(stream), {});
  }
  // A page in the middle of the numbers, as the newest version has it.
  const std::uint64_t fours[] = {4, 4, 4, 4};
  const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(fours), sizeof fours));
  ASSERT_NE(at, bytes.npos);
  flip(folder.file("sums"), at);
  EXPECT_EQ(message(Heap::check(uri)), "");
  const Status found = Heap::check(uri, {.data = true});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(found.error().message().find("checksum"), std::string::npos) << found.error().message();
  EXPECT_EXIT((void)number_in(uri), ::testing::ExitedWithCode(74), "checksum");
  EXPECT_EQ(repaired(uri), "1 lost: one=1 two=2 =3 ");
}

TEST_F(HeapRepairTest, AFileThatWasCutOffIsAnErrorOrWhatIsWhole) {
  std::uint64_t last = superblocks_[0].end_slot, some = 0;
  for (std::uint64_t slots = last; slots > 0; slots -= std::min<std::uint64_t>(slots, 97)) {
    const std::string uri = folder.uri("cut");
    for (const char* const end : {"", ".versions"}) {
      std::filesystem::copy_file(folder.file() + end, folder.file("cut") + end,
                                 std::filesystem::copy_options::overwrite_existing);
    }
    std::filesystem::resize_file(folder.file("cut"), slots * 4096);
    const Status sound = Heap::check(uri);
    if (sound) {
      EXPECT_EQ(numbers(uri), "one=1 two=2 =4 ") << slots;
      continue;
    }
    const auto report = Heap::repair(uri);
    if (!report) {
      EXPECT_EQ(report.error().code, ErrorCode::kCorrupt) << report.error().message();
      continue;
    }
    ++some;
    const std::set<std::string> right{"one=1 two=2 =4 ", "one=1 two=2 =3 ", "one=1 two=2 =2 ", "one=1 =1 "};
    EXPECT_TRUE(right.contains(numbers(uri))) << slots << ": " << numbers(uri);
    ASSERT_EQ(message(Heap::remove(uri)), "");
    for (const char* const end : {"", ".versions"}) std::filesystem::remove(folder.file("cut.damaged") + end);
  }
  EXPECT_GT(some, 2U);
}

}  // namespace
}  // namespace farheap::testing
