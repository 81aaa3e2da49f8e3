// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A version is kept under a name, read by a second process while the first goes on, and returned to.
//
//   snapshots HEAP
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <farheap/farheap.hpp>
#include <iostream>
#include <string>

using namespace farheap::literals;

// What `call` has, or the end of the program with what went wrong.
template <class T>
T must(farheap::Result<T> call) {
  if (call) return std::move(call).value();
  std::cerr << call.error().message() << "\n";
  std::exit(1);
}
void must(const farheap::Status& status) {
  if (status) return;
  std::cerr << status.error().message() << "\n";
  std::exit(1);
}

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: snapshots HEAP, as in: snapshots file:/tmp/numbers\n";
    return 2;
  }
  const std::string uri = words[1];
  {
    auto heap = must(farheap::Heap::create(uri, {.memory = 64_MiB}));
    int* const number = heap.construct<int>("number")(1);
    must(heap.snapshot("monday"));
    *number = 2;
    must(heap.commit());
    // A child has nothing of its parent's heap, so the addresses are free for a version of it.
    if (fork() == 0) {
      std::cout << "on monday it was " << *must(farheap::Heap::open_read_only(uri + "@monday")).find<int>("number");
      std::cout << ", now it is " << *must(farheap::Heap::open_read_only(uri)).find<int>("number") << "\n"
                << std::flush;
      _exit(0);
    }
    wait(nullptr);
    for (const auto& version : must(heap.versions())) {
      std::cout << "commit " << version.commit << ": " << (version.name.empty() ? "the newest" : version.name) << "\n";
    }
  }
  must(farheap::Heap::roll_back(uri));
  std::cout << "rolled back to " << *must(farheap::Heap::open(uri)).find<int>("number") << "\n";
}
