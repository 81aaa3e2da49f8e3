// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads move money between accounts while another commits. A pause keeps the two halves of a transfer in one version:
// whatever version is opened, the sum is right.
//
//   threads_pause HEAP
#include <array>
#include <atomic>
#include <farheap/farheap.hpp>
#include <iostream>
#include <numeric>
#include <string>
#include <thread>

using namespace farheap::literals;
using Accounts = std::array<std::atomic<long>, 10'000>;

long sum_of(const farheap::Heap& heap) {
  const auto* const accounts = heap.find<Accounts>("accounts");
  return accounts == nullptr ? -1 : std::accumulate(accounts->begin(), accounts->end(), 0l);
}

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: threads_pause HEAP, as in: threads_pause file:/tmp/accounts\n";
    return 2;
  }
  const std::string uri = words[1];
  {
    auto heap = farheap::Heap::create(uri, {.memory = 64_MiB});
    if (!heap) return std::cerr << heap.error().message() << "\n", 1;
    auto& accounts = *heap->construct<Accounts>("accounts")();
    for (auto& account : accounts) account = 100;
    std::atomic<bool> stop{false};
    const auto transfer = [&](std::size_t from, std::size_t step) {
      for (; !stop; from = (from + step) % accounts.size()) {
        const auto pause = heap->pause();  // until the end of this block no commit cuts
        accounts[from] -= 1;
        accounts[(from * 7 + step) % accounts.size()] += 1;
      }
    };
    std::thread one(transfer, 1, 3'001), other(transfer, 2, 4'001);
    for (int i = 0; i < 8; ++i) {
      if (const auto status = heap->snapshot("s" + std::to_string(i)); !status) return 1;
    }
    stop = true;
    one.join();
    other.join();
  }
  for (int i = 0; i < 8; ++i) {
    const auto past = farheap::Heap::open_read_only(uri + "@s" + std::to_string(i));
    if (!past || sum_of(*past) != 1'000'000) return std::cerr << "version " << i << " is half\n", 1;
  }
  std::cout << "8 versions, each of 1000000\n";
}
