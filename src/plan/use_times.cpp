// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/use_times.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace farheap::plan {

namespace {

using Uses = std::span<const Use>;

constexpr std::size_t kTogether = 4;       // parts on either side
constexpr std::size_t kMostMatched = 256;  // uses of a part: of more none is looked for one by one

// On the ring of the round, from one half of it before to one half behind.
double on_ring(double difference, double round) { return difference - round * std::round(difference / round); }

double around(double time, double round) {
  const double within = std::fmod(time, round);
  return within < 0 ? within + round : within;
}

Use at_weight(const Use& one, double way, const Use& other, double weight) {
  return {one.time + weight * way, std::max(one.pages + weight * (other.pages - one.pages), 0.0)};
}

// Which of the other's uses belongs to the first one: the one by which all of them are nearest. A use that is the last
// of a round here may be the first there. Requires: as many of both.
std::size_t shift_between(Uses one, Uses other, double round) {
  std::size_t best = 0;
  double least = -1;
  for (const std::size_t shift : {std::size_t{0}, std::size_t{1}, one.size() - 1}) {
    double sum = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      sum += std::abs(on_ring(other[(i + shift) % one.size()].time - one[i].time, round));
    }
    if (least < 0 || sum < least) {
      least = sum;
      best = shift;
    }
  }
  return best;
}

void between_on_ring(Uses one, Uses other, double weight, const PlanTimes& times, std::vector<Use>& into) {
  if (one.empty()) return;
  const std::size_t shift = shift_between(one, other, times.round);
  for (std::size_t i = 0; i < one.size(); ++i) {
    const Use& to = other[(i + shift) % one.size()];
    Use use = at_weight(one[i], on_ring(to.time - one[i].time, times.round), to, weight);
    use.time = times.once + around(use.time - times.once, times.round);
    into.push_back(use);
  }
}

// The uses of `more` that belong to those of `few`, in their order, so that all together are nearest. Requires: no more
// of few than of more. (The shortest way through a table, as texts are compared.)
std::vector<std::size_t> matched(Uses few, Uses more) {
  const std::size_t width = more.size() + 1;
  const std::size_t spare = more.size() - few.size();
  std::vector<double> cost((few.size() + 1) * width, 0);
  const auto at = [&](std::size_t i, std::size_t j) -> double& { return cost[i * width + j]; };
  for (std::size_t i = 1; i <= few.size(); ++i) {
    for (std::size_t j = i; j <= i + spare; ++j) {
      const double paired = at(i - 1, j - 1) + std::abs(few[i - 1].time - more[j - 1].time);
      at(i, j) = j > i ? std::min(paired, at(i, j - 1)) : paired;
    }
  }
  std::vector<std::size_t> found(few.size());
  for (std::size_t i = few.size(), j = more.size(); i > 0; --j) {
    if (j > i && at(i, j) == at(i, j - 1)) continue;
    found[--i] = j - 1;
  }
  return found;
}

// Where one of them has more uses than the other, what has no partner stays with the one that is nearer.
void between_in_order(Uses one, Uses other, double weight, std::vector<Use>& into) {
  const bool is_fewer = one.size() <= other.size();
  const Uses few = is_fewer ? one : other, more = is_fewer ? other : one;
  const bool more_is_near = is_fewer == (weight >= 0.5);
  if (more.size() > kMostMatched) {
    const Uses near = weight < 0.5 ? one : other;
    into.insert(into.end(), near.begin(), near.end());
    return;
  }
  const std::vector<std::size_t> partners = matched(few, more);
  std::size_t next = 0;
  for (std::size_t j = 0; j < more.size(); ++j) {
    if (next < partners.size() && partners[next] == j) {
      const Use& from = is_fewer ? few[next] : more[j];
      const Use& to = is_fewer ? more[j] : few[next];
      into.push_back(at_weight(from, to.time - from.time, to, weight));
      ++next;
    } else if (more_is_near) {
      into.push_back(more[j]);
    }
  }
}

// With the times of their begins.
std::vector<Use> first_uses(std::span<const std::uint32_t> times, const Joining& joining) {
  std::vector<Use> uses;
  for (std::size_t first = 0; first < times.size();) {
    std::size_t last = first;
    while (last + 1 < times.size() && times[last + 1] - times[last] <= joining.soon) ++last;
    const double took = times[last] - times[first];
    if (took <= joining.longest) {
      uses.push_back({static_cast<double>(times[first]), took * joining.pages_a_time});
    } else {
      for (std::size_t i = first; i <= last; ++i) uses.push_back({static_cast<double>(times[i]), 0});
    }
    first = last + 1;
  }
  return uses;
}

// The median of the parts around it that are used as often.
double usual_pages(std::span<const KnownUses> known, std::size_t part, std::size_t use) {
  std::vector<double> pages;
  const std::size_t end = std::min(known.size(), part + kTogether + 1);
  for (std::size_t i = part - std::min(part, kTogether); i < end; ++i) {
    if (known[i].uses.size() == known[part].uses.size()) pages.push_back(known[i].uses[use].pages);
  }
  const auto middle = pages.begin() + std::ssize(pages) / 2;
  std::ranges::nth_element(pages, middle);
  return *middle;
}

std::pair<Uses, Uses> split(const KnownUses& known, double once) {
  const auto at =
      static_cast<std::size_t>(std::ranges::lower_bound(known.uses, once, {}, &Use::time) - known.uses.begin());
  return {Uses(known.uses).first(at), Uses(known.uses).subspan(at)};
}

}  // namespace

std::vector<Use> uses_at(std::span<const KnownUses> known, double place, const PlanTimes& times) {
  if (known.empty()) return {};
  if (known.size() == 1) return known.front().uses;
  const auto behind = std::ranges::lower_bound(known, place, {}, &KnownUses::place);
  const auto second =
      static_cast<std::size_t>(std::clamp(behind - known.begin(), std::ptrdiff_t{1}, std::ssize(known) - 1));
  const KnownUses& one = known[second - 1];
  const KnownUses& other = known[second];
  const double weight = other.place > one.place ? (place - one.place) / (other.place - one.place) : 0;
  const auto [one_once, one_round] = split(one, times.once);
  const auto [other_once, other_round] = split(other, times.once);
  std::vector<Use> found;
  between_in_order(one_once, other_once, weight, found);
  // What is at the end of what is done once is not in the round yet.
  for (Use& use : found) use.time = std::clamp(use.time, 0.0, std::nextafter(times.once, 0.0));
  if (times.round > 0 && one_round.size() == other_round.size()) {
    between_on_ring(one_round, other_round, weight, times, found);
  } else {
    const std::size_t before = found.size();
    between_in_order(one_round, other_round, weight, found);
    for (Use& use : std::span(found).subspan(before)) use.time = std::clamp(use.time, times.once, times.end());
  }
  std::ranges::sort(found, {}, &Use::time);
  return found;
}

std::vector<KnownUses> joined_uses(std::span<const SeenPart> parts, const Joining& joining) {
  std::vector<KnownUses> known;
  for (const SeenPart& part : parts) known.push_back({part.place, first_uses(part.times, joining)});
  std::vector<KnownUses> even = known;
  for (std::size_t i = 0; i < known.size(); ++i) {
    for (std::size_t k = 0; k < known[i].uses.size(); ++k) {
      Use& use = even[i].uses[k];
      use.pages = usual_pages(known, i, k);
      if (joining.pages_a_time > 0) use.time += use.pages / joining.pages_a_time / 2;
    }
    std::ranges::sort(even[i].uses, {}, &Use::time);
  }
  return even;
}

}  // namespace farheap::plan
