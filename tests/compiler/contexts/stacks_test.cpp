// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What lies on the stacks of a thread is read, wherever the thread is just now.
#include "stacks.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstring>
#include <thread>
#include <vector>

namespace farheap::contexts {
namespace {

// Looks for a word without having it on the stack itself.
class Search final : public LiveWords::Take {
 public:
  void look_for(std::uintptr_t word) { hidden_ = ~word; }
  void take(const std::uintptr_t* words, std::size_t count) override {
    words_read += count;
    for (std::size_t i = 0; i < count; ++i) found |= ~words[i] == hidden_;
  }
  bool found = false;
  std::size_t words_read = 0;

 private:
  std::uintptr_t hidden_ = 0;
};

std::uintptr_t secret(std::uintptr_t seed) { return seed * 0x9E3779B97F4A7C15u ^ 0x5A5A; }

Search* g_search = nullptr;
const void* g_home = nullptr;
bool g_is_read = false;

__attribute__((noinline)) void read_now() { g_is_read = OwnStacks(g_home).read(*g_search); }

// With a word in a local variable.
__attribute__((noinline)) void read_below(std::uintptr_t seed, void (*then)()) {
  volatile std::uintptr_t local = secret(seed);
  then();
  EXPECT_EQ(local, secret(seed));
}

class Stacks : public ::testing::Test {
 protected:
  Stacks() {
    g_search = &search_;
    g_home = __builtin_frame_address(0);
  }
  Search search_;
};

TEST_F(Stacks, HaveTheLocalsOfAllFrames) {
  search_.look_for(secret(1));
  read_below(1, read_now);
  EXPECT_TRUE(g_is_read);
  EXPECT_TRUE(search_.found);
  EXPECT_GT(search_.words_read, 10u);
  search_.found = false;
  search_.look_for(secret(2));
  read_now();
  EXPECT_FALSE(search_.found) << "nobody has it";
}

#if defined(__x86_64__)
TEST_F(Stacks, HaveWhatCallsKeepInRegisters) {
  search_.look_for(secret(3));
  const std::uintptr_t hidden = ~secret(3);
  // In a register that calls keep, and nowhere else.
  asm volatile(
      "mov %[hidden], %%rbx\n\t"
      "not %%rbx\n\t"
      "call *%[read]\n\t"
      :
      : [hidden] "r"(hidden), [read] "r"(&read_now)
      : "rbx", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
        "xmm5", "xmm6", "xmm7", "memory", "cc");
  EXPECT_TRUE(search_.found);
}
#endif

TEST_F(Stacks, OfAThreadAreItsOwn) {
  search_.look_for(secret(4));
  std::thread([this] {
    g_home = __builtin_frame_address(0);
    read_below(4, read_now);
    EXPECT_TRUE(g_is_read);
    EXPECT_TRUE(search_.found);
    EXPECT_LT(search_.words_read, std::size_t{1} << 20) << "not what is behind the stack";
  }).join();
}

TEST_F(Stacks, OfASignalHandlerWithAStackOfItsOwnAreBoth) {
  std::vector<std::byte> room(std::size_t{64} << 10);
  stack_t alternate{}, before{};
  alternate.ss_sp = room.data();
  alternate.ss_size = room.size();
  ASSERT_EQ(sigaltstack(&alternate, &before), 0);
  struct sigaction action{}, old{};
  action.sa_handler = [](int) { read_below(6, read_now); };
  action.sa_flags = SA_ONSTACK;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &old), 0);
  for (const std::uintptr_t seed : {5, 6}) {
    search_.found = false;
    search_.look_for(secret(seed));
    read_below(5, [] { raise(SIGUSR1); });
    EXPECT_TRUE(g_is_read);
    EXPECT_TRUE(search_.found) << seed;
  }
  sigaction(SIGUSR1, &old, nullptr);
  sigaltstack(&before, nullptr);
}

TEST_F(Stacks, OfACoroutineAreItsOwnAndThatOfWhoRunsIt) {
  static ucontext_t main_context, coroutine;
  std::vector<std::byte> room(std::size_t{64} << 10);
  for (const std::uintptr_t seed : {7, 8}) {
    search_.found = false;
    search_.look_for(secret(seed));
    ASSERT_EQ(getcontext(&coroutine), 0);
    coroutine.uc_stack.ss_sp = room.data();
    coroutine.uc_stack.ss_size = room.size();
    coroutine.uc_link = &main_context;
    makecontext(&coroutine, +[] { read_below(8, read_now); }, 0);
    read_below(7, [] { swapcontext(&main_context, &coroutine); });
    EXPECT_TRUE(g_is_read);
    EXPECT_TRUE(search_.found) << seed;
  }
}

}  // namespace
}  // namespace farheap::contexts
