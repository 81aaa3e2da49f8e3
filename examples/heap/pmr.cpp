// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// std::pmr containers in a heap: its memory resource is at the same place in every run, so they go on where they were.
//
//   pmr HEAP WORD...      adds words to a list; then prints all of them, in the order in which they came
#include <farheap/farheap.hpp>
#include <iostream>
#include <memory_resource>
#include <string>
#include <vector>

using namespace farheap::literals;

int main(int count, char** words) {
  if (count < 2) {
    std::cerr << "usage: pmr HEAP WORD..., as in: pmr file:/tmp/list milk bread\n";
    return 2;
  }
  auto opened = farheap::Heap::open_or_create(words[1], {.memory = 64_MiB});
  if (!opened) {
    std::cerr << opened.error().message() << "\n";
    return 1;
  }
  farheap::Heap& heap = *opened;
  using List = std::pmr::vector<std::pmr::string>;
  auto* const list = heap.find_or_construct<List>("list")(heap.resource());
  for (int i = 2; i < count; ++i) list->emplace_back(words[i]);  // the strings, too, are in the heap
  if (const auto status = heap.commit(); !status) {
    std::cerr << status.error().message() << "\n";
    return 1;
  }
  for (const std::pmr::string& word : *list) std::cout << word << (heap.owns(word.data()) ? "\n" : " (elsewhere)\n");
}
