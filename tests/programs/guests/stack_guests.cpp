// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs with large stacks, many stacks, and jumps between them. The stacks of threads are plain memory that the
// budget counts; those that a program takes from the heap are paged like all of it.
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "guests.hpp"

using namespace guests;

namespace {

const Pieces* g_data = nullptr;

// Who samples memory from outside sees the peak, however busy the machine is.
void stay_a_while() { usleep(100'000); }

// Each level keeps a frame of 8 KiB full, and looks at data that left.
[[gnu::noinline]] std::uint64_t descend(std::size_t left, Random& random) {
  std::uint64_t frame[1024];
  fill(frame, sizeof frame, left);
  g_data->check_a_word(random);
  if (left == 0) stay_a_while();
  const std::uint64_t below = left == 0 ? 0 : descend(left - 1, random);
  CHECK_FILLED(frame, sizeof frame, left);
  return digest(frame, sizeof frame, below);
}

[[gnu::noinline]] std::uint64_t in_one_large_frame(std::size_t bytes, Random& random) {
  void* frame = alloca(bytes);
  fill(frame, bytes, 5);
  stay_a_while();
  for (int i = 0; i < 1000; ++i) g_data->check_a_word(random);
  CHECK_FILLED(frame, bytes, 5);
  return digest(frame, bytes);
}

std::size_t g_stack_bytes = 0;

// By turns small frames and one large.
void use_the_stack() {
  Random random(7);
  const std::size_t used = g_stack_bytes - 64 * kPage;
  print_digest("frames", descend(used / 8400, random));
  print_digest("one frame", in_one_large_frame(used, random));
}

// Seven parts of the heap to one of stack, or what the driver says.
std::size_t stack_bytes() {
  return g_count >= 2 ? std::strtoull(g_arguments[1], nullptr, 10) * kMebibyte : data_bytes() / 8;
}

}  // namespace

// On the stack that the kernel gave: the driver has set `ulimit -s`.
CASE(deep_recursion) {
  g_stack_bytes = stack_bytes();
  const Pieces data(data_bytes() - g_stack_bytes, 6);
  g_data = &data;
  use_the_stack();
  data.check_all();
}

CASE(deep_recursion_in_a_thread) {
  g_stack_bytes = stack_bytes();
  const Pieces data(data_bytes() - g_stack_bytes, 6);
  g_data = &data;
  pthread_attr_t large;
  pthread_t thread;
  CHECK(pthread_attr_init(&large) == 0 && pthread_attr_setstacksize(&large, g_stack_bytes) == 0);
  const auto body = [](void*) -> void* {
    use_the_stack();
    return nullptr;
  };
  CHECK(pthread_create(&thread, &large, body, nullptr) == 0 && pthread_join(thread, nullptr) == 0);
  CHECK(pthread_attr_destroy(&large) == 0);
  data.check_all();
}

// A thread that is given its stack from the heap; it leaves and comes back like everything there.
CASE(threads_on_stacks_from_the_heap) {
  constexpr std::size_t kStack = 4 * kMebibyte;
  g_stack_bytes = kStack;
  const Pieces data(data_bytes() - 4 * kStack, 6);
  g_data = &data;
  void* stacks[4];
  pthread_t threads[4];
  const auto body = [](void* number) -> void* {
    Random random(reinterpret_cast<std::uintptr_t>(number));
    (void)descend((kStack - 64 * kPage) / 8400, random);
    return reinterpret_cast<void*>(in_one_large_frame(kStack - 64 * kPage, random));
  };
  for (int round = 0; round < 3; ++round) {
    for (std::uintptr_t i = 0; i < 4; ++i) {
      if (round == 0) stacks[i] = aligned_alloc(kPage, kStack);
      pthread_attr_t own;
      CHECK(pthread_attr_init(&own) == 0 && pthread_attr_setstack(&own, stacks[i], kStack) == 0);
      CHECK(pthread_create(&threads[i], &own, body, reinterpret_cast<void*>(i + 1)) == 0);
      CHECK(pthread_attr_destroy(&own) == 0);
    }
    for (pthread_t thread : threads) {
      void* result = nullptr;
      CHECK(pthread_join(thread, &result) == 0);
      print_digest("thread", reinterpret_cast<std::uintptr_t>(result));
    }
  }
  data.check_all();
}

namespace {

constexpr std::size_t kCoroutineStack = 256 << 10;

struct Coroutine {
  ucontext_t here{};
  std::uint64_t number = 0, sum = 0;
  void* stack = nullptr;
};
ucontext_t g_scheduler;
Coroutine* g_running = nullptr;

[[gnu::noinline]] void yield_now() { swapcontext(&g_running->here, &g_scheduler); }

// A frame that stays alive over several switches, with an exception on the way out.
[[gnu::noinline]] void work_and_throw(Coroutine& self, std::uint64_t round) {
  std::uint64_t frame[16'000];
  std::string text(500, static_cast<char>('a' + round % 26));
  fill(frame, sizeof frame, self.number * 100 + round);
  yield_now();
  CHECK_FILLED(frame, sizeof frame, self.number * 100 + round);
  self.sum = digest(frame, sizeof frame, self.sum);
  throw std::runtime_error(text);
}

void run_coroutine() {
  Coroutine& self = *g_running;
  for (std::uint64_t round = 0;; ++round) {
    std::string caught;
    try {
      work_and_throw(self, round);
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    yield_now();  // not from inside of the handler: what is being handled belongs to the thread
    self.sum = digest(caught.data(), caught.size(), self.sum);
  }
}

}  // namespace

namespace {

std::unique_ptr<Coroutine> make_coroutine(std::size_t number) {
  auto made = std::make_unique<Coroutine>();
  made->number = number;
  made->stack = aligned_alloc(kPage, kCoroutineStack);
  CHECK(made->stack != nullptr && getcontext(&made->here) == 0);
  made->here.uc_stack.ss_sp = made->stack;
  made->here.uc_stack.ss_size = kCoroutineStack;
  made->here.uc_link = &g_scheduler;
  makecontext(&made->here, run_coroutine, 0);
  return made;
}

}  // namespace

// As many stacks as fill the data, each in turn and at random.
CASE(coroutines_by_the_hundred) {
  std::vector<std::unique_ptr<Coroutine>> all;
  for (std::size_t i = 0; i < data_bytes() / (128 << 10); ++i) all.push_back(make_coroutine(i));
  Random random(8);
  for (std::size_t i = 0; i < 2 * all.size(); ++i) {
    g_running = all[i < all.size() ? i : random.below(all.size())].get();
    CHECK(swapcontext(&g_scheduler, &g_running->here) == 0);
  }
  std::uint64_t sum = 0;
  for (const auto& one : all) sum = digest(&one->sum, sizeof one->sum, sum);
  print_digest("coroutines", sum);
}

namespace {

// An interpreter's way of handling errors: the places to go back to are in the heap, among its data.
constexpr std::size_t kDepth = 200;
jmp_buf* g_places[kDepth];
int g_jumps_left = 0;
std::uint64_t g_sum = 0;

// The deepest frame jumps back to any of those above, which then descends anew.
[[gnu::noinline]] void descend_and_jump(std::size_t depth, Random& random) {
  std::uint64_t frame[512];
  fill(frame, sizeof frame, depth);
  (void)setjmp(*g_places[depth]);
  CHECK_FILLED(frame, sizeof frame, depth);
  if (g_jumps_left == 0) return;
  g_data->check_a_word(random);
  if (depth + 1 < kDepth) {
    descend_and_jump(depth + 1, random);
    return;
  }
  --g_jumps_left;
  const std::size_t to = random.below(kDepth);
  g_sum = digest(&to, sizeof to, g_sum);
  longjmp(*g_places[to], 1);
}

}  // namespace

CASE(jumps_over_frames) {
  const Pieces data(data_bytes() / 2, 10);
  for (auto& place : g_places) place = static_cast<jmp_buf*>(malloc(sizeof(jmp_buf) + Pieces::kPiece / 16));
  const Pieces more(data_bytes() / 2, 12);
  g_data = &data;
  g_jumps_left = 200;
  Random random(11);
  descend_and_jump(0, random);
  data.check_all();
  more.check_all();
  print_digest("jumps", g_sum);
}
