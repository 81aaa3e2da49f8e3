// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A child sees the memory as of the fork and writes its own copy; nobody sees a byte of the other's.
#include <errno.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "forks.hpp"

extern char** environ;

using namespace cases;

CASE(fork_parent_and_child_rewrite) {
  void* at = malloc(kShared);
  fill(at, kShared, 1);
  const int child = in_child([&] { verify_and_rewrite(at, kShared, 1, 2); });
  verify_and_rewrite(at, kShared, 1, 3);
  CHECK(status_of(child) == 0);
  CHECK_FILLED(at, kShared, 3);
}

CASE(twenty_forks_in_a_row) {
  void* at = malloc(kShared);
  fill(at, kShared, 0);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const int child = in_child([&] {
      CHECK(*(static_cast<std::uint64_t*>(at) + i * 100'000) == word(i, i * 100'000));
      if (i % 5 == 0) verify_and_rewrite(at, kShared, i, 99);
    });
    verify_and_rewrite(at, kShared, i, i + 1);
    CHECK(status_of(child) == 0);
  }
}

// The runtime read a number in the child before pages could come in, and asked the thread's locale how.
CASE(fork_with_a_locale_in_the_heap) {
  const locale_t before = uselocale(newlocale(LC_ALL_MASK, "C.UTF-8", nullptr));
  push_out();
  push_out();
  CHECK(status_of(in_child([] { CHECK(strtol("17", nullptr, 10) == 17); })) == 0);
  const locale_t mine = uselocale(before);
  freelocale(mine);
}

// The child's own handlers are new threads, and hung in the C library.
CASE(fork_with_the_global_locale_in_the_heap) {
  CHECK(setlocale(LC_ALL, "C.UTF-8") != nullptr);
  void* at = aligned_alloc(kPage, kMebibyte);
  fill(at, kMebibyte, 1);
  push_out();
  push_out();
  CHECK(status_of(in_child([&] { CHECK_FILLED(at, kMebibyte, 1); })) == 0);
  CHECK(setlocale(LC_ALL, "C") != nullptr);
  free(at);
}

// The kernel would wipe what is in memory, and the rest would come back from the store.
CASE(wiping_on_fork_is_refused) {
  void* at = aligned_alloc(kPage, kMebibyte);
  fill(at, kMebibyte, 1);
  push_out();
  if (madvise(at, kMebibyte, MADV_WIPEONFORK) == 0) {
    CHECK(status_of(in_child([&] { CHECK(*static_cast<char*>(at) == 0); })) == 0);
  } else {
    CHECK(errno == EINVAL);
  }
  CHECK_FILLED(at, kMebibyte, 1);
}

CASE(fork_while_threads_allocate_and_page) {
  static std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::uint64_t number = 0; number < 3; ++number) {
    threads.emplace_back([number] {
      constexpr std::size_t kPieces = 20, kPiece = kMebibyte;
      void* pieces[kPieces] = {};
      for (std::uint64_t round = 0; !stop; ++round) {
        const std::size_t one = round % kPieces;
        if (pieces[one] != nullptr) CHECK_FILLED(pieces[one], kPiece, number * 1'000'000 + round - kPieces);
        free(pieces[one]);
        pieces[one] = malloc(kPiece);
        fill(pieces[one], kPiece, number * 1'000'000 + round);
      }
      for (void* piece : pieces) free(piece);
    });
  }
  constexpr std::size_t kMine = 16 * kMebibyte;
  void* at = malloc(kMine);
  fill(at, kMine, 0);
  for (std::uint64_t i = 0; i < 12; ++i) {
    const int child = in_child([&] {
      verify_and_rewrite(at, kMine, i, 1000 + i);
      void* own = malloc(4 * kMebibyte);
      fill(own, 4 * kMebibyte, 7);
      CHECK_FILLED(own, 4 * kMebibyte, 7);
      std::thread([&] { CHECK_FILLED(own, 4 * kMebibyte, 7); }).join();
      free(own);
    });
    verify_and_rewrite(at, kMine, i, i + 1);
    CHECK(status_of(child) == 0);
  }
  stop = true;
  for (auto& thread : threads) thread.join();
}

// Paging starts in the middle of a storm of forks.
CASE(fork_while_paging_starts) {
  for (int round = 0; round < 6; ++round) {
    const int runner = in_child([&] {
      static std::atomic<bool> stop{false};
      std::thread forker([] {
        while (!stop) CHECK(status_of(in_child([] { free(malloc(100'000)); })) == 0);
      });
      std::vector<void*> pieces;
      for (std::uint64_t i = 0; i < 60; ++i) {
        pieces.push_back(malloc(kMebibyte));
        fill(pieces.back(), kMebibyte, i);
      }
      for (std::uint64_t i = 0; i < 60; ++i) CHECK_FILLED(pieces[i], kMebibyte, i);
      stop = true;
      forker.join();
    });
    CHECK(status_of(runner) == 0);
  }
}

CASE(pages_read_after_a_fork_can_leave) {
  // All that is in memory was shared once; the parent only reads on.
  void* at = malloc(kLarge);
  fill(at, kLarge, 1);
  CHECK(status_of(in_child([] {})) == 0);
  for (int round = 0; round < 3; ++round) CHECK_FILLED(at, kLarge, 1);
}

CASE(fork_and_exec) {
  void* at = malloc(kShared);
  fill(at, kShared, 1);
  for (int i = 0; i < 3; ++i) {
    fflush(stdout);
    const int child = fork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", "echo a shell; exit 7", nullptr);
      _exit(9);
    }
    CHECK(status_of(child) == 7);
    CHECK_FILLED(at, kShared, 1);
  }
}

CASE(vfork_spawn_and_system) {
  void* at = malloc(kShared);
  fill(at, kShared, 1);
  char* text = strdup("exit 5");
  push_out();
  const int child = vfork();  // NOLINT(bugprone-unsafe-functions): it is what is tested
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", text, nullptr);
    _exit(9);
  }
  CHECK(status_of(child) == 5);
  // Arguments and environment lie in pages that left.
  char* arguments[] = {strdup("sh"), strdup("-c"), strdup("test \"$SPOKEN\" = word && exit 6"), nullptr};
  CHECK(setenv("SPOKEN", "word", 1) == 0);
  push_out();
  pid_t spawned;
  CHECK(posix_spawn(&spawned, "/bin/sh", nullptr, nullptr, arguments, environ) == 0);
  CHECK(status_of(spawned) == 6);
  push_out();
  CHECK(WEXITSTATUS(system("exit 8")) == 8);
  FILE* pipe = popen("echo through a pipe", "r");
  char line[100] = "";
  CHECK(fgets(line, sizeof line, pipe) != nullptr && strcmp(line, "through a pipe\n") == 0);
  CHECK(pclose(pipe) == 0);
  CHECK_FILLED(at, kShared, 1);
}

CASE(streams_in_pages_that_left_when_forking) {
  std::vector<FILE*> streams;
  for (int i = 0; i < 40; ++i) {
    streams.push_back(fopen("/dev/null", "w"));
    CHECK(streams.back() != nullptr);
    free(malloc(200'000));
    CHECK(fprintf(streams.back(), "%d", i) > 0);
  }
  std::thread([] {}).join();
  for (int i = 0; i < 3; ++i) {
    push_out();
    CHECK(status_of(in_child([&] {
            for (FILE* stream : streams) CHECK(fprintf(stream, "x") == 1 && fflush(stream) == 0);
          })) == 0);
  }
  for (FILE* stream : streams) CHECK(fclose(stream) == 0);
}

// The C library's own records that fork() looks at are memory of the heap, too.
CASE(fork_after_looking_up_names) {
  CHECK(getpwnam("root") != nullptr && getservbyname("no such service", "tcp") == nullptr);
  std::atomic<bool> stop{false};
  std::thread idle([&] { stop.wait(false); });  // with one thread fork() need not look
  for (int i = 0; i < 3; ++i) {
    push_out();
    CHECK(status_of(in_child([] { CHECK(getpwnam("root") != nullptr); })) == 0);
  }
  stop = true;
  stop.notify_all();
  idle.join();
}

namespace {
int* g_before = nullptr;
void count_before() { ++*g_before; }
void count_after() { g_before[kPage / 4] += 2; }
}  // namespace

// Handlers of the program that touch memory which left.
CASE(handlers_around_a_fork) {
  g_before = static_cast<int*>(aligned_alloc(kPage, 2 * kPage));
  memset(g_before, 0, 2 * kPage);
  CHECK(pthread_atfork(count_before, count_after, count_after) == 0);
  for (int i = 1; i <= 3; ++i) {
    push_out();
    CHECK(status_of(in_child([&] { CHECK(g_before[0] == i && g_before[kPage / 4] == 2 * i); })) == 0);
    CHECK(g_before[0] == i && g_before[kPage / 4] == 2 * i);
  }
}

// The stack of the thread that forks is memory of the heap.
CASE(fork_on_a_stack_from_the_heap) {
  constexpr std::size_t kStack = 512 << 10;
  void* stack = aligned_alloc(kPage, kStack);
  memset(stack, 1, kStack);
  void* idle_stack = aligned_alloc(kPage, kStack);
  memset(idle_stack, 1, kStack);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  static int ends[2];
  CHECK(pipe(ends) == 0);
  pthread_t idle, thread;
  const auto wait_for_a_byte = [](void*) -> void* {
    char one;
    return read(ends[0], &one, 1) == 1 ? &ends : nullptr;
  };
  const auto fork_from_here = [](void*) -> void* {
    char local[20'000];
    fill(local, sizeof local, 4);
    for (int i = 0; i < 3; ++i) {
      push_out();
      const int child = in_child([&] {
        CHECK_FILLED(local, sizeof local, 4);
        push_out();
        CHECK_FILLED(local, sizeof local, 4);
      });
      CHECK(status_of(child) == 0);
      CHECK_FILLED(local, sizeof local, 4);
    }
    return nullptr;
  };
  CHECK(pthread_attr_setstack(&attributes, idle_stack, kStack) == 0);
  CHECK(pthread_create(&idle, &attributes, wait_for_a_byte, nullptr) == 0);
  CHECK(pthread_attr_setstack(&attributes, stack, kStack) == 0);
  CHECK(pthread_create(&thread, &attributes, fork_from_here, nullptr) == 0);
  CHECK(pthread_join(thread, nullptr) == 0);
  CHECK(write(ends[1], "x", 1) == 1);
  void* result = nullptr;
  CHECK(pthread_join(idle, &result) == 0 && result != nullptr);
}

CASE(fork_with_memory_from_sbrk) {
  void* at = sbrk(kShared);
  CHECK(at != reinterpret_cast<void*>(-1));
  fill(at, kShared, 1);
  const int child = in_child([&] {
    verify_and_rewrite(at, kShared, 1, 2);
    void* more = sbrk(kMebibyte);
    CHECK(more == static_cast<std::byte*>(at) + kShared && all_zero(more, kMebibyte));
  });
  verify_and_rewrite(at, kShared, 1, 3);
  CHECK(status_of(child) == 0);
  CHECK(sbrk(0) == static_cast<std::byte*>(at) + kShared);
}

// The child could not have a userfaultfd, which the parent could when it began to page.
CASE(fork_after_giving_up_its_rights) {
  if (geteuid() != 0 || access("/dev/userfaultfd", R_OK | W_OK) != 0) {
    fprintf(stderr, "NOT TESTED: only root, with /dev/userfaultfd, has rights to give up\n");
    return;
  }
  void* at = malloc(kShared);
  fill(at, kShared, 1);
  CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
  for (std::uint64_t i = 0; i < 3; ++i) {
    CHECK(status_of(in_child([&] {
            verify_and_rewrite(at, kShared, 1, 2 + i);
            CHECK(status_of(in_child([&] { CHECK_FILLED(at, kShared, 2 + i); })) == 0);
          })) == 0);
  }
  CHECK_FILLED(at, kShared, 1);
}
