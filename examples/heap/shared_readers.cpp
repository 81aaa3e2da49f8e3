// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One process writes, others read beside it: each sees one commit, whole, for as long as it has the heap open.
//
//   shared_readers HEAP
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <farheap/farheap.hpp>
#include <iostream>
#include <string>
#include <vector>

using namespace farheap::literals;
using Numbers = std::vector<long, farheap::allocator<long>>;

// Every number is the same in every version; 0 if not.
long read_one(const std::string& uri) {
  const auto heap = farheap::Heap::open_read_only(uri, {.memory = 64_MiB});
  if (!heap) return 0;
  const auto* const numbers = heap->find<Numbers>("numbers");
  const auto is_first = [&](long number) { return number == numbers->front(); };
  return std::all_of(numbers->begin(), numbers->end(), is_first) ? numbers->front() : 0;
}

int read_often(const std::string& uri) {
  for (long before = 0, looks = 0; looks < 20; ++looks) {
    const long now = read_one(uri);
    if (now == 0 || now < before) return 1;
    before = now;
  }
  return 0;
}

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: shared_readers HEAP, as in: shared_readers file:/tmp/numbers\n";
    return 2;
  }
  auto heap = farheap::Heap::create(words[1], {.memory = 64_MiB});
  if (!heap) return std::cerr << heap.error().message() << "\n", 1;
  auto* const numbers = heap->construct<Numbers>("numbers")(100'000, 1, heap->allocator<long>());
  if (!heap->commit()) return 1;
  for (int reader = 0; reader < 3; ++reader) {
    if (fork() == 0) _exit(read_often(words[1]));
  }
  int well = 0;
  for (int living = 3, status = 0; living > 0;) {
    for (long& number : *numbers) ++number;
    if (const auto done = heap->commit(); !done) return std::cerr << done.error().message() << "\n", 1;
    for (; waitpid(-1, &status, WNOHANG) > 0; --living) well += status == 0;
  }
  std::cout << well << " readers saw whole versions only\n";
}
