// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The segment of an unmodified program in both of its lives, on the real kernel: every page is compared after it may
// have left, in threads and in forked children, with and without UFFDIO_MOVE.
#include "segment/paged_segment.hpp"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "os/page_map.hpp"
#include "os/process_memory.hpp"
#include "segment/address_slots.hpp"
#include "tests/words.hpp"

#ifdef __SANITIZE_ADDRESS__
// What the tables of a paging segment hold hangs on memory of their own that LeakSanitizer does not search, and its
// threads live as long as the process.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() { return 1; }
#endif
#ifdef __SANITIZE_THREAD__
// A forked child starts threads of its own. And numbers of descriptors that were closed past the C library are nobody's
// when they are given anew.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() { return "die_after_fork=0"; }
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:farheap::os::Userfault::open\n";
}
#endif

namespace farheap::segment {
namespace {

using base::kMiB;
using base::kPageBytes;
using Word = std::uint64_t;

#ifdef __SANITIZE_THREAD__
constexpr std::size_t kPlain = 4 * kMiB;  // four bytes for each that was touched count as well
constexpr std::size_t kMuch = 60 * kMiB;
#else
constexpr std::size_t kPlain = 20 * kMiB;  // surely below the budget
constexpr std::size_t kMuch = 120 * kMiB;  // and over it
#endif
constexpr std::size_t kRoom = 40 * kMiB;  // what the budget leaves to the segment
constexpr std::size_t kPiece = 4 * kMiB;
constexpr std::size_t kPageWords = kPageBytes / sizeof(Word);

// Every word of every page tells where it is and which value it was given.
void fill(std::byte* at, std::size_t bytes, Word value) { test::count_words(at, bytes, value * 1'000'003); }
// Pages that hold something else.
[[nodiscard]] std::size_t wrong_pages(const std::byte* at, std::size_t bytes, Word value) {
  std::size_t wrong = 0;
  for (std::size_t page = 0; page < bytes / kPageBytes; ++page) {
    wrong += !test::counts_words(at + page * kPageBytes, kPageBytes, value * 1'000'003 + page * kPageWords);
  }
  return wrong;
}
[[nodiscard]] std::size_t pages_not_zero(const std::byte* at, std::size_t bytes) {
  std::size_t found = 0;
  for (std::size_t page = 0; page < bytes / kPageBytes; ++page) {
    found += !test::repeats_word(at + page * kPageBytes, kPageBytes, 0);
  }
  return found;
}
[[nodiscard]] std::size_t pages_in_view(const std::byte* at, std::size_t bytes) {
  std::vector<os::PageEntry> entries(bytes / kPageBytes);
  EXPECT_TRUE(os::read_page_map(at, entries));
  return static_cast<std::size_t>(std::count_if(entries.begin(), entries.end(), [](auto& one) { return one.present; }));
}
[[nodiscard]] std::size_t threads_of_this_process() {
  DIR* folder = opendir("/proc/self/task");
  std::size_t count = 0;
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

// A segment that pages has threads that live as long as the process: so does it, and all that it refers to.
struct Life {
  base::Options options;
  base::RunPage* run_page = nullptr;
  std::unique_ptr<PagedSegment> segment;
};
Life& new_life() {
  static auto& lives = *new std::vector<std::unique_ptr<Life>>;
  lives.push_back(std::make_unique<Life>());
  return *lives.back();
}

class PagedSegmentTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto userfault = os::Userfault::open({});
    if (!userfault) {
      std::fprintf(stderr, "paged_segment_test: NOT TESTED: %s\n", userfault.error().message().c_str());
      GTEST_SKIP() << userfault.error().message();
    }
    begin_life(kRoom);
  }
  void begin_life(std::size_t room) {
    static std::uint32_t next_heap_id = 0;
    life_ = &new_life();
    life_->options.heap_id = next_heap_id++;
    life_->options.store = "file:" + testing::TempDir();
    life_->options.handlers = 2;
    ASSERT_TRUE(base::set_option(life_->options, "disable", GetParam()).has_value());
    if (*GetParam() == 0) life_->options.huge_pages_from = 0;  // plain memory as with a large budget
    const auto files = base::make_run_files(os::ProcessMemory().anonymous_bytes() + room, "paged_segment_test");
    ASSERT_TRUE(files.has_value()) << files.error().message();
    auto run_page = base::map_run_page(*files);
    ASSERT_TRUE(run_page.has_value()) << run_page.error().message();
    base::open_locks(**run_page, files->counters);
    close(files->configuration);
    close(files->counters);
    life_->run_page = *run_page;
    auto made = PagedSegment::make(life_->options, *life_->run_page);
    ASSERT_TRUE(made.has_value()) << made.error().message();
    life_->segment = std::move(*made);
  }
  void TearDown() override {
    for (std::byte* piece : pieces_) segment().give_back(piece, kPiece);  // the next test finds its room
  }

  [[nodiscard]] PagedSegment& segment() { return *life_->segment; }
  [[nodiscard]] base::RunCounters& counters() { return life_->run_page->counters; }

  // Pieces that stay; each is filled with its own number.
  std::byte* grow() {
    std::byte* at = segment().obtain(kPiece, kPageBytes);
    EXPECT_NE(at, nullptr);
    fill(at, kPiece, pieces_.size());
    pieces_.push_back(at);
    return at;
  }
  void grow_to(std::size_t bytes) {
    while (pieces_.size() * kPiece < bytes) grow();
  }
  [[nodiscard]] std::size_t wrong_in_all(Word more = 0) const {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < pieces_.size(); ++i) wrong += wrong_pages(pieces_[i], kPiece, i + more);
    return wrong;
  }
  void sweep_others(std::size_t from_piece) const {
    for (std::size_t i = from_piece; i < pieces_.size(); ++i) EXPECT_EQ(wrong_pages(pieces_[i], kPiece, i), 0u);
  }

  // As the preload library forks. The child ends with what `body` returns.
  template <class Body>
  [[nodiscard]] pid_t fork_segment(Body&& body) {
    segment().pause_eviction();
    segment().lock_for_fork();
    const pid_t child = fork();
    if (child == 0) {
      segment().unlock_in_child();
      alarm(200);  // whoever waits for ever ends by a signal, and the test fails
      _exit(body());
    }
    segment().unlock_in_parent();
    return child;
  }
  [[nodiscard]] static int end_of(pid_t child) {
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  }

  Life* life_ = nullptr;
  std::vector<std::byte*> pieces_;
};

// ---- the first life

TEST_P(PagedSegmentTest, BelowTheBudgetItIsPlainMemory) {
  const std::size_t threads = threads_of_this_process();
  grow_to(kPlain);
  EXPECT_EQ(wrong_in_all(), 0u);
  std::byte* last = pieces_.back();
  segment().discard(last + kMiB, kMiB);
  EXPECT_EQ(pages_not_zero(last + kMiB, kMiB), 0u);
  EXPECT_EQ(wrong_pages(last, kMiB, pieces_.size() - 1), 0u);
  EXPECT_EQ(pages_not_zero(last + 2 * kMiB, kMiB), kMiB / kPageBytes);
  EXPECT_TRUE(segment().hint(pager::HintKind::kDoneWith, last, kPiece));
  EXPECT_EQ(wrong_pages(last, kMiB, pieces_.size() - 1), 0u);
  EXPECT_FALSE(segment().is_paging());
  EXPECT_EQ(counters().paging_processes, 0u);
  EXPECT_EQ(counters().faults, 0u);
  EXPECT_EQ(threads_of_this_process(), threads);
}

TEST_P(PagedSegmentTest, ItsPlaceIsItsOwn) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment().base()), slot_address(life_->options.heap_id));
  EXPECT_EQ(segment().capacity_bytes(), kSlotBytes);
  EXPECT_TRUE(segment().contains(segment().base()));
  EXPECT_TRUE(segment().contains(segment().base() + kSlotBytes - 1));
  EXPECT_FALSE(segment().contains(segment().base() + kSlotBytes));
  EXPECT_FALSE(segment().contains(segment().base() - 1));
  auto second = PagedSegment::make(life_->options, *life_->run_page);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
}

// ---- from the first to the second

TEST_P(PagedSegmentTest, AddressesThatCouldBeFilledStartPagingBeforeTheyAre) {
  std::byte* only = segment().obtain(kRoom / 2, kPageBytes);
  fill(only, kPiece, 0);
  EXPECT_FALSE(segment().is_paging());
  pieces_.push_back(segment().obtain(kRoom, kPageBytes));
  EXPECT_TRUE(segment().is_paging()) << "all of it could be touched at once";
  EXPECT_EQ(wrong_pages(only, kPiece, 0), 0u);
  EXPECT_EQ(pages_not_zero(pieces_[0], kRoom), 0u);
  EXPECT_EQ(counters().paging_processes, 1u);
  segment().give_back(only, kRoom / 2);
  segment().give_back(pieces_[0] + kPiece, kRoom - kPiece);
}

TEST_P(PagedSegmentTest, DataIsRightBeforeAndAfter) {
  grow_to(kPlain);
  ASSERT_FALSE(segment().is_paging());
  grow_to(kMuch);
  ASSERT_TRUE(segment().is_paging());
  for (int round = 0; round < 2; ++round) EXPECT_EQ(wrong_in_all(), 0u) << "round " << round;
  for (std::size_t i = 0; i < pieces_.size(); i += 3) fill(pieces_[i], kPiece, i);  // written again after they left
  EXPECT_EQ(wrong_in_all(), 0u);
  std::size_t in_view = 0;
  for (const std::byte* piece : pieces_) in_view += pages_in_view(piece, kPiece);
  EXPECT_LE(in_view * kPageBytes, kRoom);
  EXPECT_GT(counters().bytes_written, kMuch - kRoom - kPiece) << "nothing left memory: the test tested nothing";
  EXPECT_GT(counters().faults_store, 0u);
}

TEST_P(PagedSegmentTest, PagingStartsWhileThreadsUseIt) {
  constexpr int kThreads = 3;
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      std::vector<std::byte*> mine;
      for (Word i = 0; i < 40; ++i) {
        mine.push_back(segment().obtain(kMiB, kPageBytes));
        fill(mine.back(), kMiB, 100 * number + i);
        if (i % 4 != 3) continue;
        segment().discard(mine[i - 2], kMiB);  // while others may be starting to page
        wrong += pages_not_zero(mine[i - 2], kMiB);
        fill(mine[i - 2], kMiB, 100 * number + i - 2);
      }
      for (Word i = 0; i < mine.size(); ++i) {
        wrong += wrong_pages(mine[i], kMiB, 100 * number + i);
        segment().give_back(mine[i], kMiB);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(segment().is_paging());
  EXPECT_EQ(counters().paging_processes, 1u);
}

// With 256 MiB and more the first life has huge pages. The page behind what was handed out was in memory unseen.
TEST_P(PagedSegmentTest, WhatAHugePageHeldBehindTheLastRunWasTakenForFresh) {
  begin_life(512 * kMiB);
  std::byte* const first = segment().obtain(kMiB, 2 * kMiB);
  fill(first, kMiB, 1);
  if (pages_in_view(first + kMiB, kMiB) == 0) {
    GTEST_SKIP() << "SKIPPED, NOT TESTED: the kernel gives no huge page here";
  }
  ASSERT_TRUE(segment().flush().has_value());  // starts paging
  ASSERT_TRUE(segment().is_paging());
  EXPECT_EQ(pages_in_view(first + kMiB, kMiB), 0u);
  EXPECT_EQ(wrong_pages(first, kMiB, 1), 0u);
  std::byte* const behind = segment().obtain(kMiB, kPageBytes);
  ASSERT_EQ(behind, first + kMiB);
  fill(behind, kMiB, 2);
  segment().discard(behind, kMiB);
  EXPECT_EQ(pages_not_zero(behind, kMiB), 0u);
  fill(behind, kMiB, 3);
  segment().give_back(behind, kMiB);
  ASSERT_EQ(segment().obtain(kMiB, kPageBytes), behind);
  EXPECT_EQ(pages_not_zero(behind, kMiB), 0u);
  segment().give_back(first, 2 * kMiB);
}

// ---- the second life

TEST_P(PagedSegmentTest, DiscardedPagesReadAsZerosAndTheirNeighboursStay) {
  grow_to(kMuch);
  constexpr std::size_t kHole = 777 * kPageBytes, kAt = 33 * kPageBytes;  // in no way aligned
  for (std::byte* piece : pieces_) segment().discard(piece + kAt, kHole);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    ASSERT_EQ(wrong_pages(pieces_[i], kAt, i), 0u) << i;
    ASSERT_EQ(pages_not_zero(pieces_[i] + kAt, kHole), 0u) << i;
    ASSERT_EQ(wrong_pages(pieces_[i], kPiece, i), kHole / kPageBytes) << i;
  }
  for (std::size_t i = 0; i < pieces_.size(); ++i) fill(pieces_[i], kPiece, i + 50);
  EXPECT_EQ(wrong_in_all(50), 0u);
}

TEST_P(PagedSegmentTest, WhatIsGivenBackIsHandedOutAgainAsZeros) {
  grow_to(kMuch);
  std::vector<std::byte*> given(pieces_.begin() + 5, pieces_.begin() + 15);
  for (std::byte* at : given) segment().give_back(at, kPiece);
  for (std::size_t i = 0; i < given.size(); ++i) {
    pieces_[5 + i] = segment().obtain(kPiece, kPageBytes);
    EXPECT_NE(std::find(given.begin(), given.end(), pieces_[5 + i]), given.end()) << "addresses are used again";
    EXPECT_EQ(pages_not_zero(pieces_[5 + i], kPiece), 0u);
    fill(pieces_[5 + i], kPiece, 5 + i);
  }
  EXPECT_EQ(wrong_in_all(), 0u);
}

TEST_P(PagedSegmentTest, ARunGrowsInPlaceWhereNothingFollows) {
  grow_to(kMuch);
  std::byte* at = segment().obtain(kPiece, kPiece);
  fill(at, kPiece, 7);
  ASSERT_TRUE(segment().extend(at, kPiece, 3 * kPiece));
  EXPECT_EQ(pages_not_zero(at + kPiece, 2 * kPiece), 0u);
  EXPECT_EQ(wrong_pages(at, kPiece, 7), 0u);
  EXPECT_FALSE(segment().extend(pieces_[0], kPiece, kPiece + kPageBytes)) << "its neighbour is in use";
  EXPECT_EQ(wrong_in_all(), 0u);
  segment().give_back(at, 3 * kPiece);
}

TEST_P(PagedSegmentTest, WhatTheProgramDidToPagesIsUndoneWhenTheyAreUnmapped) {
  grow_to(kMuch);
  std::byte* at = pieces_[3];
  ASSERT_EQ(mprotect(at + kMiB, kMiB, PROT_NONE), 0);
  ASSERT_EQ(segment().map_over(at, kPiece, PROT_READ | PROT_WRITE), 0);
  fill(at, kPiece, 3);
  // Mapped over by the program, and then as the range's own again: watched, so that it can leave and come back.
  segment().make_way(at + kMiB, kMiB);
  ASSERT_EQ(mmap(at + kMiB, kMiB, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at + kMiB);
  ASSERT_EQ(segment().map_over(at + kMiB, kMiB, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(pages_not_zero(at + kMiB, kMiB), 0u);
  EXPECT_EQ(wrong_pages(at, kMiB, 3), 0u);
  fill(at, kPiece, 3);
  EXPECT_EQ(wrong_in_all(), 0u);
  EXPECT_EQ(wrong_in_all(), 0u);
  // A part was given back before: the rest goes, and nothing twice.
  segment().give_back(at + kMiB, kMiB);
  segment().unmap(at, kPiece);
  pieces_.erase(pieces_.begin() + 3);
  std::byte* again = segment().obtain(kPiece, kPageBytes);
  EXPECT_EQ(again, at);
  EXPECT_EQ(pages_not_zero(again, kPiece), 0u);
  segment().give_back(again, kPiece);
}

// ---- fork

TEST_P(PagedSegmentTest, AChildHasTheDataOfTheForkAndWritesItsOwn) {
  grow_to(kMuch);
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork_segment([&] {
    for (std::size_t i = 0; i < pieces_.size(); i += 2) fill(pieces_[i], kPiece, i + 1000);
    char one;
    if (read(go[0], &one, 1) != 1) return 2;  // until the parent has written over its own
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (wrong_pages(pieces_[i], kPiece, i % 2 == 0 ? i + 1000 : i) != 0) return 3;
    }
    std::byte* more = segment().obtain(kPiece, kPageBytes);
    if (more == nullptr || pages_not_zero(more, kPiece) != 0) return 4;
    segment().discard(pieces_[1], kPiece);
    return pages_not_zero(pieces_[1], kPiece) == 0 ? 0 : 5;
  });
  ASSERT_GT(child, 0);
  for (std::size_t i = 0; i < pieces_.size(); ++i) fill(pieces_[i], kPiece, i + 2000);
  EXPECT_EQ(write(go[1], "g", 1), 1);
  EXPECT_EQ(wrong_in_all(2000), 0u);
  EXPECT_EQ(end_of(child), 0);
  EXPECT_EQ(wrong_in_all(2000), 0u);
  close(go[0]);
  close(go[1]);
}

// Single pages, written and read at random, each with one number in all its words: that shrinks.
class Scattered {
 public:
  Scattered(const std::vector<std::byte*>& pieces, std::uint64_t seed)
      : pieces_(pieces), values_(pieces.size() * kPiecePages, 0), random_(seed) {}
  void touch(int times) {
    for (int i = 0; i < times; ++i) {
      const std::size_t page = random_() % values_.size();
      if (values_[page] != 0) wrong += !holds(page);
      test::repeat_word(at(page), kPageBytes, values_[page] = random_() | 1);
    }
  }
  [[nodiscard]] std::size_t wrong_in_all() const {
    std::size_t count = wrong;
    for (std::size_t page = 0; page < values_.size(); ++page) count += values_[page] != 0 && !holds(page);
    return count;
  }
  std::size_t wrong = 0;

 private:
  static constexpr std::size_t kPiecePages = kPiece / kPageBytes;
  [[nodiscard]] std::byte* at(std::size_t page) const {
    return pieces_[page / kPiecePages] + page % kPiecePages * kPageBytes;
  }
  [[nodiscard]] bool holds(std::size_t page) const { return test::repeats_word(at(page), kPageBytes, values_[page]); }
  const std::vector<std::byte*>& pieces_;
  std::vector<Word> values_;
  std::mt19937_64 random_;
};

TEST_P(PagedSegmentTest, WhatIsTouchedPageByPageIsRightCompressedToo) {
  grow_to(kMuch);
  Scattered program(pieces_, 1);
  program.touch(12'000);
#ifndef __SANITIZE_THREAD__  // its shadow takes the room that a tier would have; TierModelTest runs under it
  EXPECT_GT(counters().faults_packed, 0u) << "nothing came from the compressed tier: the test tested nothing";
#endif
  const pid_t child = fork_segment([&] {
    program.touch(2'000);
    return program.wrong_in_all() == 0 ? 0 : 1;
  });
  ASSERT_GT(child, 0);
  program.touch(4'000);
  EXPECT_EQ(end_of(child), 0);
  EXPECT_TRUE(segment().flush().has_value());
  EXPECT_EQ(program.wrong_in_all(), 0u);
}

TEST_P(PagedSegmentTest, AForkAfterWhichTwoCouldGoOverTheBudgetStartsPaging) {
  grow_to(kRoom / 2);
  const pid_t child = fork_segment([&] {
    if (!segment().is_paging()) return 1;
    return wrong_in_all() == 0 ? 0 : 3;
  });
  ASSERT_GT(child, 0);
  EXPECT_EQ(end_of(child), 0);
  EXPECT_TRUE(segment().is_paging());
  EXPECT_EQ(wrong_in_all(), 0u);
}

TEST_P(PagedSegmentTest, AChildOfThePlainLifeStartsToPageByItself) {
  grow_to(kPiece);
  const pid_t child = fork_segment([&] {
    if (segment().is_paging()) return 1;
    grow_to(kMuch);
    if (!segment().is_paging()) return 2;
    return wrong_in_all() == 0 ? 0 : 3;
  });
  ASSERT_GT(child, 0);
  EXPECT_EQ(end_of(child), 0);
  EXPECT_FALSE(segment().is_paging());
  EXPECT_EQ(counters().paging_processes, 1u) << "the child's, in the page that they share";
  EXPECT_EQ(wrong_in_all(), 0u);
  grow_to(kMuch);
  EXPECT_EQ(wrong_in_all(), 0u);
}

// ---- hints

TEST_P(PagedSegmentTest, PagesThatAreDoneWithLeaveTheViewAtOnce) {
  grow_to(kMuch);
  std::byte* last = pieces_.back();
  EXPECT_EQ(wrong_pages(last, kPiece, pieces_.size() - 1), 0u);
  ASSERT_GT(pages_in_view(last, kPiece), 0u);
  ASSERT_TRUE(segment().hint(pager::HintKind::kDoneWith, last, kPiece));
  // A block that reaches over the edge stays: not all of it is done with. Blocks on their way are only marked, so it is
  // said again until they have come and left.
  while (pages_in_view(last + kPiece / 2, kMiB) != 0) {
    ASSERT_TRUE(segment().hint(pager::HintKind::kDoneWith, last, kPiece));
    std::this_thread::yield();
  }
  EXPECT_EQ(pages_in_view(last + kPiece / 2, kMiB), 0u);
  EXPECT_EQ(wrong_pages(last, kPiece, pieces_.size() - 1), 0u);
}

TEST_P(PagedSegmentTest, PagesThatAreNeededComeWithoutBeingTouched) {
  grow_to(kMuch);
  std::byte* first = pieces_[0];
  sweep_others(1);
  ASSERT_EQ(pages_in_view(first, kMiB), 0u);
  // Asked again, because a hint is dropped where there is no room for it.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (pages_in_view(first, kMiB) == 0 && std::chrono::steady_clock::now() < until) {
    ASSERT_TRUE(segment().hint(pager::HintKind::kWillNeed, first, kMiB));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GT(pages_in_view(first, kMiB), 0u);
  EXPECT_GT(counters().bytes_read_ahead, 0u);
  EXPECT_EQ(wrong_pages(first, kPiece, 0), 0u);
}

TEST_P(PagedSegmentTest, KeptPagesOutlastASweep) {
  grow_to(kMuch);
  constexpr std::size_t kKept = kMiB / 2;
  std::byte *kept = pieces_[0], *other = pieces_[1];
  EXPECT_EQ(wrong_pages(kept, kKept, 0) + wrong_pages(other, kKept, 1), 0u);
  ASSERT_TRUE(segment().hint(pager::HintKind::kKeep, kept, kKept));
  // What had left before the hint, on a busy machine most of it, comes again and is kept, too.
  EXPECT_EQ(wrong_pages(kept, kKept, 0), 0u);
  for (int round = 0; round < 2; ++round) sweep_others(2);
  // All but what was about to leave.
  EXPECT_GT(pages_in_view(kept, kKept), kKept / kPageBytes * 3 / 4);
  EXPECT_EQ(pages_in_view(other, kKept), 0u);
  EXPECT_EQ(wrong_in_all(), 0u);
}

// Programs say it when they have just allocated it, long before pages leave. It was refused, and nothing was kept.
TEST_P(PagedSegmentTest, WhatIsKeptFromBeforePagingOutlastsASweep) {
  constexpr std::size_t kPart = kMiB / 2;
  std::byte* const first = grow();
  ASSERT_FALSE(segment().is_paging());
  std::byte *const kept = first, *const normal = first + kPart, *const dropped = first + 2 * kPart;
  ASSERT_TRUE(segment().hint(pager::HintKind::kKeep, first, 3 * kPart));
  ASSERT_TRUE(segment().hint(pager::HintKind::kNormal, normal, kPart));
  segment().discard(dropped, kPart);
  ASSERT_TRUE(segment().hint(pager::HintKind::kWillNeed, first, kPart)) << "it is there";
  int elsewhere = 0;
  EXPECT_FALSE(segment().hint(pager::HintKind::kKeep, &elsewhere, sizeof elsewhere));
  EXPECT_FALSE(segment().hint(pager::HintKind::kKeep, first, 0));
  fill(first, kPiece, 0);
  grow_to(kMuch);
  ASSERT_TRUE(segment().is_paging());
  for (int round = 0; round < 2; ++round) sweep_others(1);
  EXPECT_GT(pages_in_view(kept, kPart), kPart / kPageBytes * 3 / 4);
  EXPECT_EQ(pages_in_view(normal, kPart), 0u);
  EXPECT_EQ(pages_in_view(dropped, kPart), 0u);
  EXPECT_EQ(wrong_in_all(), 0u);
}

TEST_P(PagedSegmentTest, HintsThatMeanNothingAreRefused) {
  grow_to(kMuch);
  int elsewhere = 0;
  EXPECT_FALSE(segment().hint(pager::HintKind::kKeep, &elsewhere, sizeof elsewhere));
  EXPECT_FALSE(segment().hint(pager::HintKind::kKeep, pieces_[0], 0));
  EXPECT_TRUE(segment().hint(pager::HintKind::kStream, pieces_[0], kMuch));
  EXPECT_TRUE(segment().hint(pager::HintKind::kWillNeed, segment().base() + kSlotBytes - kPageBytes, kMuch));
  EXPECT_EQ(wrong_in_all(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Features, PagedSegmentTest, testing::Values("", "move,io_uring"),
                         [](const auto& one) { return *one.param == '\0' ? "All" : "NoMoveNoIoUring"; });

}  // namespace
}  // namespace farheap::segment
