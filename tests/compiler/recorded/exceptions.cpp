// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exceptions through loops and functions, caught and thrown again; destructors on the way.
#include <cstdio>

namespace {

int g_ended = 0;
struct Guard {
  int *at;
  ~Guard() { g_ended += *at; }
};

int inner(int n) {
  int one = 1;
  const Guard guard{&one};
  for (int i = 0; i < n; ++i) {
    if (i == 5) throw i;
    if (i == 3 && n == 4) throw 2.5;
  }
  return n;
}

int middle(int n) {
  int two = 2;
  const Guard guard{&two};
  try {
    return inner(n);
  } catch (double) {
    throw n;
  }
}

}  // namespace

int main() {
  int sum = 0;
  for (int n = 0; n < 12; ++n) {
    try {
      sum += middle(n);
    } catch (int found) {
      sum += 100 * found;
    }
  }
  std::printf("%d %d\n", sum, g_ended);
  return 0;
}
