// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts words, and goes on counting in the next run.
//
//   words HEAP <text      counts; then `words HEAP` prints the ten most frequent words of all runs
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <farheap/farheap.hpp>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace farheap::literals;
using Text = std::basic_string<char, std::char_traits<char>, farheap::allocator<char>>;
using Counts = std::map<Text, long, std::less<>, farheap::allocator<std::pair<const Text, long>>>;

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: words HEAP <text, as in: words file:/tmp/words <README.md\n";
    return 2;
  }
  auto opened = farheap::Heap::open_or_create(words[1], {.memory = 64_MiB});
  if (!opened) {
    std::cerr << opened.error().message() << "\n";
    return 1;
  }
  farheap::Heap& heap = *opened;
  auto* const counts = heap.find_or_construct<Counts>("counts")(heap.allocator<std::byte>());
  if (isatty(0) == 0) {
    for (std::string word; std::cin >> word;) {
      auto at = counts->find(std::string_view(word));
      if (at == counts->end()) at = counts->emplace(Text(word, heap.allocator<char>()), 0).first;
      ++at->second;
    }
    if (const auto status = heap.commit(); !status) {
      std::cerr << status.error().message() << "\n";
      return 1;
    }
  }
  std::vector<std::pair<long, std::string_view>> sorted;
  for (const auto& [word, times] : *counts) sorted.emplace_back(times, word);
  std::sort(sorted.rbegin(), sorted.rend());
  sorted.resize(std::min<std::size_t>(sorted.size(), 10));
  for (const auto& [times, word] : sorted) std::cout << times << " " << word << "\n";
}
