// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program to be recorded, built with -O2: what it allocates, containers allocate for it, in functions that the
// compiler puts into its own.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

// A C function whose name means a type to a demangler.
extern "C" __attribute__((noinline)) char* f(std::size_t bytes) {
  auto* const made = static_cast<char*>(std::malloc(bytes));  // MARK plain
  std::memset(made, 1, bytes);
  return made;
}

__attribute__((noinline)) static void fill(std::map<int, std::string>& names) {
  for (int i = 0; i < 100'000; ++i) names.emplace(i, std::string(100, 'x'));  // MARK map
}

int main() {
  std::vector<double> numbers(4 << 20);  // MARK vector
  for (double& number : numbers) number += 1;
  std::map<int, std::string> names;
  fill(names);
  char* const made = f(16 << 20);
  std::printf("%f %zu %d\n", numbers[5], names[7].size(), made[9]);
  std::free(made);
}
