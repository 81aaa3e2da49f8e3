// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/touch_phases.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plan/plan.hpp"
#include "plan/use_phases.hpp"

namespace farheap::plan {

namespace {

// Phases are told by the sites that are touched most, in pieces in which chance is small.
constexpr std::uint32_t kKinds = 16;
constexpr std::size_t kMostPhases = 8;
static_assert(kMostPhases <= kMostRegionPhases);
constexpr PhasePieces kPieces = {.most = 32, .least_uses = 16};
constexpr std::size_t kLeastTouches = 64;  // of all: fewer tell nothing
constexpr std::uint64_t kLeastOfSite = 16;

struct Touched {
  std::vector<std::uint32_t> numbers, weights;   // in order
  std::map<std::uint32_t, std::uint64_t> times;  // by number
};

Touched touched_sites(const profile::ProcessProfile& process, const NumberOfSite& number_of) {
  Touched all;
  for (const auto [site, weight] : process.touch_order) {
    const auto number = number_of.find(site);
    if (number == number_of.end()) continue;
    all.numbers.push_back(number->second);
    all.weights.push_back(weight);
    ++all.times[number->second];
  }
  return all;
}

// The rank of each touch's site among the most touched ones; kKinds for all other sites.
std::vector<std::uint32_t> kinds_of(const Touched& all) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> most;
  most.reserve(all.times.size());
  for (const auto& [number, times] : all.times) most.emplace_back(times, number);
  std::ranges::sort(most, std::ranges::greater{});
  std::map<std::uint32_t, std::uint32_t> kind;
  for (std::uint32_t i = 0; i < most.size(); ++i) kind[most[i].second] = std::min(i, kKinds);
  std::vector<std::uint32_t> kinds;
  kinds.reserve(all.numbers.size());
  for (const std::uint32_t number : all.numbers) kinds.push_back(kind[number]);
  return kinds;
}

}  // namespace

std::map<std::uint32_t, std::vector<double>> phases_of_touches(const profile::ProcessProfile& process,
                                                               const NumberOfSite& number_of) {
  const Touched all = touched_sites(process, number_of);
  if (all.numbers.size() < kLeastTouches) return {};
  const CutUses cut = cut_into_phases(kinds_of(all), kKinds + 1, kPieces, kMostPhases, all.weights);
  if (cut.phases.size() < 2) return {};
  std::map<std::uint32_t, std::vector<double>> found;
  for (std::size_t i = 0; i < all.numbers.size(); ++i) {
    if (all.times.at(all.numbers[i]) < kLeastOfSite) continue;
    found.try_emplace(all.numbers[i], cut.phases.size()).first->second[cut.phase_of[i]] += all.weights[i];
  }
  for (auto& [number, in_phases] : found) {
    const double sum = std::accumulate(in_phases.begin(), in_phases.end(), 0.0);
    for (double& share : in_phases) share = sum > 0 ? share / sum : 1 / static_cast<double>(in_phases.size());
  }
  return found;
}

}  // namespace farheap::plan
