// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cases.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace cases {

int g_count = 0;
char** g_arguments = nullptr;

namespace {
struct Entry {
  const char* name;
  Body body;
};
Entry g_cases[200];
int g_cases_count = 0;
}  // namespace

Case::Case(const char* name, Body body) { g_cases[g_cases_count++] = {name, body}; }

void failed(const char* file, int line, const char* what) {
  char text[512];
  const int size = std::snprintf(text, sizeof text, "%s:%d: not so: %s (process %d)\n", file, line, what, getpid());
  if (write(STDERR_FILENO, text, static_cast<std::size_t>(size)) < 0) _exit(4);
  _exit(3);
}

std::uint64_t word(std::uint64_t seed, std::size_t index) {
  std::uint64_t x = (seed * 0x9e3779b97f4a7c15) ^ (index + 1) * 0xbf58476d1ce4e5b9;
  x ^= x >> 29;
  return x * 0x94d049bb133111eb | 1;
}

void fill(void* at, std::size_t bytes, std::uint64_t seed) {
  auto* words = static_cast<std::uint64_t*>(at);
  for (std::size_t i = 0; i < bytes / 8; ++i) words[i] = word(seed, i);
}

long first_wrong(const void* at, std::size_t bytes, std::uint64_t seed) {
  const auto* words = static_cast<const std::uint64_t*>(at);
  for (std::size_t i = 0; i < bytes / 8; ++i) {
    if (words[i] == word(seed, i)) continue;
    std::fprintf(stderr, "word %zu of %zu at %p is %#llx, not %#llx (seed %llu)\n", i, bytes / 8,
                 static_cast<const void*>(words + i), static_cast<unsigned long long>(words[i]),
                 static_cast<unsigned long long>(word(seed, i)), static_cast<unsigned long long>(seed));
    return static_cast<long>(i);
  }
  return -1;
}

bool all_zero(const void* at, std::size_t bytes) {
  const auto* chars = static_cast<const unsigned char*>(at);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (chars[i] != 0) return false;
  }
  return true;
}

void push_out() {
  auto* sweep = static_cast<volatile char*>(std::malloc(kLarge));
  CHECK(sweep != nullptr);
  for (std::size_t i = 0; i < kLarge; i += kPage) sweep[i] = static_cast<char>(1 + i / kPage % 100);
  std::free(const_cast<char*>(sweep));
}

int status_of(int child) {
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace cases

int main(int count, char** arguments) {
  using namespace cases;
  if (count < 2) {
    for (int i = 0; i < g_cases_count; ++i) std::puts(g_cases[i].name);
    return 0;
  }
  g_count = count - 2;
  g_arguments = arguments + 2;
  for (int i = 0; i < g_cases_count; ++i) {
    if (std::strcmp(g_cases[i].name, arguments[1]) != 0) continue;
    g_cases[i].body();
    std::printf("%s: as it should be\n", arguments[1]);
    return 0;
  }
  std::fprintf(stderr, "there is no case '%s'\n", arguments[1]);
  return 2;
}
