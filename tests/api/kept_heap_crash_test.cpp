// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program is killed at random instants, and its heap opens at the last commit that returned, or the one in flight.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

using Text = std::basic_string<char, std::char_traits<char>, allocator<char>>;
using Table = std::map<int, Text, std::less<>, allocator<std::pair<const int, Text>>>;

struct Progress {                    // shared with the child
  std::atomic<std::uint64_t> begun;  // commits
  std::atomic<std::uint64_t> returned;
};

// Step k of the workload is the same whenever it is made, so the state after k steps is known to who counts.
template <class Set, class Erase>
void step(std::uint64_t k, const Set& set, const Erase& erase) {
  std::mt19937_64 random(k * 977 + 13);
  for (int i = 0; i < 40; ++i) {
    const int key = static_cast<int>(random() % 400);
    if (random() % 3 == 0) {
      erase(key);
    } else {
      set(key, std::string(random() % 3000, static_cast<char>('a' + random() % 26)));
    }
  }
}

std::map<int, std::string> state_after(std::uint64_t steps) {
  std::map<int, std::string> model;
  for (std::uint64_t k = 1; k <= steps; ++k) {
    step(k, [&](int key, std::string value) { model[key] = std::move(value); }, [&](int key) { model.erase(key); });
  }
  return model;
}

[[noreturn]] void work(const std::string& uri, Progress& progress) {
  auto heap = Heap::open(uri, kSmall);
  if (!heap) {
    fprintf(stderr, "%s\n", heap.error().message().c_str());
    _exit(2);
  }
  auto* const steps = heap->find_or_construct<std::uint64_t>("steps")(0u);
  auto* const table = heap->find_or_construct<Table>("table")(heap->allocator<std::byte>());
  for (;;) {
    step(
        *steps + 1,
        [&](int key, const std::string& value) {
          table->insert_or_assign(key, Text(value.begin(), value.end(), heap->allocator<char>()));
        },
        [&](int key) { table->erase(key); });
    ++*steps;
    progress.begun = *steps;
    if (*steps % 5 == 0) (void)heap->remove_snapshot("five");
    const Status status = *steps % 5 == 0 ? heap->snapshot("five") : heap->commit();
    if (!status) _exit(3);
    progress.returned = *steps;
  }
}

void wait_for_a_commit(const Progress& progress, std::uint64_t steps) {
  for (int looks = 0; looks < 30'000 && progress.returned <= steps; ++looks) usleep(1000);
}

TEST(KeptHeapCrashTest, KilledWhileItIsCreatedItIsCreatedAgain) {
  const HeapFolder folder;
  std::mt19937 random(5);
  for (int i = 0; i < 30; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) {
        if (!Heap::open_or_create(folder.uri(), kSmall)) _exit(1);
        if (!Heap::remove(folder.uri())) _exit(2);
      }
    }
    usleep(random() % 30'000);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself: " << status;
    {
      Heap heap = must(Heap::open_or_create(folder.uri(), kSmall));
      EXPECT_NE(heap.construct<int>("number")(1), nullptr);
      ASSERT_TRUE(heap.commit());
    }
    ASSERT_TRUE(Heap::remove(folder.uri()));
  }
}

TEST(KeptHeapCrashTest, KilledAtAnyInstantItOpensAtACommit) {
  const HeapFolder folder;
  (void)must(Heap::create(folder.uri(), kSmall));
  auto* const progress = static_cast<Progress*>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const char* const wanted = std::getenv("FARHEAP_KILLS");
  const int kills = wanted != nullptr ? std::atoi(wanted) : 60;
  std::mt19937 random(4);
  std::uint64_t steps = 0;
  for (int kill_number = 0; kill_number < kills; ++kill_number) {
    const pid_t child = fork();
    if (child == 0) work(folder.uri(), *progress);
    // By turns at any instant, and soon after a commit, so that a slow machine gets on, too.
    if (kill_number % 2 == 0) wait_for_a_commit(*progress, steps);
    usleep(1000 + random() % (kill_number % 2 == 0 ? 20'000 : 60'000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself: " << status;

    ASSERT_TRUE(Heap::check(folder.uri())) << Heap::check(folder.uri()).error().message();
    Heap heap = must(Heap::open(folder.uri(), kSmall));
    const auto* const found = heap.find<std::uint64_t>("steps");
    const std::uint64_t now = found == nullptr ? 0 : *found;
    ASSERT_GE(now, progress->returned);
    ASSERT_LE(now, progress->begun);
    ASSERT_GE(now, steps);
    steps = now;
    if (found == nullptr) continue;
    const auto model = state_after(now);
    const auto* const table = heap.find<Table>("table");
    ASSERT_NE(table, nullptr);
    ASSERT_EQ(table->size(), model.size());
    for (const auto& [key, value] : model) {
      const auto at = table->find(key);
      ASSERT_NE(at, table->end());
      ASSERT_TRUE(std::string_view(at->second) == value) << "key " << key << " after " << now << " steps";
    }
  }
  EXPECT_GT(steps, 20u);
  munmap(progress, sizeof *progress);
}

}  // namespace
}  // namespace farheap::testing
