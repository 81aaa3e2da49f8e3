// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cheap change of a word whose repetitions have a closed form: what a kernel does to a word many times over, a
// verifier says in one step.
//
// Thread-safety: values.
#pragma once

#include <cstdint>

namespace farheap::bench {

struct AffineStep {
  std::uint64_t multiplier = 6364136223846793005ULL;  // Knuth's, of MMIX
  std::uint64_t increment = 1442695040888963407ULL;

  [[nodiscard]] std::uint64_t operator()(std::uint64_t word) const { return word * multiplier + increment; }

  // The step that does what `times` of this one do.
  [[nodiscard]] AffineStep repeated(std::uint64_t times) const {
    AffineStep all{1, 0};
    for (std::uint64_t i = 0; i < times; ++i) all = {all.multiplier * multiplier, (*this)(all.increment)};
    return all;
  }
};

}  // namespace farheap::bench
