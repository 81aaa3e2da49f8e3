// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What C++ programs, their libraries and their threads do around allocation; ends of programs.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cases.hpp"

using namespace cases;

namespace {

// Before main: a constructor that allocates, and a destructor that finds what it left.
struct Early {
  Early() : text(100'000, 'e'), numbers{{1, "one"}, {2, "two"}} {}
  ~Early() {
    if (text != std::string(100'000, 'e') || numbers.at(2) != "two") failed(__FILE__, __LINE__, "destroyed whole");
  }
  std::string text;
  std::map<int, std::string> numbers;
} g_early;

struct PerThread {
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(5000);
  PerThread() { fill(words.data(), 40'000, 8); }
  ~PerThread() {
    if (first_wrong(words.data(), 40'000, 8) != -1) failed(__FILE__, __LINE__, "a thread's words are right");
  }
};
thread_local PerThread t_per_thread;

[[gnu::noinline]] void throws(int depth) {
  std::string on_the_way(1000, 'x');
  if (depth == 0) throw std::runtime_error(on_the_way);
  throws(depth - 1);
  CHECK(on_the_way.size() == 1000);
}

}  // namespace

CASE(static_constructors) {
  CHECK(g_early.text.size() == 100'000);
  push_out();
}

CASE(exceptions) {
  void* at = malloc(kLarge);
  fill(at, kLarge, 1);
  for (int i = 0; i < 100; ++i) {
    try {
      throws(20);
      CHECK(!"reached");
    } catch (const std::runtime_error& error) {
      CHECK(strlen(error.what()) == 1000);
    }
    if (i % 40 == 0) push_out();
  }
  CHECK_FILLED(at, kLarge, 1);
}

CASE(bad_alloc) {
  volatile std::size_t half = SIZE_MAX / 2 - 64;
  int caught = 0;
  const auto expect = [&](auto allocate) {
    try {
      allocate();
      CHECK(!"reached");
    } catch (const std::bad_alloc&) {
      ++caught;
    }
  };
  static char* volatile kept;  // or the compiler leaves out what is not used
  expect([&] { kept = new char[half]; });
  expect([&] { ::operator delete(::operator new(half)); });
  expect([&] { ::operator delete(::operator new(half, std::align_val_t{64}), std::align_val_t{64}); });
  expect([&] { std::vector<char> vector(half); });
  CHECK(::operator new(half, std::nothrow) == nullptr);
  CHECK(::operator new(half, std::align_val_t{64}, std::nothrow) == nullptr);
  static int asked;
  asked = 0;
  std::set_new_handler([] {
    if (++asked == 3) std::set_new_handler(nullptr);
  });
  expect([&] { kept = new char[half]; });
  CHECK(caught == 5 && asked == 3 && kept == nullptr);
  std::set_new_handler([] { throw std::bad_alloc(); });
  CHECK(::operator new(half, std::nothrow) == nullptr);
}

CASE(aligned_new) {
  struct alignas(256) Wide {
    std::uint64_t words[64];
  };
  std::vector<std::unique_ptr<Wide[]>> all;
  for (std::uint64_t i = 0; i < 9000; ++i) {
    all.push_back(std::make_unique<Wide[]>(20));
    CHECK(reinterpret_cast<std::uintptr_t>(all.back().get()) % 256 == 0);
    fill(all.back().get(), sizeof(Wide) * 20, i);
  }
  for (std::uint64_t i = 0; i < 9000; ++i) CHECK_FILLED(all[i].get(), sizeof(Wide) * 20, i);
}

CASE(thread_local_destructors) {
  for (int round = 0; round < 100; ++round) {
    std::thread one([] { CHECK(t_per_thread.words[3] == word(8, 3)); });
    std::thread two([] { CHECK(t_per_thread.words[4] == word(8, 4)); });
    if (round % 30 == 0) push_out();
    one.join();
    two.join();
  }
  CHECK(t_per_thread.words[5] == word(8, 5));
  push_out();
}

// A key's destructor allocates and frees when the thread is all but gone.
CASE(key_destructors) {
  static pthread_key_t key;
  static std::atomic<int> freed;
  freed = 0;
  CHECK(pthread_key_create(&key, [](void* value) {
          CHECK_FILLED(value, 3000, 4);
          free(value);
          free(malloc(500'000));
          ++freed;
        }) == 0);
  for (int i = 0; i < 200; ++i) {
    std::thread([] {
      void* value = malloc(3000);
      fill(value, 3000, 4);
      CHECK(pthread_setspecific(key, value) == 0);
    }).join();
    if (i % 60 == 0) push_out();
  }
  CHECK(freed == 200);
}

namespace {

// The kernel shows no memory of it any more.
void wait_for_the_end_of_the_main_thread() {
  char first = 0;
  while (first != '0') {
    const int file = open("/proc/self/statm", O_RDONLY);
    CHECK(file >= 0 && read(file, &first, 1) == 1);
    CHECK(close(file) == 0);
    sched_yield();
  }
}

// Left to the threads of a process whose main thread ends; the last of them ends the process. Under Farheap it stayed
// for ever, and no signal but SIGKILL ended it: the runtime's threads were left, which take none.
void end_before_the_threads() {
  static std::atomic<int> worked = 0;
  atexit([] { std::printf("the end, when %d threads have worked\n", worked.load()); });
  for (int i = 0; i < 3; ++i) {
    std::thread([] {
      wait_for_the_end_of_the_main_thread();
      void* at = malloc(kMebibyte);
      fill(at, kMebibyte, 1);
      CHECK_FILLED(at, kMebibyte, 1);
      free(at);
      ++worked;
    }).detach();
  }
  pthread_exit(nullptr);
}

}  // namespace

CASE(main_thread_ends_before_the_others) {
  push_out();
  end_before_the_threads();
}

// In a child the thread that forked is the main one.
CASE(main_thread_of_a_child_ends_before_the_others) {
  push_out();
  std::thread([] {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) end_before_the_threads();
    CHECK(status_of(child) == 0);
  }).join();
}

// The last words of a process whose main thread has ended fork. The child's thread was taken for one that waits for the
// last one, by its name, and cut off.
CASE(last_words_fork_after_the_end_of_the_main_thread) {
  push_out();
  std::thread(wait_for_the_end_of_the_main_thread).detach();
  atexit([] {
    static bool is_child = false;
    if (is_child) return;
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      is_child = true;
      std::thread([] {
        wait_for_the_end_of_the_main_thread();
        std::puts("the child's thread has worked");
      }).detach();
      pthread_exit(nullptr);
    }
    CHECK(status_of(child) == 0);
    std::puts("the end");
  });
  pthread_exit(nullptr);
}

CASE(paging_starts_after_the_end_of_the_main_thread) {
  atexit([] { std::puts("the end"); });
  std::thread([] {
    wait_for_the_end_of_the_main_thread();
    push_out();
    void* at = malloc(kMebibyte);
    fill(at, kMebibyte, 2);
    push_out();
    CHECK_FILLED(at, kMebibyte, 2);
    free(at);
  }).detach();
  pthread_exit(nullptr);
}

namespace {

struct Farewell {
  ~Farewell() { std::puts("what is local to the thread ends"); }
};
thread_local Farewell t_farewell;

}  // namespace

// Its destructors run to their end, also those of the second round, and it ends the process itself.
CASE(main_thread_ends_as_the_last) {
  push_out();
  atexit([] { std::puts("the end"); });
  (void)&t_farewell;
  static pthread_key_t key;
  CHECK(pthread_key_create(&key, [](void* round) {
          std::printf("destructor %s\n", static_cast<const char*>(round));
          if (strcmp(static_cast<const char*>(round), "one") == 0) (void)pthread_setspecific(key, "two");
        }) == 0);
  CHECK(pthread_setspecific(key, "one") == 0);
  std::thread([] {}).join();
  pthread_exit(nullptr);
}

CASE(cancelled_main_thread) {
  push_out();
  const pthread_t main_thread = pthread_self();
  std::thread([main_thread] {
    CHECK(pthread_cancel(main_thread) == 0);
    wait_for_the_end_of_the_main_thread();
    std::puts("one is left");
  }).detach();
  for (;;) pause();
}

CASE(detached_threads_at_exit) {
  for (int i = 0; i < 4; ++i) {
    std::thread([] {
      for (;;) {
        void* at = malloc(kMebibyte);
        fill(at, kMebibyte, 1);
        CHECK_FILLED(at, kMebibyte, 1);
        free(at);
      }
    }).detach();
  }
  push_out();
}

namespace {

using PluginCall = std::uint64_t (*)(std::size_t);

void* open_plugin(std::size_t number) {
  CHECK(g_count >= 1);
  (void)number;
  void* plugin = dlopen(g_arguments[0], RTLD_NOW);
  if (plugin == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  CHECK(plugin != nullptr);
  return plugin;
}

PluginCall call_of(void* plugin) {
  auto call = reinterpret_cast<PluginCall>(dlsym(plugin, "plugin_word"));
  CHECK(call != nullptr);
  return call;
}

}  // namespace

CASE(plugins) {
  void* plugin = open_plugin(0);
  const PluginCall call = call_of(plugin);
  push_out();
  for (std::size_t i = 0; i < 1000; ++i) CHECK(call(i) == word(12, i));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::size_t k = 0; k < 1000; ++k) CHECK(call(k) == word(12, k));
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(dlclose(plugin) == 0);
  push_out();
  plugin = open_plugin(1);
  CHECK(call_of(plugin)(7) == word(12, 7));
}

// The loader's own records are looked at whenever a thread starts, the runtime's threads included; and they were
// allocated by the loader, long ago.
CASE(plugins_then_forks_and_threads) {
  void* at = malloc(kLarge);
  const PluginCall call = call_of(open_plugin(0));
  for (std::uint64_t round = 0; round < 4; ++round) {
    fill(at, kLarge, round);
    std::vector<std::thread> threads;
    for (std::size_t k = 0; k < 3; ++k) {
      threads.emplace_back([&, k] {
        CHECK(call(k) == word(12, k));
        for (std::size_t i = k; i < kLarge / 8; i += 500) CHECK(static_cast<std::uint64_t*>(at)[i] == word(round, i));
      });
    }
    for (auto& thread : threads) thread.join();
    fill(at, kLarge, round);
    const int child = fork();
    if (child == 0) {
      CHECK(call(5) == word(12, 5));
      CHECK_FILLED(at, kLarge, round);
      _exit(0);
    }
    CHECK(status_of(child) == 0);
  }
}

// Such a plugin looks malloc() and free() up in the C library first: it freed what Farheap had allocated. (Debian's php
// loads all of its modules so.)
CASE(a_plugin_that_binds_deeply) {
  void* plugin = dlopen(g_arguments[0], RTLD_NOW | RTLD_DEEPBIND);
  CHECK(plugin != nullptr);
  auto release = reinterpret_cast<void (*)(void*)>(dlsym(plugin, "plugin_free"));
  CHECK(release != nullptr);
  void* large = std::malloc(kLarge);
  fill(large, kLarge, 1);
  release(std::malloc(100));
  CHECK_FILLED(large, kLarge, 1);
  release(large);
  CHECK(dlclose(plugin) == 0);
}

// Paging starts inside dlopen(): the plugin's constructor allocates much, and reads it. Nothing that brings pages may
// want the loader's lock (looking a function up, the first of a thread_local object).
CASE(paging_starts_in_a_plugin) {
  CHECK(setenv("PLUGIN_MEBIBYTES", "80", 1) == 0);
  const PluginCall call = call_of(open_plugin(0));
  CHECK(call(70'000) == word(12, 70'000));
  std::thread([&] { CHECK(call(80'000) == word(12, 80'000)); }).join();
}

// Coroutines: frames in the heap, frees of large pieces from there.
namespace {
ucontext_t g_main, g_far;
void run_far() {
  char local[30'000];
  for (std::uint64_t i = 0; i < 300; ++i) {
    fill(local, sizeof local, i);
    void* at = malloc(3 * kMebibyte);
    memset(at, 1, 3 * kMebibyte);
    free(at);
    swapcontext(&g_far, &g_main);
    CHECK_FILLED(local, sizeof local, i);
  }
}
}  // namespace

CASE(coroutines_on_stacks_from_the_heap) {
  constexpr std::size_t kStack = 128 << 10;
  CHECK(getcontext(&g_far) == 0);
  g_far.uc_stack.ss_sp = aligned_alloc(kPage, kStack);
  g_far.uc_stack.ss_size = kStack;
  g_far.uc_link = &g_main;
  makecontext(&g_far, run_far, 0);
  void* at = malloc(48 * kMebibyte);
  for (std::uint64_t i = 0; i < 300; ++i) {
    if (i % 10 == 0) fill(at, 48 * kMebibyte, i);
    swapcontext(&g_main, &g_far);
  }
}

CASE(exits_with_17) {
  push_out();
  std::printf("leaving\n");
  std::exit(17);
}
CASE(ends_by_abort) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  push_out();
  abort();
}
CASE(ends_by_signal) {
  push_out();
  raise(SIGTERM);
}
CASE(ends_by_fault) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  push_out();
  volatile std::uintptr_t nowhere = 16;
  *reinterpret_cast<volatile int*>(nowhere) = 1;
}
CASE(ends_by_uncaught_exception) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  push_out();
  throw std::runtime_error("nobody catches this");
}

// Calls execve on itself, with arguments and environment in memory that left.
CASE(runs_itself_again) {
  const char* round = getenv("ROUND");
  const int number = round == nullptr ? 0 : atoi(round);
  std::printf("round %d %s\n", number, g_count > 0 ? g_arguments[g_count - 1] : "");
  if (number == 4) return;
  char* next = strdup(("ROUND=" + std::to_string(number + 1)).c_str());
  std::vector<char*> environment{next, strdup("KEPT=yes")};
  for (char** one = environ; *one != nullptr; ++one) {
    if (strncmp(*one, "ROUND=", 6) != 0 && strncmp(*one, "KEPT=", 5) != 0) environment.push_back(strdup(*one));
  }
  environment.push_back(nullptr);
  std::vector<char*> arguments{strdup("preload_cases"), strdup("runs_itself_again"),
                               strdup(std::string(static_cast<std::size_t>(1000 * number), 'a').c_str()), nullptr};
  CHECK(number == 0 || strcmp(getenv("KEPT"), "yes") == 0);
  push_out();
  std::fflush(stdout);
  execve("/proc/self/exe", arguments.data(), environment.data());
  CHECK(!"reached");
}
