// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/program.hpp"

int main(int count, char** arguments) {
  return farheap::bench::benchmark_main(count, arguments, farheap::bench::this_program());
}
