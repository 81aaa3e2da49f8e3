// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dependencies of Debian's packages, built once from the machine's lists and kept.
#include <cstdio>
#include <cstdlib>
#include <farheap/farheap.hpp>
#include <fstream>
#include <iostream>
#include <string>

#include "package_graph.hpp"
#include "queries.hpp"

using namespace farheap::literals;
using namespace packages;

namespace {

constexpr char kUsage[] =
    "usage: packages HEAP VERB [WORD]...\n"
    "  apt-cache dumpavail | packages file:/tmp/debian build    a graph of what the lists say\n"
    "  packages file:/tmp/debian dependents libc6               all that need it, directly or not\n"
    "  packages file:/tmp/debian path bash libc6                the shortest chain of dependencies\n"
    "  packages file:/tmp/debian rank 10 [ROUNDS]               PageRank: what most of Debian stands on\n"
    "  packages file:/tmp/debian update <NEW_LIST               keeps the state as snapshot `before`, and follows a "
    "list\n"
    "  packages file:/tmp/debian changes                        what came, went and changed since `before`\n";
const farheap::HeapOptions kOptions{.memory = 256_MiB};

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

const PackageGraph& graph_of(const farheap::Heap& heap) {
  if (const auto* const graph = heap.find<PackageGraph>("packages")) return *graph;
  std::cerr << heap.uri() << " has no graph: `packages HEAP build` makes one\n";
  std::exit(1);
}

const Package& named(const PackageGraph& graph, const char* name) {
  if (const Package* const package = graph.find(name)) return *package;
  std::cerr << "there is no package " << name << "\n";
  std::exit(1);
}

void follow(farheap::Heap& heap) {
  PackageList list;
  read_list(std::cin, list);
  auto* const graph = heap.find_or_construct<PackageGraph>("packages")(heap.allocator<std::byte>());
  graph->become(list);
  must(heap.commit());
  std::cout << graph->size() << " packages\n";
}

void update(const std::string& uri) {
  auto heap = must(farheap::Heap::open(uri, kOptions));
  (void)heap.remove_snapshot("before");  // of the last update, if there was one
  must(heap.snapshot("before"));
  follow(heap);
}

// Both versions want the same addresses: one is read after the other.
void print_changes(const std::string& uri) {
  std::map<std::string, std::string> before;
  {
    const auto past = must(farheap::Heap::open_read_only(uri + "@before", kOptions));
    graph_of(past).for_each([&](const Package& one) { before.emplace(*one.name, one.version); });
  }
  const auto heap = must(farheap::Heap::open_read_only(uri, kOptions));
  for (const std::string& line : changes(before, graph_of(heap))) std::cout << line << "\n";
}

void print(const std::vector<const Package*>& packages) {
  for (const Package* const one : packages) std::cout << *one->name << "\n";
}

int ask(const std::string& uri, const std::string& verb, int count, char** words) {
  const auto heap = must(farheap::Heap::open_read_only(uri, kOptions));
  const PackageGraph& graph = graph_of(heap);
  if (verb == "dependents" && count == 1) {
    print(all_dependents(named(graph, words[0])));
  } else if (verb == "path" && count == 2) {
    print(shortest_path(named(graph, words[0]), named(graph, words[1])));
  } else if (verb == "rank" && (count == 1 || count == 2)) {
    auto ranked = rank(graph, count == 2 ? std::atoi(words[1]) : 30);
    ranked.resize(std::min<std::size_t>(ranked.size(), static_cast<std::size_t>(std::atoi(words[0]))));
    for (const auto& [score, package] : ranked) std::printf("%.12f %s\n", score, package->name->c_str());
  } else {
    std::cerr << kUsage;
    return 2;
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string verb = count > 2 ? words[2] : "";
  if (verb == "build" && count == 3) {
    auto heap = must(farheap::Heap::create(words[1], kOptions));
    follow(heap);
  } else if (verb == "update" && count == 3) {
    update(words[1]);
  } else if (verb == "changes" && count == 3) {
    print_changes(words[1]);
  } else if (count > 2) {
    return ask(words[1], verb, count - 3, words + 3);
  } else {
    std::cerr << kUsage;
    return 2;
  }
}
