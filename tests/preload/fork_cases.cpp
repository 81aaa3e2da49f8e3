// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A child sees the memory as of the fork and writes its own copy; nobody sees a byte of the other's.
#include <errno.h>
#include <linux/sched.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "cases.hpp"

extern char** environ;

using namespace cases;

namespace {

constexpr std::size_t kShared = 48 * kMebibyte;

// What both sides of a fork do: find what was there, write something else, find that.
void verify_and_rewrite(void* at, std::size_t bytes, std::uint64_t was, std::uint64_t now) {
  CHECK_FILLED(at, bytes, was);
  fill(at, bytes, now);
  CHECK_FILLED(at, bytes, now);
}

template <class Body>
int in_child(Body body) {
  fflush(stdout);
  const int child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    body();
    _exit(0);
  }
  return child;
}

}  // namespace

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

// As many as the budget can hold: each process keeps 6.5 to 7.5 MiB, whatever it is (docs/limits.md).
CASE(many_children_at_once) {
  void* at = malloc(kShared);
  fill(at, kShared, 1);
  int children[3];
  for (std::uint64_t i = 0; i < std::size(children); ++i) {
    children[i] = in_child([&] { verify_and_rewrite(at, kShared, 1, 10 + i); });
  }
  verify_and_rewrite(at, kShared, 1, 5);
  for (int child : children) CHECK(status_of(child) == 0);
  CHECK_FILLED(at, kShared, 5);
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
// another place after each of these forks, until there is none left. More children than a family has names for at once
// (128); not many more, because each costs a sweep of 40 MiB out and in again.
CASE(hundreds_of_children_one_after_another) {
  constexpr std::size_t kBytes = 2 * kMebibyte;
  void* at = malloc(kBytes);
  void* sweep = malloc(40 * kMebibyte);
  for (std::uint64_t i = 0; i < 200; ++i) {
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

namespace {

struct ForChild {
  void* at;
  std::uint64_t was, now;
};

int rewrite_in_child(void* data) {
  const auto& mine = *static_cast<const ForChild*>(data);
  verify_and_rewrite(mine.at, kShared, mine.was, mine.now);
  return 17;
}

// Not through the C library at all.
long fork_by_hand() {
  long result = SYS_fork;
  asm volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
  return result;
}

}  // namespace

// The C library runs no handlers for these; in the child, pages that had left read as zeros.
CASE(forks_without_handlers) {
  void* at = malloc(kShared);
  fill(at, kShared, 1);
  std::uint64_t was = 1;
  const auto beside = [&](long child) {
    CHECK(child >= 0);
    if (child == 0) _exit(rewrite_in_child(new ForChild{at, was, was + 1}));
    verify_and_rewrite(at, kShared, was, was + 2);
    was += 2;
    CHECK(status_of(static_cast<int>(child)) == 17);
  };
  clone_args args{};
  args.exit_signal = SIGCHLD;
  beside(_Fork());
  beside(syscall(SYS_fork));
  beside(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  beside(syscall(SYS_clone3, &args, sizeof args));
  beside(fork());
  CHECK_FILLED(at, kShared, was);
}

CASE(clone_with_a_stack_in_the_heap) {
  constexpr std::size_t kStack = 512 << 10;
  auto* stack = static_cast<std::byte*>(malloc(kStack));
  fill(stack, kStack, 5);
  void* at = malloc(kShared);
  fill(at, kShared, 1);  // by now the stack has left
  for (int i = 0; i < 3; ++i) {
    auto* data = new ForChild{at, 1, 2};
    const int child = clone(rewrite_in_child, stack + kStack, SIGCHLD, data);
    CHECK(child > 0);
    CHECK_FILLED(at, kShared, 1);
    CHECK(status_of(child) == 17);
    CHECK_FILLED(stack, kStack - 64, 5);
  }
}

// It may end, but it must not go on with zeros.
CASE(a_fork_that_nobody_sees_is_no_silent_loss) {
  void* at = malloc(kLarge);
  fill(at, kLarge, 1);
  const long child = fork_by_hand();
  CHECK(child >= 0);
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    _exit(first_wrong(at, kLarge, 1) == -1 ? 17 : 18);
  }
  const int status = status_of(static_cast<int>(child));
  CHECK(status == 17 || status == 128 + SIGSEGV);
  CHECK_FILLED(at, kLarge, 1);
  const int seen = in_child([&] { CHECK_FILLED(at, kLarge, 1); });
  CHECK(status_of(seen) == 0);
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
