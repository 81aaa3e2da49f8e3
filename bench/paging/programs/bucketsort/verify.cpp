// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "verify.hpp"

#include <fmt/format.h>

#include "common/program.hpp"
#include "kernel.hpp"

namespace farheap::bench {

std::string verify_sorted(std::span<const std::uint64_t> sorted, std::uint64_t seed, std::uint64_t rounds) {
  std::uint64_t found = 0;
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i > 0 && sorted[i] < sorted[i - 1]) return fmt::format("key {} is smaller than the one before it", i);
    found += random_at(~seed, sorted[i]);
    std::uint64_t key = random_at(seed, i);
    for (std::uint64_t round = 0; round < rounds; ++round) key = remixed(key);
    expected += random_at(~seed, key);
  }
  return found == expected ? "" : "the keys are in order, but are not those that were to be sorted";
}

}  // namespace farheap::bench
