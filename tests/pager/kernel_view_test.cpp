// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel's view with a real userfaultfd, with and without UFFDIO_MOVE. Faults are served here by a thread that
// knows of each page only whether it is in its staging place.
#include "pager/kernel_view.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "base/units.hpp"

namespace farheap::pager {
namespace {

using base::kPageBytes;
constexpr std::uint32_t kPages = 64;
const std::byte g_zeros[kPageBytes]{};

class KernelViewTest : public ::testing::TestWithParam<os::UserfaultFeatures> {
 protected:
  void SetUp() override {
    auto range = os::Mapping::reserve(kPages * kPageBytes, os::Access::kReadWrite);
    ASSERT_TRUE(range.has_value());
    range_ = std::move(*range);
    madvise(range_.data(), range_.size(), MADV_NOHUGEPAGE);
    auto view = KernelView::make(range_.data(), range_.size(), GetParam());
    if (!view) {
      std::fprintf(stderr, "kernel_view_test: NOT TESTED: %s\n", view.error().message().c_str());
      GTEST_SKIP() << view.error().message();
    }
    view_ = std::move(*view);
    if (GetParam().notes_writes && !view_->features().notes_writes) {
      std::fputs("kernel_view_test: NOT TESTED: this kernel does not note writes\n", stderr);
      GTEST_SKIP() << "no asynchronous write protection";
    }
    if (GetParam().move && !view_->features().move) {
      std::fputs("kernel_view_test: NOT TESTED: this kernel has no UFFDIO_MOVE\n", stderr);
      GTEST_SKIP() << "no UFFDIO_MOVE";
    }
    ASSERT_TRUE(view_->watch({{range_.data(), range_.size()}}).has_value());
    handler_ = std::thread([this] { serve(); });
  }
  void TearDown() override {
    stop_ = true;
    if (handler_.joinable()) handler_.join();
  }

  void serve() {
    while (!stop_) {
      pollfd waiting{view_->queue(0).descriptor(), POLLIN, 0};
      if (poll(&waiting, 1, 20) <= 0) continue;
      os::FaultEvent event;
      while (view_->queue(0).read_event(event)) {
        const PageNumber page = view_->page_of(event.address);
        std::lock_guard lock(mutex_);
        ++faults_;
        if (staged_[page]) {
          staged_[page] = false;
          view_->put_back({page, 1});
        } else if (in_view_[page]) {
          view_->wake({page, 1});
        } else {
          view_->put_in({page, 1}, g_zeros, View::Guard::kOff);
        }
        in_view_[page] = true;
      }
    }
  }
  [[nodiscard]] View::Taken take_out(PageNumber page) {
    std::lock_guard lock(mutex_);
    if (!in_view_[page]) return View::Taken::kGone;
    View::Taken answer;
    view_->take_out({page, 1}, {&answer, 1});
    staged_[page] = answer == View::Taken::kTaken;
    in_view_[page] = answer == View::Taken::kRefused;
    return answer;
  }
  [[nodiscard]] std::atomic<std::uint64_t>* words(PageNumber page) {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(range_.data() + page * kPageBytes);
  }
  void write(PageNumber page, std::uint64_t value) { words(page)[0] = value; }

  os::Mapping range_;
  std::unique_ptr<KernelView> view_;
  std::mutex mutex_;
  bool staged_[kPages] = {};   // guarded by mutex_
  bool in_view_[kPages] = {};  // guarded by mutex_
  std::atomic<std::uint64_t> faults_{0};
  std::atomic<bool> stop_{false};
  std::thread handler_;
};

TEST_P(KernelViewTest, NoIncrementIsLostWhilePagesComeAndGo) {
  constexpr std::uint32_t kHot = 4;
  constexpr int kThreads = 2, kTakes = 10'000;
  std::atomic<bool> done{false};
  std::vector<std::thread> writers;
  std::vector<std::uint64_t> written(kThreads * kHot);
  for (int number = 0; number < kThreads; ++number) {
    writers.emplace_back([&, number] {
      while (!done) {
        for (std::uint32_t page = 0; page < kHot; ++page) {
          // A word of this thread's own, written as a program does: no atomic operation.
          volatile auto* word = reinterpret_cast<volatile std::uint64_t*>(&words(page)[100 * number + 7]);
          *word = *word + 1;
          ++written[static_cast<std::size_t>(number) * kHot + page];
        }
      }
    });
  }
  for (int taken = 0, round = 0; taken < kTakes; ++round) {
    const PageNumber page = static_cast<PageNumber>(round) % kHot;
    if (take_out(page) != View::Taken::kTaken) {
      std::this_thread::yield();
      continue;
    }
    ++taken;
    if (round % 3 == 0) continue;  // the writer's fault brings it back
    std::lock_guard lock(mutex_);
    if (!staged_[page]) continue;
    if (round % 3 == 1) {
      view_->put_back({page, 1});
    } else {  // as when the writer to the store still reads the staging place
      std::byte before[kPageBytes];
      std::memcpy(before, view_->staging(page), kPageBytes);
      view_->copy_back({page, 1}, View::Guard::kOff);
      EXPECT_EQ(std::memcmp(before, view_->staging(page), kPageBytes), 0);
      const PageRun one{page, 1};
      view_->drop_staging({&one, 1});
    }
    staged_[page] = false;
    in_view_[page] = true;
  }
  done = true;
  for (auto& writer : writers) writer.join();
  for (int number = 0; number < kThreads; ++number) {
    for (std::uint32_t page = 0; page < kHot; ++page) {
      EXPECT_EQ(words(page)[100 * number + 7].load(), written[static_cast<std::size_t>(number) * kHot + page]);
    }
  }
}

TEST_P(KernelViewTest, AWholeRunLeavesAndComesBack) {
  for (std::uint32_t page = 0; page < kPages; ++page) write(page, page + 1);
  View::Taken answers[kPages];
  std::unique_lock lock(mutex_);
  view_->take_out({0, kPages}, answers);
  for (std::uint32_t page = 0; page < kPages; ++page) {
    EXPECT_EQ(answers[page], View::Taken::kTaken);
    EXPECT_EQ(*reinterpret_cast<const std::uint64_t*>(view_->staging(page)), page + 1);
  }
  view_->put_back({0, kPages});
  lock.unlock();
  for (std::uint32_t page = 0; page < kPages; ++page) EXPECT_EQ(words(page)[0], page + 1);
}

// Since Linux 6.18 a page may be moved, and the answer that there is one already: it was taken for one that stays in
// view, and read as zeros at the next touch. Here it is moved before, so that the kernel has to say so.
TEST_P(KernelViewTest, APageThatWasMovedThoughTheKernelSaidNoIsNotLost) {
  if (!GetParam().move) {
    std::fputs("kernel_view_test: SKIPPED, NOT TESTED: without UFFDIO_MOVE pages are copied, and none is answered so\n",
               stderr);
    GTEST_SKIP() << "without UFFDIO_MOVE";
  }
  std::memset(range_.data(), 0x5a, 3 * kPageBytes);
  auto* const staged = const_cast<std::byte*>(view_->staging(1));
  std::size_t done = 0;
  ASSERT_EQ(view_->queue(0).move(staged, range_.data() + kPageBytes, kPageBytes, done), 0);
  std::array<View::Taken, 3> answers{};
  view_->take_out({0, 3}, answers);
  EXPECT_EQ(answers[0], View::Taken::kTaken);
  EXPECT_EQ(answers[1], View::Taken::kRefused);
  EXPECT_EQ(answers[2], View::Taken::kTaken);
  EXPECT_EQ(range_.data()[kPageBytes], std::byte{0x5a}) << "what was refused is in view";
  EXPECT_EQ(view_->staging(0)[0], std::byte{0x5a});
  // The way back: nothing is where it would be copied from, and nobody may wait for that.
  ASSERT_EQ(view_->queue(0).move(range_.data(), const_cast<std::byte*>(view_->staging(0)), kPageBytes, done), 0);
  const auto put_back = [this](PageNumber page) {
    std::lock_guard lock(mutex_);
    in_view_[page] = true;
    view_->put_back({page, 1});
  };
  put_back(0);
  EXPECT_EQ(range_.data()[0], std::byte{0x5a});
  put_back(2);
  EXPECT_EQ(range_.data()[2 * kPageBytes], std::byte{0x5a});
}

// What makes the kernel say so: a page's entry changes while it is moved, as MADV_COLD of another thread does.
TEST_P(KernelViewTest, NoPageIsLostWhileTheKernelLooksWhichAreOld) {
  constexpr std::uint64_t kRounds = 2000;
  constexpr std::uint32_t kLongest = 7;
  for (std::uint32_t page = 0; page < kPages; ++page) write(page, 1);
  std::atomic<bool> done{false};
  std::thread cold([&] {
    while (!done) {
      syscall(SYS_madvise, range_.data(), range_.size(), MADV_COLD);
      syscall(SYS_madvise, view_->staging(0), range_.size(), MADV_COLD);
    }
  });
  // Not read where it is not: that would wait for the lock that is held here.
  const auto holds = [](const void* at, std::uint64_t value) {
    unsigned char is_there = 0;
    return mincore(const_cast<void*>(at), kPageBytes, &is_there) == 0 && (is_there & 1) != 0 &&
           *static_cast<const std::uint64_t*>(at) == value;
  };
  std::uint64_t right = 0, refused = 0;
  std::unique_lock lock(mutex_);
  for (std::uint64_t round = 1; round <= kRounds && right == (round - 1) * kPages; ++round) {
    for (std::uint32_t first = 0; first < kPages;) {
      const auto pages = std::min<std::uint32_t>(1 + (round + first) % kLongest, kPages - first);
      std::array<View::Taken, kLongest> answers{};
      view_->take_out({first, pages}, {answers.data(), pages});
      for (PageNumber page = first; page < first + pages; ++page) {
        const bool taken = answers[page - first] == View::Taken::kTaken;
        if (taken && holds(view_->staging(page), round)) view_->put_back({page, 1});
        refused += answers[page - first] == View::Taken::kRefused;
        const bool is_right = holds(words(page), round);
        right += is_right;
        if (is_right) write(page, round + 1);
      }
      first += pages;
    }
  }
  lock.unlock();
  done = true;
  cold.join();
  EXPECT_EQ(right, kRounds * kPages);
  std::fprintf(stderr, "kernel_view_test: of %lu pages %lu were refused\n", static_cast<unsigned long>(right),
               static_cast<unsigned long>(refused));
}

TEST_P(KernelViewTest, PagesThatTheProgramDroppedAreGone) {
  for (std::uint32_t page = 0; page < kPages; ++page) write(page, 9);
  ASSERT_EQ(syscall(SYS_madvise, range_.data() + 10 * kPageBytes, 5 * kPageBytes, MADV_DONTNEED), 0);
  View::Taken answers[kPages];
  std::lock_guard lock(mutex_);
  view_->take_out({0, kPages}, answers);
  for (std::uint32_t page = 0; page < kPages; ++page) {
    EXPECT_EQ(answers[page], page >= 10 && page < 15 ? View::Taken::kGone : View::Taken::kTaken) << page;
  }
  view_->put_back({0, 10});
  view_->put_back({15, kPages - 15});
}

// A page that came since it was asked counts as written; what is only read does not.
TEST_P(KernelViewTest, WritesAreNotedWhereTheKernelDoesSo) {
  for (PageNumber page = 0; page < 8; ++page) words(page)[0] = page;
  View::Written written;
  ASSERT_EQ(view_->take_written(0, written), GetParam().notes_writes);
  EXPECT_EQ(view_->tells_every_write(), GetParam().move && !GetParam().notes_writes);
  if (!GetParam().notes_writes) return;
  EXPECT_EQ(written, View::Written(0xff));
  ASSERT_TRUE(view_->take_written(0, written));
  EXPECT_EQ(written, View::Written());
  std::uint64_t sum = 0;
  for (PageNumber page = 0; page < 8; ++page) sum += words(page)[0];
  EXPECT_EQ(sum, 28u);
  words(2)[1] = 1;
  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(read(zeros, words(5), 100), 100);  // so do system calls
  close(zeros);
  ASSERT_EQ(take_out(7), View::Taken::kTaken);
  const std::uint64_t faults = faults_;
  ASSERT_TRUE(view_->take_written(0, written));
  EXPECT_EQ(written, View::Written(1 << 2 | 1 << 5));
  EXPECT_EQ(faults_, faults) << "nobody waited for that";
  EXPECT_EQ(words(7)[0], 7u);
  ASSERT_TRUE(view_->take_written(0, written));
  EXPECT_EQ(written, View::Written(1 << 7));
}

// Of a part of it that is mapped to something else nothing is known, and of the rest all.
TEST_P(KernelViewTest, WritesBesideAStrangersMappingAreNoted) {
  for (PageNumber page = 0; page < 4; ++page) words(page)[0] = page;
  ASSERT_NE(mmap(words(1), kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  words(1)[0] = 1;
  View::Written written;
  const bool notes = view_->take_written(0, written);
  ASSERT_EQ(notes, GetParam().notes_writes);
  if (!notes) return;
  words(1)[0] = 2;
  words(3)[0] = 2;
  ASSERT_TRUE(view_->take_written(0, written));
  EXPECT_EQ(written, View::Written(1 << 3));
}

TEST_P(KernelViewTest, LockedPagesStay) {
  for (std::uint32_t page = 0; page < 16; ++page) write(page, page + 5);
  // By system call: sanitizers make mlock() do nothing.
  ASSERT_EQ(syscall(SYS_mlock, range_.data() + 4 * kPageBytes, 4 * kPageBytes), 0);
  for (std::uint32_t page = 0; page < 16; ++page) {
    const bool locked = page >= 4 && page < 8;
    EXPECT_EQ(take_out(page), locked ? View::Taken::kRefused : View::Taken::kTaken) << page;
  }
  for (std::uint32_t page = 0; page < 16; ++page) {
    EXPECT_EQ(words(page)[0], page + 5);
    write(page, page + 6);  // and not held up by a write protection that was left behind
  }
  // In one run with others: none is lost, whatever the answer.
  {
    View::Taken answers[16];
    std::lock_guard lock(mutex_);
    view_->take_out({0, 16}, answers);
    for (std::uint32_t page = 0; page < 16; ++page) {
      EXPECT_NE(answers[page], View::Taken::kGone);
      staged_[page] = answers[page] == View::Taken::kTaken;
      in_view_[page] = !staged_[page];
    }
  }
  for (std::uint32_t page = 0; page < 16; ++page) EXPECT_EQ(words(page)[0], page + 6);
  ASSERT_EQ(syscall(SYS_munlock, range_.data() + 4 * kPageBytes, 4 * kPageBytes), 0);
  EXPECT_EQ(take_out(5), View::Taken::kTaken);
}

TEST_P(KernelViewTest, ProtectedPagesKeepTheirBytes) {
  for (int protection : {PROT_READ, PROT_NONE}) {
    for (std::uint32_t page = 0; page < 8; ++page) write(page, page + 5);
    ASSERT_EQ(mprotect(range_.data() + 2 * kPageBytes, 3 * kPageBytes, protection), 0);
    for (std::uint32_t page = 0; page < 8; ++page) EXPECT_NE(take_out(page), View::Taken::kGone);
    ASSERT_EQ(mprotect(range_.data() + 2 * kPageBytes, 3 * kPageBytes, PROT_READ | PROT_WRITE), 0);
    for (std::uint32_t page = 0; page < 8; ++page) {
      EXPECT_EQ(words(page)[0], page + 5);
      write(page, 1);
    }
  }
}

TEST_P(KernelViewTest, PagesSharedWithAForkedChildLeaveAndAreRightInBoth) {
  for (std::uint32_t page = 0; page < 32; ++page) write(page, page + 5);
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    char one;
    close(go[1]);
    if (read(go[0], &one, 1) != 0) _exit(2);
    for (std::uint32_t page = 0; page < 32; ++page) {
      if (words(page)[0] != page + 5) _exit(1);
    }
    _exit(0);
  }
  for (std::uint32_t page = 0; page < 16; ++page) EXPECT_EQ(take_out(page), View::Taken::kTaken) << page;
  for (std::uint32_t page = 0; page < 16; ++page) {
    EXPECT_EQ(words(page)[0], page + 5);
    write(page, 77);
  }
  close(go[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(go[0]);
  // The child is gone, but the kernel still takes the others for shared.
  for (std::uint32_t page = 16; page < 32; ++page) EXPECT_EQ(take_out(page), View::Taken::kTaken) << page;
  for (std::uint32_t page = 16; page < 32; ++page) EXPECT_EQ(words(page)[0], page + 5);
}

// vmsplice takes references, as a device does: with MOVE the page may be refused; it must never be lost.
TEST_P(KernelViewTest, PagesLentToAPipeKeepTheirBytes) {
  for (std::uint32_t page = 0; page < 8; ++page) write(page, page + 5);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const iovec piece{range_.data(), 8 * kPageBytes};
  ASSERT_EQ(vmsplice(ends[1], &piece, 1, 0), static_cast<ssize_t>(8 * kPageBytes));
  for (std::uint32_t page = 0; page < 8; ++page) EXPECT_NE(take_out(page), View::Taken::kGone);
  std::vector<std::uint64_t> got(8 * kPageBytes / 8);
  ASSERT_EQ(read(ends[0], got.data(), 8 * kPageBytes), static_cast<ssize_t>(8 * kPageBytes));
  for (std::uint32_t page = 0; page < 8; ++page) {
    EXPECT_EQ(got[page * 512], page + 5);
    EXPECT_EQ(words(page)[0], page + 5);
  }
  close(ends[0]);
  close(ends[1]);
}

TEST_P(KernelViewTest, StagedBytesAreFoundAtTheTouch) {
  std::vector<std::uint64_t> bytes(4 * kPageBytes / 8);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = i * 3;
  {
    std::lock_guard lock(mutex_);
    view_->stage({20, 4}, reinterpret_cast<const std::byte*>(bytes.data()));
    for (PageNumber page = 20; page < 24; ++page) staged_[page] = true;
    view_->put_in({30, 4}, reinterpret_cast<const std::byte*>(bytes.data()), View::Guard::kOff);
    for (PageNumber page = 30; page < 34; ++page) in_view_[page] = true;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(words(20)[i], i * 3);
    EXPECT_EQ(words(30)[i], i * 3);
  }
  std::unique_lock lock(mutex_);
  const std::uint64_t faults = faults_;
  view_->drop_view({20, 1});
  in_view_[20] = false;
  lock.unlock();
  EXPECT_EQ(words(20)[1], 0u);
  lock.lock();
  EXPECT_EQ(faults_, faults + 1);
}

// While the program called mlockall(), pages that had left were overwritten with zeros in staging instead of dropped;
// what was staged there next was taken to be there already, and the program read zeros.
TEST_P(KernelViewTest, LockedStagingIsDroppedAndTakesWhatIsPutThereNext) {
  const std::vector<std::byte> old(kPageBytes, std::byte{1}), next(kPageBytes, std::byte{2});
  const PageRun page{5, 1};
  std::lock_guard lock(mutex_);
  view_->stage(page, old.data());
  ASSERT_EQ(mlock(view_->staging(page.first), kPageBytes), 0);
  view_->drop_staging({&page, 1});
  ASSERT_EQ(munlock(view_->staging(page.first), kPageBytes), 0);
  view_->stage(page, next.data());
  EXPECT_EQ(std::memcmp(view_->staging(page.first), next.data(), kPageBytes), 0);
}

// Zeros were written to it, by the thread that had the mutex without which nobody serves that write.
TEST_P(KernelViewTest, ALockedPageThatIsGuardedIsDropped) {
  const PageRun page{5, 1};
  std::byte* const at = range_.data() + page.first * kPageBytes;
  ASSERT_EQ(syscall(SYS_mlock, at, kPageBytes), 0);
  write(page.first, 7);
  {
    std::lock_guard lock(mutex_);
    view_->guard(page);
    view_->drop_view(page);
    in_view_[page.first] = false;
  }
  EXPECT_EQ(words(page.first)[0], 0u);
  write(page.first, 8);
  EXPECT_EQ(words(page.first)[0], 8u);
  ASSERT_EQ(syscall(SYS_munlock, at, kPageBytes), 0);
}

// Stripes of 64 MiB in turn: a page's fault comes to the queue of its stripe, which serves it in all ways; also in a
// child.
class QueuesTest : public ::testing::TestWithParam<bool> {};

TEST_P(QueuesTest, APageHasTheQueueOfItsStripe) {
  constexpr std::size_t kStripe = 64 * base::kMiB;
  constexpr unsigned kQueues = 4;
  auto range = os::Mapping::reserve(9 * kStripe, os::Access::kReadWrite);
  ASSERT_TRUE(range.has_value());
  madvise(range->data(), range->size(), MADV_NOHUGEPAGE);
  auto made = KernelView::make(range->data(), range->size(), {.move = GetParam()}, kQueues);
  if (!made || (*made)->features().move != GetParam()) {
    std::fputs("kernel_view_test: NOT TESTED: this kernel has no userfaultfd, or no UFFDIO_MOVE\n", stderr);
    GTEST_SKIP() << "no userfaultfd, or no UFFDIO_MOVE";
  }
  KernelView& view = **made;
  const KernelView::Runs own = {{range->data(), 3 * kStripe + kPageBytes},
                                {range->data() + 4 * kStripe - kPageBytes, 5 * kStripe + kPageBytes}};
  const auto all_work = [&] {
    for (std::size_t stripe = 0; stripe < 9; ++stripe) {
      auto* const at = reinterpret_cast<volatile std::uint64_t*>(range->data() + stripe * kStripe);
      const PageNumber page = stripe * kStripe / kPageBytes;
      std::thread program([&] { *at = stripe + 1; });
      pollfd waiting{view.queue(stripe % kQueues).descriptor(), POLLIN, 0};
      os::FaultEvent event;
      if (poll(&waiting, 1, -1) != 1 || !view.queue(stripe % kQueues).read_event(event)) return false;
      if (view.page_of(event.address) != page) return false;
      view.put_in({page, 1}, g_zeros, View::Guard::kOff);
      program.join();
      View::Taken answer;
      view.take_out({page, 1}, {&answer, 1});
      if (answer != View::Taken::kTaken) return false;
      if (*reinterpret_cast<const std::uint64_t*>(view.staging(page)) != stripe + 1) return false;
      view.put_back({page, 1});
      if (*at != stripe + 1) return false;
      view.drop_view({page, 1});
    }
    return true;
  };
  ASSERT_TRUE(view.watch(own).has_value());
  EXPECT_TRUE(all_work());
  const pid_t child = fork();
  if (child == 0) _exit(view.renew_in_child(own).has_value() && all_work() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(all_work());
}

INSTANTIATE_TEST_SUITE_P(Features, QueuesTest, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "Move" : "NoMove"; });

// All of a huge page, in a range that is watched: parts of it leave, come back and are guarded as small pages do.
TEST(KernelViewHugeTest, AHugePageComesAndItsPartsLeave) {
  auto range = os::Mapping::reserve(2 * base::kHugePageBytes, os::Access::kReadWrite);
  ASSERT_TRUE(range.has_value());
  const auto begin = reinterpret_cast<std::uintptr_t>(range->data());
  std::byte* const at = range->data() + (base::round_up(begin, base::kHugePageBytes) - begin);
  auto made = KernelView::make(at, base::kHugePageBytes, {.move = true});
  if (!made) {
    std::fprintf(stderr, "kernel_view_test: NOT TESTED: %s\n", made.error().message().c_str());
    GTEST_SKIP() << made.error().message();
  }
  KernelView& view = **made;
  ASSERT_TRUE(view.watch({{at, base::kHugePageBytes}}).has_value());
  const std::uint32_t there = view.put_in_huge(0);
  if (!view.features().move) {
    EXPECT_EQ(there, 0u);
    std::fputs("kernel_view_test: NOT TESTED: this kernel has no UFFDIO_MOVE\n", stderr);
    GTEST_SKIP() << "no UFFDIO_MOVE";
  }
  ASSERT_EQ(there, base::kPagesPerHugePage);  // of small ones, if there was no huge one
  const auto word = [&](PageNumber page) -> std::uint64_t& {
    return *reinterpret_cast<std::uint64_t*>(at + page * kPageBytes);
  };
  for (PageNumber page = 0; page < there; ++page) {
    ASSERT_EQ(std::memcmp(at + page * kPageBytes, g_zeros, kPageBytes), 0);
    word(page) = page + 1;
  }
  View::Taken answers[100];
  view.take_out({200, 100}, answers);
  for (PageNumber page = 200; page < 300; ++page) {
    EXPECT_EQ(answers[page - 200], View::Taken::kTaken);
    EXPECT_EQ(*reinterpret_cast<const std::uint64_t*>(view.staging(page)), page + 1);
  }
  view.put_back({200, 100});
  view.guard({0, there});
  view.release({7, 3});
  word(8) = 9;
  view.release({0, there});
  for (PageNumber page = 0; page < there; ++page) EXPECT_EQ(word(page), page + 1);
  view.drop_view({0, there});
}

INSTANTIATE_TEST_SUITE_P(Features, KernelViewTest,
                         ::testing::Values(os::UserfaultFeatures{.move = false}, os::UserfaultFeatures{},
                                           os::UserfaultFeatures{.notes_writes = true}),
                         [](const auto& one) {
                           return one.param.notes_writes ? "NotesWrites" : one.param.move ? "Move" : "NoMove";
                         });

}  // namespace
}  // namespace farheap::pager
