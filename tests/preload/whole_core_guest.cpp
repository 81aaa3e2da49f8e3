// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fills 96 MiB of words that can be told from each other, looks at some of them again, forks if it is told to (the
// child changes what it shares with its parent), and aborts. Or waits, or goes on changing the second half.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// What a debugger is asked for.
volatile std::uint64_t* g_words;
std::size_t g_count = (96u << 20) / sizeof(std::uint64_t);
std::uint64_t g_factor = 0x9E3779B97F4A7C15u;

namespace {

void fill(std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) g_words[i] = (i + 1) * g_factor;
}

// A page of zeros, now and then, is a page as well.
void clear_some_pages() {
  for (std::size_t i = 0; i < g_count; i += 512 * 100) std::memset(const_cast<std::uint64_t*>(g_words + i), 0, 4096);
}

}  // namespace

int main(int count, char** words) {
  g_words = static_cast<std::uint64_t*>(std::malloc(g_count * sizeof(std::uint64_t)));
  g_words = reinterpret_cast<std::uint64_t*>((reinterpret_cast<std::uintptr_t>(g_words) + 4095) / 4096 * 4096);
  g_count -= 512;
  fill(0, g_count);
  clear_some_pages();
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < g_count; i += 512 * 7) sum += g_words[i];
  g_words[1] = sum;
  if (count > 1 && std::strcmp(words[1], "wait") == 0) {
    dprintf(1, "ready %d\n", getpid());
    for (;;) pause();
  }
  if (count > 1 && std::strcmp(words[1], "write") == 0) {
    dprintf(1, "ready %d\n", getpid());
    for (;;) {
      for (std::size_t i = g_count / 2; i < g_count; ++i) g_words[i] = g_words[i] + 1;
    }
  }
  if (count > 1 && std::strcmp(words[1], "fork") == 0) {
    const pid_t child = fork();
    if (child != 0) {
      int status = 0;
      waitpid(child, &status, 0);
      return 128 + WTERMSIG(status);
    }
    g_factor += 2;
    fill(0, g_count / 2);
    clear_some_pages();
    g_words[1] = sum;
  }
  std::abort();
}
