// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library that is opened late: it allocates in its constructor, reads there what it wrote (the loader's lock is held
// the while), and has variables of its own in every thread.
#include <cstdint>
#include <cstdlib>

namespace {

std::uint64_t word(std::uint64_t seed, std::size_t index) {
  std::uint64_t x = (seed * 0x9e3779b97f4a7c15) ^ (index + 1) * 0xbf58476d1ce4e5b9;
  x ^= x >> 29;
  return x * 0x94d049bb133111eb | 1;
}

std::uint64_t* g_words = nullptr;
thread_local std::uint64_t t_calls[3000];

__attribute__((constructor)) void opened() {
  const char* wish = std::getenv("PLUGIN_MEBIBYTES");
  const std::size_t words = (wish != nullptr ? std::strtoull(wish, nullptr, 10) : 1) << 17;
  g_words = static_cast<std::uint64_t*>(std::malloc(words * 8));
  for (std::size_t i = 0; i < words; ++i) g_words[i] = word(12, i);
  for (std::size_t i = 0; i < words; ++i) {
    if (g_words[i] != word(12, i)) std::abort();
  }
}
__attribute__((destructor)) void closed() { std::free(g_words); }

}  // namespace

extern "C" __attribute__((visibility("default"))) std::uint64_t plugin_word(std::size_t index) {
  if (++t_calls[index % 3000] > 1'000'000) std::abort();
  return g_words[index];
}

extern "C" __attribute__((visibility("default"))) void plugin_free(void* object) { std::free(object); }
