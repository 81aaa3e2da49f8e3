// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/use_phases.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "plan/page_owners.hpp"
#include "profile/page_trace.hpp"

namespace farheap::plan {

namespace {

using Counts = std::vector<std::uint64_t>;  // uses, by site; the last of the rest

constexpr std::size_t kLeastUsesOfPhases = 64;
constexpr double kAlikePhases = 0.6;  // of the uses of two phases that are one

struct Used {
  std::vector<profile::SiteId> sites;
  std::vector<std::uint32_t> order;  // the place in `sites` of each use; their number: of the rest
};

// A page is of the site whose object had it last.
Used used_sites(const profile::ProcessProfile& process) {
  std::vector<std::size_t> each(process.objects.size());
  std::iota(each.begin(), each.end(), std::size_t{0});
  const PageOwners owners(process.objects, each);
  constexpr profile::SiteId kNone = 0;
  std::vector<profile::SiteId> order;
  std::map<profile::SiteId, std::uint64_t> uses;
  for (const std::uint32_t word : process.touches.words) {
    const auto entry = profile::unpack_entry(word);
    if (!entry || (entry->event != profile::PageEvent::kCame && entry->event != profile::PageEvent::kCameFresh))
      continue;
    const auto object = owners.last(entry->page);
    order.push_back(object ? process.objects[*object].site : kNone);
    if (object) ++uses[order.back()];
  }
  Used found;
  for (const auto& [site, count] : uses) found.sites.push_back(site);
  std::ranges::stable_sort(found.sites, std::greater{}, [&](profile::SiteId site) { return uses[site]; });
  if (found.sites.size() > UsePhases::kMostSites) found.sites.resize(UsePhases::kMostSites);
  std::map<profile::SiteId, std::uint32_t> place;
  for (std::uint32_t i = 0; i < found.sites.size(); ++i) place[found.sites[i]] = i;
  for (const profile::SiteId site : order) {
    const auto at = place.find(site);
    found.order.push_back(at != place.end() ? at->second : static_cast<std::uint32_t>(found.sites.size()));
  }
  return found;
}

std::uint64_t sum_of(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); }

void add(Counts& to, const Counts& more) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += more[i];
}

// The share of uses that both have: 1 if each site has the same share in both. Requires: both have some.
double alike(const Counts& a, const Counts& b) {
  const auto all_a = static_cast<double>(sum_of(a)), all_b = static_cast<double>(sum_of(b));
  double both = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += std::min(static_cast<double>(a[i]) / all_a, static_cast<double>(b[i]) / all_b);
  }
  return both;
}

std::vector<Counts> windows_of(std::span<const std::uint32_t> uses, std::span<const std::uint32_t> weights,
                               std::size_t kinds, PhasePieces pieces) {
  const auto weight_of = [&](std::size_t use) { return weights.empty() ? 1.0 : static_cast<double>(weights[use]); };
  double all = 0;
  for (std::size_t i = 0; i < uses.size(); ++i) all += weight_of(i);
  const double length = all / static_cast<double>(pieces.most);
  std::vector<Counts> windows;
  std::size_t in_window = 0;
  double weight = 0;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (in_window == 0) windows.emplace_back(kinds);
    ++windows.back()[uses[i]];
    weight += weight_of(i);
    if (++in_window >= pieces.least_uses && weight >= length) in_window = 0, weight = 0;
  }
  return windows;
}

// Those that follow each other and are alike become one, the most alike first. Each is as long as its counts' sum.
std::vector<Counts> joined(std::vector<Counts> pieces) {
  std::vector<double> next;  // how alike each is to the one behind it
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) next.push_back(alike(pieces[i], pieces[i + 1]));
  while (!next.empty()) {
    const auto most = std::ranges::max_element(next);
    if (*most < kAlikePhases) break;
    const auto at = static_cast<std::size_t>(most - next.begin());
    add(pieces[at], pieces[at + 1]);
    pieces.erase(pieces.begin() + (most - next.begin()) + 1);
    next.erase(most);
    if (at > 0) next[at - 1] = alike(pieces[at - 1], pieces[at]);
    if (at < next.size()) next[at] = alike(pieces[at], pieces[at + 1]);
  }
  return pieces;
}

// The same of phases wherever they are, until they are so few. `of` says which phase each of them is then: the first of
// those that are one.
std::vector<std::size_t> one_of(std::vector<Counts> phases, std::size_t most) {
  std::vector<std::size_t> of(phases.size()), left(phases.size());
  std::iota(of.begin(), of.end(), std::size_t{0});
  left = of;
  std::vector<std::vector<double>> how(phases.size(), std::vector<double>(phases.size(), -1));
  const auto look = [&](std::size_t one) {
    for (const std::size_t other : left) {
      if (other != one) how[std::min(one, other)][std::max(one, other)] = alike(phases[one], phases[other]);
    }
  };
  for (const std::size_t one : left) look(one);
  while (left.size() > 1) {
    std::size_t into = left[0], from = left[1];
    for (const std::size_t a : left) {
      for (const std::size_t b : left) {
        if (a < b && how[a][b] > how[into][from]) into = a, from = b;
      }
    }
    if (how[into][from] < kAlikePhases && left.size() <= most) break;
    add(phases[into], phases[from]);
    std::erase(left, from);
    std::ranges::replace(of, from, into);
    look(into);
  }
  return of;
}

}  // namespace

UsePhases use_phases(const profile::ProcessProfile& process, std::size_t most) {
  Used used = used_sites(process);
  if (used.order.size() < kLeastUsesOfPhases || used.sites.empty()) return {};
  CutUses cut = cut_into_phases(used.order, used.sites.size() + 1, {}, most);
  return {std::move(used.sites), std::move(cut.phases), std::move(cut.order)};
}

CutUses cut_into_phases(std::span<const std::uint32_t> uses, std::size_t kinds, PhasePieces pieces_of,
                        std::size_t most_phases, std::span<const std::uint32_t> weights) {
  const std::vector<Counts> pieces = joined(windows_of(uses, weights, kinds, pieces_of));
  const std::vector<std::size_t> of = one_of(pieces, most_phases);
  CutUses found;
  std::map<std::size_t, std::uint32_t> numbers;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto [number, is_new] = numbers.try_emplace(of[i], static_cast<std::uint32_t>(numbers.size()));
    if (is_new) found.phases.push_back({.visits = 0, .uses = 0, .of_site = Counts(pieces[i].size())});
    UsePhase& phase = found.phases[number->second];
    phase.uses += sum_of(pieces[i]);
    found.phase_of.insert(found.phase_of.end(), sum_of(pieces[i]), number->second);
    add(phase.of_site, pieces[i]);
    if (!found.order.empty() && found.order.back() == number->second) continue;  // what was joined follows itself
    found.order.push_back(number->second);
    ++phase.visits;
  }
  return found;
}

}  // namespace farheap::plan
