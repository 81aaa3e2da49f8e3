// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several generations, and many children: whose part of the memory, of the store and of the budget is whose.
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "forks.hpp"

using namespace cases;

CASE(many_children_at_once) {
  void* at = malloc(kShared);
  fill(at, kShared, 1);
  int children[4];
  for (std::uint64_t i = 0; i < 4; ++i) {
    children[i] = in_child([&] { verify_and_rewrite(at, kShared, 1, 10 + i); });
  }
  verify_and_rewrite(at, kShared, 1, 5);
  for (int child : children) CHECK(status_of(child) == 0);
  CHECK_FILLED(at, kShared, 5);
}

CASE(grandchild) {
  void* at = malloc(kShared);
  fill(at, kShared, 1);
  const int child = in_child([&] {
    verify_and_rewrite(at, kShared, 1, 2);
    const int grandchild = in_child([&] { verify_and_rewrite(at, kShared, 2, 3); });
    verify_and_rewrite(at, kShared, 2, 4);
    CHECK(status_of(grandchild) == 0);
    CHECK_FILLED(at, kShared, 4);
  });
  verify_and_rewrite(at, kShared, 1, 5);
  CHECK(status_of(child) == 0);
  CHECK_FILLED(at, kShared, 5);
}

// The parent goes first: what the child refers to in the store must stay.
CASE(orphan) {
  int ends[2], done[2];
  CHECK(pipe(ends) == 0 && pipe(done) == 0);
  void* at = malloc(kShared);
  fill(at, kShared, 1);
  const int child = in_child([&] {
    verify_and_rewrite(at, kShared, 1, 2);
    in_child([&] {
      char gone;
      close(done[1]);
      CHECK(read(done[0], &gone, 1) == 0);  // until the parent has ended
      verify_and_rewrite(at, kShared, 2, 3);
      CHECK(write(ends[1], "+", 1) == 1);
    });
  });
  close(done[1]);
  CHECK(status_of(child) == 0);
  close(ends[1]);
  verify_and_rewrite(at, kShared, 1, 4);
  char answer = 0;
  CHECK(read(ends[0], &answer, 1) == 1 && answer == '+');
  CHECK_FILLED(at, kShared, 4);
}

namespace {

// All that is mapped. A heap that grows changes nothing of it: its addresses are reserved.
std::size_t mapped_bytes() {
  FILE* file = fopen("/proc/self/statm", "re");
  CHECK(file != nullptr);
  std::size_t pages = 0;
  CHECK(fscanf(file, "%zu", &pages) == 1);
  fclose(file);
  return pages * kPage;
}

}  // namespace

// Every generation kept the buffers of its ancestors' threads, two megabytes each as far as they were used.
CASE(generations_of_children_keep_no_buffers) {
  void* at = malloc(kShared);
  fill(at, kShared, 0);
  int ends[2];
  CHECK(pipe(ends) == 0);
  fflush(stdout);
  const int first = fork();
  CHECK(first >= 0);
  if (first == 0) {
    const std::size_t mapped = mapped_bytes();
    for (std::uint64_t generation = 1; generation <= 16; ++generation) {
      verify_and_rewrite(at, kShared, generation - 1, generation);
      if (fork() != 0) _exit(0);  // the child goes on alone
    }
    verify_and_rewrite(at, kShared, 16, 17);
    CHECK(mapped_bytes() < mapped + 8 * kMebibyte);
    CHECK(write(ends[1], "w", 1) == 1);
    _exit(0);
  }
  CHECK(status_of(first) == 0);
  close(ends[1]);
  char answer = 0;
  CHECK(read(ends[0], &answer, 1) == 1 && answer == 'w');
  CHECK_FILLED(at, kShared, 0);
}

// A child that ended holds nothing any more: were its part of the store kept, the parent would have to write to
// another place after each of these forks, until there is none left.
CASE(hundreds_of_children_one_after_another) {
  constexpr std::size_t kBytes = 2 * kMebibyte;
  void* at = malloc(kBytes);
  void* sweep = malloc(40 * kMebibyte);
  for (std::uint64_t i = 0; i < 300; ++i) {
    fill(at, kBytes, i);
    for (std::size_t k = 0; k < 40 * kMebibyte; k += kPage) static_cast<char*>(sweep)[k] = static_cast<char>(i);
    CHECK(status_of(in_child([] {})) == 0);
    CHECK_FILLED(at, kBytes, i);
  }
}

namespace {

// What files without a name take on disk: under a run, the store.
std::size_t bytes_in_nameless_files() {
  std::size_t sum = 0;
  for (int file = 3; file < 1024; ++file) {
    struct stat about{};
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_nlink == 0) {
      sum = std::max(sum, static_cast<std::size_t>(about.st_blocks) * 512);
    }
  }
  return sum;
}

}  // namespace

// What a child referred to in the store was kept until the whole family had ended: each fork followed by rewriting made
// the store larger.
CASE(five_hundred_forks_and_the_store_stays_small) {
  constexpr std::size_t kWindow = 4 * kMebibyte;
  char* at = static_cast<char*>(malloc(kShared));
  std::uint64_t seeds[kShared / kWindow] = {};
  for (std::size_t place = 0; place < kShared / kWindow; ++place) fill(at + place * kWindow, kWindow, 0);
  for (std::uint64_t i = 1; i <= 500; ++i) {
    const std::size_t place = i % (kShared / kWindow);
    char* window = at + place * kWindow;
    fflush(stdout);
    const int child = fork();
    if (child == 0) {
      CHECK(*reinterpret_cast<std::uint64_t*>(window) == word(seeds[place], 0));
      if (i % 8 == 0) fill(at, kWindow, 7);
      if (i % 3 == 0) kill(getpid(), SIGKILL);
      if (i % 7 == 0) execl("/bin/sh", "sh", "-c", "exit 0", nullptr);
      _exit(0);
    }
    fill(window, kWindow, i);
    seeds[place] = i;
    CHECK(status_of(child) == (i % 3 == 0 ? 128 + SIGKILL : 0));
  }
  for (std::size_t place = 0; place < kShared / kWindow; ++place) {
    CHECK_FILLED(at + place * kWindow, kWindow, seeds[place]);
  }
  CHECK(bytes_in_nameless_files() <= 4 * kShared);
}

namespace {

// Memory in pieces, each filled from a seed of its own that is kept outside of the heap.
class Family {
 public:
  static constexpr std::size_t kPiece = 128 << 10, kPieces = 384;
  // So many at once that what each of them keeps at the least fits the budget: five.
  static constexpr std::size_t kMostChildren = 2;

  Family() {
    for (std::size_t one = 0; one < kPieces; ++one) fill(piece(one), kPiece, seeds_[one]);
  }

  void live(std::uint64_t seed, std::size_t depth, int steps) {
    random_.seed(seed);
    std::vector<int> children;
    for (int step = 0; step < steps; ++step) {
      const std::size_t one = next() % kPieces;
      if (const auto what = next() % 16; what == 0 && depth < kMostChildren) {
        if (children.size() == kMostChildren - depth) wait_for(children);
        children.push_back(have_child(depth, steps / 2));
      } else if (what < 8) {
        CHECK_FILLED(piece(one), kPiece, seeds_[one]);
      } else {
        seeds_[one] = next();
        fill(piece(one), kPiece, seeds_[one]);
      }
    }
    while (!children.empty()) wait_for(children);
    for (std::size_t one = 0; one < kPieces; ++one) CHECK_FILLED(piece(one), kPiece, seeds_[one]);
  }

 private:
  char* piece(std::size_t number) { return memory_ + number * kPiece; }
  std::uint64_t next() { return random_() >> 8; }
  static void wait_for(std::vector<int>& children) {
    const int status = status_of(children.front());
    CHECK(status == 0 || status == 7 || status == 128 + SIGKILL);
    children.erase(children.begin());
  }
  // Most go on as the parent does; some become another program, some are killed in the middle of what they do.
  int have_child(std::size_t depth, int steps) {
    const std::uint64_t fate = next() % 8, seed = next();
    return in_child([&] {
      if (fate == 0) execl("/bin/sh", "sh", "-c", "exit 7", nullptr);
      live(seed, depth + 1, fate == 1 ? steps / 4 : steps);
      if (fate == 1) kill(getpid(), SIGKILL);
    });
  }

  char* memory_ = static_cast<char*>(malloc(kPieces * kPiece));
  std::mt19937_64 random_;
  std::uint64_t seeds_[kPieces] = {};
};

}  // namespace

// Children, grandchildren and another thread of the first of them change and check what they shared, in two thirds of
// the memory that one of them needs.
CASE(families_at_random) {
  static Family family;
  static std::atomic<bool> stop{false};
  std::thread beside([] {
    for (std::uint64_t round = 1; !stop; ++round) {
      void* own = malloc(kMebibyte);
      fill(own, kMebibyte, round);
      CHECK_FILLED(own, kMebibyte, round);
      free(own);
    }
  });
  family.live(20261122, 0, 80);
  stop = true;
  beside.join();
}
