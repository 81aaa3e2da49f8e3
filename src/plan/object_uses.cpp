// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/object_uses.hpp"

#include <algorithm>
#include <cmath>

namespace farheap::plan {

namespace {

// Those before `end`.
std::vector<KnownUses> known_of(const ObjectLife& life, double end, const Joining& joining) {
  std::vector<SeenPart> seen;
  for (const auto& [byte, all] : life.uses) {
    const auto past = std::ranges::lower_bound(all, end);
    seen.push_back({static_cast<double>(byte - life.first) / static_cast<double>(life.bytes), {all.begin(), past}});
  }
  return joined_uses(seen, joining);
}

// In whole numbers; what is more than there can be is the most.
PlannedUse in_plan(const Use& use) {
  constexpr double kMost = ~std::uint32_t{0};
  return {static_cast<std::uint32_t>(std::min(use.time, kMost)),
          static_cast<std::uint32_t>(std::min(use.pages, kMost))};
}

bool is_near(const std::vector<Use>& uses, double wanted, double near) {
  const auto found = std::ranges::lower_bound(uses, wanted - near, {}, &Use::time);
  return found != uses.end() && found->time <= wanted + near;
}

bool came_a_round_before(const std::vector<std::uint32_t>& times, std::uint32_t time, std::uint32_t near,
                         const Round& round) {
  if (round.length == 0 || time < round.begin || time >= round.end || time < round.length) return false;
  const std::uint32_t wanted = time - round.length;
  const auto found = std::ranges::lower_bound(times, wanted - std::min(wanted, near));
  return found != times.end() && *found <= wanted + near && *found < time;
}

// The parts beside it, without it: what uses_at() looks at for its place.
std::vector<KnownUses> beside(const std::vector<KnownUses>& known, std::size_t part) {
  constexpr std::size_t kBeside = 2;
  std::vector<KnownUses> found;
  for (std::size_t i = part - std::min(part, kBeside); i < known.size() && i <= part + kBeside; ++i) {
    if (i != part) found.push_back(known[i]);
  }
  return found;
}

void add_foreseen(const ObjectLife& life, const PlanTimes& times, std::uint32_t near, const Round& round,
                  ObjectUses::Foreseen& into) {
  const std::vector<KnownUses> known = known_of(life, times.end(), {});
  std::size_t at = 0;
  for (const auto& [byte, all] : life.uses) {
    const std::vector<Use> told = uses_at(beside(known, at), known[at].place, times);
    ++at;
    const auto most = static_cast<double>(std::max(told.size(), all.size()));
    into.uses += static_cast<double>(all.size());
    into.by_chance += static_cast<double>(all.size()) * (1 - std::exp(-2.0 * near * most / times.end()));
    for (const std::uint32_t time : all) {
      into.told += is_near(told, time, near) || came_a_round_before(all, time, near, round) ? 1 : 0;
    }
  }
}

}  // namespace

void ObjectUses::use(std::uint64_t byte, std::uint32_t time) {
  const auto has = [byte](const ObjectLife& life) { return byte - life.first < life.bytes; };
  const auto found = std::find_if(lives.rbegin(), lives.rend(), has);
  if (found != lives.rend()) found->uses[byte].push_back(time);
}

std::uint64_t ObjectUses::uses() const {
  std::uint64_t sum = 0;
  for (const ObjectLife& life : lives) {
    for (const auto& [byte, all] : life.uses) sum += all.size();
  }
  return sum;
}

std::uint64_t ObjectUses::bytes() const { return std::ranges::max_element(lives, {}, &ObjectLife::bytes)->bytes; }

double ObjectUses::Foreseen::share() const {
  return uses > by_chance ? std::max(told - by_chance, 0.0) / (uses - by_chance) : 0;
}

ObjectUses::Foreseen& ObjectUses::Foreseen::operator+=(const Foreseen& other) {
  uses += other.uses;
  told += other.told;
  by_chance += other.by_chance;
  return *this;
}

ObjectUses::Foreseen ObjectUses::foreseen(const PlanTimes& times, std::uint32_t near, const Round& round) const {
  Foreseen all;
  for (const ObjectLife& life : lives) add_foreseen(life, times, near, round, all);
  return all;
}

std::vector<double> ObjectUses::errors(const PlanTimes& times, const Joining& joining) const {
  std::vector<double> errors;
  for (const ObjectLife& life : lives) {
    const std::vector<KnownUses> known = known_of(life, times.end(), joining);
    for (std::size_t i = 1; i + 1 < known.size(); ++i) {
      const KnownUses beside[] = {known[i - 1], known[i + 1]};
      const std::vector<Use> told = uses_at(beside, known[i].place, times);
      if (told.size() != known[i].uses.size()) continue;
      for (std::size_t k = 0; k < told.size(); ++k) errors.push_back(std::abs(told[k].time - known[i].uses[k].time));
    }
  }
  return errors;
}

std::vector<std::vector<PlannedUse>> ObjectUses::parts(const PlanTimes& times, const Joining& joining,
                                                       std::size_t most) const {
  std::size_t count = 1;
  for (const ObjectLife& life : lives) count = std::max(count, std::min(life.uses.size(), most));
  std::vector<std::vector<PlannedUse>> parts(count);
  for (const ObjectLife& life : lives) {
    const std::vector<KnownUses> known = known_of(life, times.end(), joining);
    for (std::size_t i = 0; i < count; ++i) {
      const double place = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
      for (const Use& use : uses_at(known, place, times)) parts[i].push_back(in_plan(use));
    }
  }
  for (auto& uses : parts) std::ranges::sort(uses, {}, &PlannedUse::time);
  return parts;
}

}  // namespace farheap::plan
