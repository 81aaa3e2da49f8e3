// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A graph that stays: edges are added in one run, and are there in the next.
//
//   graph HEAP [FROM TO]...      adds edges; then prints every vertex with what it leads to
#include <cstdint>
#include <cstdlib>
#include <farheap/farheap.hpp>
#include <iostream>
#include <map>
#include <scoped_allocator>
#include <vector>

using namespace farheap::literals;

// Ordinary containers: only their allocator is the heap's.
using Targets = std::vector<std::uint32_t, farheap::allocator<std::uint32_t>>;
class Graph {
 public:
  explicit Graph(farheap::allocator<std::byte> memory) : edges_(memory) {}
  void add_edge(std::uint32_t from, std::uint32_t to) { edges_[from].push_back(to); }
  void print(std::ostream& out) const {
    for (const auto& [from, targets] : edges_) {
      out << from << " ->";
      for (const std::uint32_t to : targets) out << " " << to;
      out << "\n";
    }
  }

 private:
  using Entry = std::pair<const std::uint32_t, Targets>;
  std::map<std::uint32_t, Targets, std::less<>, std::scoped_allocator_adaptor<farheap::allocator<Entry>>> edges_;
};

int main(int count, char** words) {
  if (count < 2 || count % 2 != 0) {
    std::cerr << "usage: graph HEAP [FROM TO]..., as in: graph file:/tmp/graph 1 2 1 3\n";
    return 2;
  }
  auto opened = farheap::Heap::open_or_create(words[1], {.memory = 64_MiB});
  if (!opened) {
    std::cerr << opened.error().message() << "\n";
    return 1;
  }
  auto* const graph = opened->find_or_construct<Graph>("graph")(opened->allocator<std::byte>());
  for (int i = 2; i < count; i += 2) {
    graph->add_edge(static_cast<std::uint32_t>(std::atoi(words[i])),
                    static_cast<std::uint32_t>(std::atoi(words[i + 1])));
  }
  if (const auto status = opened->commit(); !status) {
    std::cerr << status.error().message() << "\n";
    return 1;
  }
  graph->print(std::cout);
}
