// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening a heap that another process has open: until that closes it, or is taken down.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "api/patience.hpp"
#include "tests/api/heap_folder.hpp"

namespace farheap::testing {
namespace {

using api::Patience;
using std::chrono::milliseconds;

milliseconds sum_of(Patience patience, bool dying) {
  milliseconds sum{};
  while (const auto pause = patience.next(dying)) {
    EXPECT_GT(pause->count(), 0);
    EXPECT_LE(*pause, milliseconds(50)) << "whoever lets go is seen soon";
    sum += *pause;
  }
  return sum;
}

TEST(PatienceTest, ALivingHolderIsWaitedForAsLongAsWasSaid) {
  EXPECT_EQ(sum_of(Patience(milliseconds(1000)), false), milliseconds(1000));
  EXPECT_EQ(sum_of(Patience(milliseconds(7)), false), milliseconds(7));
  EXPECT_EQ(sum_of(Patience(milliseconds(0)), false), milliseconds(0));
  EXPECT_EQ(sum_of(Patience(milliseconds(-1)), false), milliseconds(0));
  EXPECT_EQ(Patience::usual(), milliseconds(1000));
}

TEST(PatienceTest, ADyingHolderIsWaitedForLonger) {
  EXPECT_EQ(sum_of(Patience(milliseconds(1000)), true), milliseconds(1000) + Patience::kForDying);
  EXPECT_EQ(sum_of(Patience(milliseconds(0)), true), Patience::kForDying);
}

class HeapWaitTest : public ::testing::Test {
 protected:
  // A process that has the heap open and then does `work`; it is there when this returns.
  template <class Work>
  pid_t holder(Work work) {
    int ready[2];
    if (pipe(ready) != 0) abort();
    const pid_t child = fork();
    if (child == 0) {
      {
        Heap heap = must(Heap::open_or_create(folder_.uri(), kSmall));
        work(heap, ready[1]);
      }
      _exit(0);
    }
    close(ready[1]);
    char one = 0;
    EXPECT_EQ(read(ready[0], &one, 1), 1);
    close(ready[0]);
    return child;
  }
  static void tell(int ready) { (void)!write(ready, "x", 1); }

  HeapFolder folder_;
};

// It lets go when somebody has come for the lock a second time: one who does not wait comes once.
TEST_F(HeapWaitTest, OpeningWaitsUntilTheHolderCloses) {
  const pid_t child = holder([&](Heap&, int ready) {
    const int watch = inotify_init1(IN_CLOEXEC);
    if (inotify_add_watch(watch, folder_.file("heap.lock").c_str(), IN_OPEN) < 0) abort();
    tell(ready);
    for (int opened = 0; opened < 2; ++opened) {
      inotify_event event{};
      if (read(watch, &event, sizeof event) <= 0) abort();
    }
  });
  EXPECT_TRUE(Heap::open(folder_.uri(), {.memory = 32_MiB, .wait = std::chrono::minutes(1)}));
  kill(child, SIGKILL);  // it has ended by itself, if all is well
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST_F(HeapWaitTest, ALivingHolderIsNamedInTheEnd) {
  const pid_t child = holder([](Heap&, int ready) {
    tell(ready);
    pause();
  });
  const auto opened = Heap::open(folder_.uri(), {.memory = 32_MiB, .wait = milliseconds(20)});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kConflict);
  EXPECT_NE(opened.error().message().find(std::to_string(child)), std::string::npos) << opened.error().message();
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

// The kernel takes its memory before its locks: the more of it, the longer it still has the heap.
TEST_F(HeapWaitTest, AWriterThatWasJustKilledIsNotInTheWay) {
  for (int i = 0; i < 20; ++i) {
    const pid_t child = holder([](Heap& heap, int ready) {
      constexpr std::size_t kBytes = 24 * std::size_t{1} << 20;
      std::memset(heap.allocate(kBytes), 1, kBytes);
      auto* const more = static_cast<char*>(malloc(4 * kBytes));
      std::memset(more, 1, 4 * kBytes);
      tell(ready);
      pause();
    });
    EXPECT_EQ(kill(child, SIGKILL), 0);
    const auto opened = Heap::open(folder_.uri(), kSmall);
    EXPECT_TRUE(opened) << opened.error().message();
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
  }
}

}  // namespace
}  // namespace farheap::testing
