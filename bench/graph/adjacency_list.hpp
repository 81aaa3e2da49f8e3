// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph that is built: vertex -> its neighbours, in banks so that two threads seldom want the same lock (the form
// of Metall's own benchmark). Boost's containers, because all of the allocators' pointers fit into them.
//
// Thread-safety: add() by any thread, with one Locks for all of them; the rest when nobody adds.
#pragma once

#include <array>
#include <boost/container/vector.hpp>
#include <boost/unordered_map.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace farheap::bench {

using Vertex = std::uint64_t;

// A bijection that leaves no pattern: splitmix64's.
inline std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

template <class Allocator>
class AdjacencyList {
  template <class T>
  using For = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;
  using Neighbours = boost::container::vector<Vertex, For<Vertex>>;
  using Bank = boost::unordered_map<Vertex, Neighbours, std::hash<Vertex>, std::equal_to<>,
                                    For<std::pair<const Vertex, Neighbours>>>;

 public:
  static constexpr std::size_t kBanks = 1024;
  using Locks = std::array<std::mutex, kBanks>;

  explicit AdjacencyList(const Allocator& allocator) : allocator_(allocator), banks_(For<Bank>(allocator)) {
    banks_.reserve(kBanks);
    for (std::size_t i = 0; i < kBanks; ++i) banks_.emplace_back(For<std::pair<const Vertex, Neighbours>>(allocator));
  }

  void add(Vertex from, Vertex to, Locks& locks) {
    const std::size_t bank = from % kBanks;
    const std::lock_guard lock(locks[bank]);
    banks_[bank].try_emplace(from, For<Vertex>(allocator_)).first->second.push_back(to);
  }

  struct Sum {
    std::uint64_t vertices = 0;
    std::uint64_t degrees = 0;
    std::uint64_t checksum = 0;  // whatever the order of the edges
  };
  [[nodiscard]] Sum sum() const {
    Sum all;
    for (const Bank& bank : banks_) {
      for (const auto& [from, neighbours] : bank) {
        ++all.vertices;
        all.degrees += neighbours.size();
        for (const Vertex to : neighbours) all.checksum += mixed(mixed(from) + to);
      }
    }
    return all;
  }

 private:
  Allocator allocator_;
  boost::container::vector<Bank, For<Bank>> banks_;
};

}  // namespace farheap::bench
