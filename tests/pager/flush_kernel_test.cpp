// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Flushes on the real kernel: what threads, system calls and devices wrote before is in the backing, though no flush
// looks at pages that are guarded.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "array_world.hpp"
#include "pager/fault_loop.hpp"
#ifdef FARHEAP_HAVE_LIBURING
#include <liburing.h>
#endif

namespace farheap::pager::testing {
namespace {

constexpr std::uint64_t kPages = 1024;

class FlushKernelTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto range = os::Mapping::reserve(kPages * kPageBytes, os::Access::kReadWrite);
    ASSERT_TRUE(range.has_value());
    range_ = std::move(*range);
    madvise(range_.data(), range_.size(), MADV_NOHUGEPAGE);
    auto view = KernelView::make(range_.data(), range_.size(), {.move = GetParam(), .kernel_faults = true});
    if (!view) skip(view.error().message());
    if (!view) return;
    view_ = std::move(*view);
    if (GetParam() && !view_->tells_every_write()) return skip("this kernel has no UFFDIO_MOVE, or no kernel faults");
    PagerOptions options;
    options.capacity_pages = kPages;
    options.lost = [](const Error& error) { ADD_FAILURE() << error.message(); };
    pager_ = Pager::make(*view_, backing_, budget_, run_page_.counters, options).value();
    loop_ = std::make_unique<FaultLoop>(*pager_, backing_, *view_, run_page_, FaultLoopOptions{.can_stop = true});
    ASSERT_TRUE(loop_->start());
    ASSERT_TRUE(view_->watch({{range_.data(), range_.size()}}));
  }
  void TearDown() override {
    if (!loop_) return;
    loop_->stop();
    EXPECT_EQ(pager_->check(), "");
  }
  void skip(const std::string& why) {
    std::fprintf(stderr, "flush_kernel_test: NOT TESTED: %s\n", why.c_str());
    GTEST_SKIP() << "SKIPPED, NOT TESTED: " << why;
  }

  [[nodiscard]] std::byte* at(PageNumber page) const { return range_.data() + page * kPageBytes; }
  void write(PageNumber page, std::uint64_t value) {
    reinterpret_cast<std::atomic<std::uint64_t>*>(at(page))[8].store(value);
  }
  void flush(std::vector<PageBytes>& buffer) { ASSERT_TRUE(pager_->flush(buffer[0].data())); }
  // What the program sees is what the backing has.
  [[nodiscard]] bool is_there(PageNumber page) const {
    const auto found = backing_.page(page);
    return found ? std::memcmp(found->data(), at(page), kPageBytes) == 0 : is_zero_page(at(page));
  }
  // By the kernel's page tables (admin-guide/mm/pagemap.rst, bit 57).
  [[nodiscard]] std::uint64_t guarded(PageNumber first, std::uint64_t count) const {
    std::vector<std::uint64_t> entries(count);
    const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const auto from = static_cast<off_t>((reinterpret_cast<std::uintptr_t>(at(first)) / kPageBytes) * 8);
    EXPECT_EQ(pread(file, entries.data(), count * 8, from), static_cast<ssize_t>(count * 8));
    close(file);
    return static_cast<std::uint64_t>(
        std::ranges::count_if(entries, [](std::uint64_t entry) { return (entry >> 57 & 1) != 0; }));
  }
  void flush_until_guarded(PageNumber first, std::uint64_t count) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (guarded(first, count) != count) {
      flush(buffer_);
      ASSERT_LT(std::chrono::steady_clock::now(), until) << guarded(first, count) << " of " << count;
    }
  }

  os::Mapping range_;
  std::unique_ptr<KernelView> view_;
  MapBacking backing_{{}, 1};
  FixedBudget budget_{kPages};
  base::RunPage run_page_;
  std::unique_ptr<Pager> pager_;
  std::unique_ptr<FaultLoop> loop_;
  std::vector<PageBytes> buffer_ = std::vector<PageBytes>(Pager::kFlushPages);
};

// Each thread has pages of its own, writes to them by itself and by system calls, and flushes now and then.
class Writer {
 public:
  explicit Writer(std::uint64_t seed) : random_(seed) {
    if (pipe(pipe_) != 0) std::abort();
  }
  ~Writer() { close(pipe_[0]), close(pipe_[1]); }
  std::mt19937_64& random() { return random_; }
  void read_into(std::byte* to, std::uint64_t value) {
    EXPECT_EQ(::write(pipe_[1], &value, 8), 8);
    EXPECT_EQ(::read(pipe_[0], to, 8), 8);
  }

 private:
  std::mt19937_64 random_;
  int pipe_[2];
};

TEST_P(FlushKernelTest, WhatThreadsAndSystemCallsWroteBeforeIsThere) {
  constexpr int kThreads = 2, kSteps = 1500;
  constexpr std::uint64_t kOfEach = kPages / kThreads, kHot = 8;
  budget_.pages = kPages * 3 / 4;
  std::atomic<std::uint64_t> most_guarded{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      Writer writer(number + 1);
      std::vector<PageBytes> buffer(Pager::kFlushPages);
      const PageNumber first = number * kOfEach;
      for (int step = 0; step < kSteps; ++step) {
        const auto dice = writer.random()() % 100;
        // Mostly a few pages, so that the others are quiet for long.
        const PageNumber page = first + writer.random()() % (dice % 10 == 0 ? kOfEach : kHot);
        if (dice < 40) {
          write(page, writer.random()() % 4);
        } else if (dice < 70) {
          writer.read_into(at(page) + 8 * (writer.random()() % 100), writer.random()());
        } else if (dice < 72) {
          pager_->discard(page, 1);
        } else {
          flush(buffer);
          for (PageNumber one = first; one < first + kOfEach; ++one) EXPECT_TRUE(is_there(one)) << one;
          most_guarded = std::max(most_guarded.load(), guarded(first, kOfEach));
        }
        if (::testing::Test::HasFailure()) return;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(!GetParam() || most_guarded > 0);  // pages that leave by being copied are guarded for a moment, too
}

TEST_P(FlushKernelTest, AGuardIsGoneWhenAChildIsForkedAndComesBack) {
  if (!GetParam()) GTEST_SKIP() << "SKIPPED, NOT TESTED: where pages do not move none is guarded";
  for (PageNumber page = 0; page < 64; ++page) write(page, page + 1);
  flush_until_guarded(0, 64);
  pager_->pause_eviction(true);
  pager_->freeze();
  EXPECT_EQ(guarded(0, 64), 0u);
  write(3, 77);  // with the pager's mutex held, as while a process forks
  pager_->thaw();
  flush(buffer_);
  EXPECT_TRUE(is_there(3));
  flush_until_guarded(0, 64);
}

#ifdef FARHEAP_HAVE_LIBURING
// A buffer that io_uring has pinned is written past the page tables.
TEST_P(FlushKernelTest, WhatADeviceWritesToPinnedPagesIsFound) {
  io_uring ring;
  if (io_uring_queue_init(4, &ring, 0) != 0) return skip("io_uring is forbidden here");
  for (PageNumber page = 0; page < 64; ++page) write(page, page + 1);
  const iovec pinned{at(32), kPageBytes};
  const int registered = io_uring_register_buffers(&ring, &pinned, 1);
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  for (off_t step = 0; registered == 0 && step < 5; ++step) {
    flush_until_guarded(0, GetParam() ? 32 : 0);
    flush_until_guarded(33, GetParam() ? 31 : 0);
    EXPECT_EQ(guarded(32, 1), 0u);
    for (int i = 0; i < 300; ++i) flush(buffer_);
    io_uring_prep_read_fixed(io_uring_get_sqe(&ring), file, at(32), kPageBytes, step * 4096, 0);
    io_uring_cqe* answer = nullptr;
    ASSERT_EQ(io_uring_submit_and_wait(&ring, 1), 1);
    ASSERT_EQ(io_uring_wait_cqe(&ring, &answer), 0);
    EXPECT_EQ(answer->res, static_cast<int>(kPageBytes));
    io_uring_cqe_seen(&ring, answer);
    flush(buffer_);
    EXPECT_TRUE(is_there(32)) << step;
    PageBytes of_file;
    ASSERT_EQ(pread(file, of_file.data(), kPageBytes, step * 4096), static_cast<ssize_t>(kPageBytes));
    EXPECT_EQ(std::memcmp(of_file.data(), at(32), kPageBytes), 0);
  }
  close(file);
  io_uring_queue_exit(&ring);
  if (registered != 0) skip("no memory may be pinned here");
}
#endif

INSTANTIATE_TEST_SUITE_P(Features, FlushKernelTest, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "move" : "copy"; });

}  // namespace
}  // namespace farheap::pager::testing
