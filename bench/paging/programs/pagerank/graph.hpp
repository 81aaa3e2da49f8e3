// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An R-MAT graph (Chakrabarti, Zhan, Faloutsos 2004; probabilities 0.57, 0.19, 0.19 of Graph 500) in CSR form, by
// incoming edges. Vertices are numbered at random, so that a popular one is anywhere.
//
// Thread-safety: constant once it is made.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace farheap::bench {

struct Edge {
  std::uint32_t from;
  std::uint32_t to;
};

class Graph {
 public:
  // Requires: scale <= 31, edges < 2^32.
  Graph(unsigned scale, std::uint64_t edges, std::uint64_t seed);

  [[nodiscard]] std::uint32_t vertices() const { return std::uint32_t{1} << scale_; }
  [[nodiscard]] std::uint64_t edges() const { return edges_; }
  // The edge with this number, from the seed alone.
  [[nodiscard]] Edge edge(std::uint64_t number) const;

  [[nodiscard]] std::span<const std::uint32_t> into(std::uint32_t vertex) const {
    return {from_.get() + start_[vertex], start_[vertex + 1] - start_[vertex]};
  }
  [[nodiscard]] std::uint32_t out_degree(std::uint32_t vertex) const { return out_degree_[vertex]; }

  [[nodiscard]] std::uint64_t bytes() const {
    return (2 * std::uint64_t{vertices()} + 1 + edges_) * sizeof(std::uint32_t);
  }
  [[nodiscard]] std::vector<std::span<std::byte>> memory();

 private:
  unsigned scale_;
  std::uint64_t edges_;
  std::uint64_t seed_;
  std::unique_ptr<std::uint32_t[]> start_;  // of each vertex in from_
  std::unique_ptr<std::uint32_t[]> out_degree_;
  std::unique_ptr<std::uint32_t[]> from_;
};

}  // namespace farheap::bench
