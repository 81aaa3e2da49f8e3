// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "crash_program.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

namespace farheap::crash {

namespace {

void must(const Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.error().message().c_str());
  _exit(3);
}

[[noreturn]] void make_steps(Heap& heap, unsigned thread, Progress& progress) {
  std::atomic_ref steps(*heap.find<std::uint64_t>(name_of("steps ", thread)));  // the one who commits looks at it
  auto& table = *heap.find<Table>(name_of("table ", thread));
  std::mt19937 random(thread);
  for (;;) {
    {
      const auto pause = heap.pause();
      const std::uint64_t k = steps + 1;
      progress.steps_begun[thread] = k;
      step(
          thread, k,
          [&](int key, std::uint32_t length, char letter) {
            table.insert_or_assign(key, KeptText(length, letter, heap.allocator<char>()));
          },
          [&](int key) { table.erase(key); });
      (void)heap.construct<std::uint64_t>(step_name(thread, k))(k);
      if (k > kNamesKept) (void)heap.destroy<std::uint64_t>(step_name(thread, k - kNamesKept));
      steps = k;
    }
    usleep(random() % 800);  // so that the one who commits has his turn
  }
}

// All four are commits.
Status commit(Heap& heap, std::uint64_t number, std::mt19937_64& random) {
  switch (random() % 8) {
    case 0: return heap.snapshot(name_of("snapshot ", number));
    case 1: {
      const auto versions = heap.versions();
      if (!versions) return fail(versions.error());
      if (versions->size() > 3) return heap.remove_snapshot((*versions)[random() % (versions->size() - 1)].name);
      return heap.commit();
    }
    case 2: return heap.compact();
    default: return heap.commit();
  }
}

}  // namespace

void work(const std::string& uri, std::uint64_t seed, Progress& progress) {
  auto heap = Heap::open(uri, kOptions);
  if (!heap) {
    std::fprintf(stderr, "%s\n", heap.error().message().c_str());
    _exit(2);
  }
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    (void)heap->find_or_construct<std::uint64_t>(name_of("steps ", thread))(0u);
    (void)heap->find_or_construct<Table>(name_of("table ", thread))(heap->allocator<std::byte>());
  }
  auto& commits = *heap->find_or_construct<std::uint64_t>("commits")(0u);
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    std::thread([&heap = *heap, thread, &progress] { make_steps(heap, thread, progress); }).detach();
  }
  std::mt19937_64 random(seed);
  for (;;) {
    std::array<std::uint64_t, kThreads> steps;
    {
      const auto pause = heap->pause();
      ++commits;
      for (unsigned thread = 0; thread < kThreads; ++thread) {
        steps[thread] = std::atomic_ref(*heap->find<std::uint64_t>(name_of("steps ", thread))).load();
      }
    }
    progress.commits_begun = commits;
    must(commit(*heap, commits, random));
    for (unsigned thread = 0; thread < kThreads; ++thread) progress.steps_returned[thread] = steps[thread];
    progress.commits_returned = commits;
  }
}

}  // namespace farheap::crash
