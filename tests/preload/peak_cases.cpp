// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that stay plain, and whose largest use comes long after they were given their memory.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.hpp"

using namespace cases;

namespace {

struct Pipe {
  int ends[2];
  Pipe() { CHECK(pipe(ends) == 0); }
  void say() const { CHECK(write(ends[1], "+", 1) == 1); }
  void hear() const {
    char got;
    CHECK(read(ends[0], &got, 1) == 1);
  }
};

// Forks; in the child it gets and touches 48 MiB when told to, says so, and waits to be let go.
int start_child(const Pipe& told, const Pipe& done, const Pipe& let_go) {
  fflush(stdout);
  const int child = fork();
  CHECK(child >= 0);
  if (child != 0) return child;
  void* at = malloc(kLarge / 2);
  told.hear();
  fill(at, kLarge / 2, 1);
  done.say();
  let_go.hear();
  _exit(0);
}

}  // namespace

CASE(peak_of_memory_touched_late) { fill(malloc(kLarge), kLarge, 1); }

CASE(peak_of_memory_freed_again) {
  void* at = malloc(kLarge);
  fill(at, kLarge, 1);
  free(at);
}

CASE(peak_when_leaving_at_once) {
  fill(malloc(kLarge), kLarge, 1);
  printf("peak_when_leaving_at_once: as it should be\n");
  fflush(stdout);
  _exit(5);
}

CASE(peak_when_leaving_quickly) {
  fill(malloc(kLarge), kLarge, 1);
  fflush(stdout);
  quick_exit(6);
}

// Two at once, of which neither looks while the other has most.
CASE(peak_of_two_children_at_once) {
  Pipe told, done, let_go;
  const int first = start_child(told, done, let_go);
  const int second = start_child(told, done, let_go);
  told.say();
  told.say();
  done.hear();
  done.hear();
  let_go.say();
  CHECK(wait(nullptr) > 0);
  let_go.say();
  CHECK(wait(nullptr) > 0);
  CHECK(first != second);
}

// What parent and child share is there once.
CASE(peak_of_a_child_that_only_looks) {
  void* at = malloc(kLarge);
  fill(at, kLarge, 1);
  fflush(stdout);
  for (int i = 0; i < 3; ++i) {
    const int child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      CHECK_FILLED(at, kLarge, 1);
      _exit(0);
    }
    CHECK(status_of(child) == 0);
  }
}

CASE(peak_of_a_child_that_writes_all) {
  void* at = malloc(kLarge);
  fill(at, kLarge, 1);
  fflush(stdout);
  const int child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    fill(at, kLarge, 2);
    _exit(0);
  }
  CHECK(status_of(child) == 0);
}

// Addresses that are reserved and not opened are no memory, and no reason to page.
CASE(peak_beside_large_reservations) {
  constexpr std::size_t kGibibyte = 1024 * kMebibyte;
  for (int i = 0; i < 3; ++i) {
    void* at = mmap(nullptr, 60 * kGibibyte, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(at != MAP_FAILED && mprotect(at, 32 * kMebibyte, PROT_READ | PROT_WRITE) == 0);
    fill(at, 32 * kMebibyte, 1);
  }
}
