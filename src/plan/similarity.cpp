// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/similarity.hpp"

#include <cmath>
#include <limits>

namespace farheap::plan {

namespace {

// Calls what(count in a, count in b) for each site that both access, and answers their number.
template <class What>
std::size_t for_shared(const profile::AccessCounts& a, const profile::AccessCounts& b, What what) {
  std::size_t shared = 0;
  auto in_b = b.sites().begin();
  for (const profile::SiteCount& in_a : a.sites()) {
    while (in_b != b.sites().end() && in_b->site < in_a.site) ++in_b;
    if (in_b == b.sites().end()) break;
    if (in_b->site != in_a.site) continue;
    what(static_cast<double>(in_a.accesses), static_cast<double>(in_b->accesses));
    ++shared;
  }
  return shared;
}

}  // namespace

double object_similarity(const profile::AccessCounts& a, const profile::AccessCounts& b) {
  const std::size_t shared = for_shared(a, b, [](double, double) {});
  const std::size_t either = a.size() + b.size() - shared;
  return either == 0 ? 100 : 100 * static_cast<double>(shared) / static_cast<double>(either);
}

double hotness_similarity(const profile::AccessCounts& a, const profile::AccessCounts& b) {
  double sum = 0;
  const std::size_t shared =
      for_shared(a, b, [&sum](double in_a, double in_b) { sum += std::abs(in_a - in_b) / (in_a + in_b); });
  if (shared == 0 && !(a.empty() && b.empty())) return 0;
  return sum == 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(shared) / sum;
}

}  // namespace farheap::plan
