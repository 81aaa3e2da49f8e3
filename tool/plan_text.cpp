// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "memory_advice.hpp"
#include "terminal.hpp"

namespace farheap::tool {

namespace {

using base::format_size;

constexpr double kAllTheTime = 6;  // uses of a part in a round
constexpr double kInOneWay = 0.8;  // so many neighbours are used in the order of addresses: it is gone through
constexpr double kTells = 0.02;
constexpr std::uint32_t kNearlyAll = plan::kRegionShares / 100 * 99;  // an estimate tells no more

struct WayOfUse {
  double times = 0;       // that a part is used
  double forwards = 0.5;  // of neighbours, the lower one is used first
};

// Between `from` and `to`, which is the round if there is one.
WayOfUse way_of(const plan::PlannedObject& object, double from, double to, bool is_round) {
  WayOfUse way;
  double uses = 0, pairs = 0, forwards = 0;
  const std::vector<plan::PlannedUse>* before = nullptr;
  const auto within = [&](const std::vector<plan::PlannedUse>& all) {
    const auto first = std::ranges::lower_bound(all, from, {}, &plan::PlannedUse::time);
    return std::span(first, std::ranges::lower_bound(all, to, {}, &plan::PlannedUse::time));
  };
  for (const auto& all : object.parts) {
    const auto these = within(all);
    uses += static_cast<double>(these.size());
    if (before != nullptr) {
      const auto those = within(*before);
      if (!these.empty() && these.size() == those.size()) {
        double step = static_cast<double>(these.front().time) - static_cast<double>(those.front().time);
        if (is_round) step -= (to - from) * std::round(step / (to - from));
        // Times are whole numbers: one and the same for neighbours that are used one behind the other.
        pairs += step != 0 ? 1 : 0;
        forwards += step > 0 ? 1 : 0;
      }
    }
    before = &all;
  }
  if (!object.parts.empty()) way.times = uses / static_cast<double>(object.parts.size());
  if (pairs != 0) way.forwards = forwards / pairs;
  return way;
}

std::string times_text(double times) {
  const auto whole = std::lround(times);
  return whole <= 1 ? "once" : whole == 2 ? "twice" : fmt::format("{} times", whole);
}

std::string one_way_text(const WayOfUse& way) {
  if (way.times < 0.1) return "not used";
  if (way.times >= kAllTheTime) return "used all the time: stays";
  const std::string times = way.times < 0.75 ? "in parts" : times_text(way.times);
  if (way.forwards >= kInOneWay) return "forwards, " + times;
  if (way.forwards <= 1 - kInOneWay) return "backwards, " + times;
  return "in an order of its own, " + times;
}

// `passes`: that go through all pieces of the object side by side.
std::string words_for(const WayOfUse& way, std::span<const plan::PlannedStride> passes) {
  if (passes.empty()) return one_way_text(way);
  std::map<std::uint32_t, double> times;  // by pieces
  for (const plan::PlannedStride& pass : passes) ++times[pass.repeats];
  std::string across;
  for (const auto& [pieces, count] : times) {
    across += fmt::format("{}{} pieces side by side, {}", across.empty() ? "" : "; ", pieces, times_text(count));
  }
  return way.times < 0.1 ? across : one_way_text(way) + "; " + across;
}

std::string allocated_at(const plan::SiteName& site, CodeNames& names) {
  std::string text;
  for (const profile::CodePlace& place : site) {
    for (const CodeName& one : names.call(place)) text += (text.empty() ? "" : ", from ") + one.text();
  }
  return text.empty() ? "an unknown place" : text;
}

std::string share_text(double part, double whole) {
  return fmt::format("{:.0f} %", whole > 0 ? 100 * part / whole : 0);
}

std::string saving_sentence(const plan::ScoredLevel& level, bool is_timed) {
  const double with = is_timed ? level.planned.seconds : level.planned.reads;
  const double without = is_timed ? level.planless.seconds : level.planless.reads;
  const char* const what = is_timed ? "time" : "reading";
  const std::string share = share_text(level.share, 1);
  if (without <= 0 && with <= 0) return fmt::format("With {} of the memory there is nothing to save.\n", share);
  const double saved = without > 0 ? 1 - with / without : -1;
  if (std::abs(saved) < kTells) {
    return fmt::format("With {} of the memory the plan makes no difference that a replay could tell.\n", share);
  }
  return saved > 0
             ? fmt::format("With {} of the memory the plan saves {} of the {}.\n", share, share_text(saved, 1), what)
             : fmt::format("With {} of the memory the plan costs {} more {} than none.\n", share, share_text(-saved, 1),
                           what);
}

std::string round_sentence(const plan::PlanTimes& times, const std::string& what) {
  if (times.round == 0) return "No round was found: the order is that of the whole run.";
  if (times.once == 0) return what + " repeats a round.";
  return fmt::format("{} begins with what is done once, and then repeats a round of {:.2g} times the length of that.",
                     what, times.round / times.once);
}

std::string phase_table(const plan::Plan& plan, const plan::PlannedPhase& phase, CodeNames& names) {
  const plan::PlanTimes times = phase.times();
  std::vector<std::vector<std::string>> rows{
      {"object", times.round == 0 ? "how it is used" : "how a round uses it", "foreseen", "allocated at"}};
  std::vector<const plan::PlannedObject*> objects;
  objects.reserve(phase.objects.size());
  for (const auto& object : phase.objects) objects.push_back(&object);
  std::ranges::stable_sort(objects, std::greater{}, [](const auto* object) { return object->bytes; });
  for (const auto* object : objects) {
    const WayOfUse way =
        times.round == 0 ? way_of(*object, 0, times.once, false) : way_of(*object, times.once, times.end(), true);
    std::vector<plan::PlannedStride> passes = object->strides;
    std::erase_if(passes, [&](const auto& pass) { return times.round != 0 && pass.begin() < times.once; });
    rows.push_back({format_size(object->bytes), words_for(way, passes), share_text(object->foreseen, 100),
                    shortened(printable(allocated_at(plan.sites[object->site], names)), kTextWidth)});
  }
  return aligned(rows);
}

std::string orders_text(const plan::Plan& plan, CodeNames& names) {
  const std::string program = printable(plan.program);
  if (plan.phases.empty()) return fmt::format("{}: the plan has no order of large objects.\n", program);
  if (plan.phases.size() == 1) {
    const plan::PlannedPhase& all = plan.phases.front();
    return fmt::format("{}: of 100 uses of its memory {} could be foreseen.\n{}\n\n{}", program, all.foreseen,
                       round_sentence(all.times(), "It"), phase_table(plan, all, names));
  }
  std::string text = fmt::format("{} has {} phases, one after the other.\n", program, plan.phases.size());
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const plan::PlannedPhase& phase = plan.phases[i];
    text += fmt::format("\n{} Of 100 uses {} could be foreseen.\n{}",
                        round_sentence(phase.times(), fmt::format("Phase {}", i + 1)), phase.foreseen,
                        phase_table(plan, phase, names));
  }
  return text;
}

// The regions, and all other small objects.
std::string regions_text(const plan::Plan& plan, CodeNames& names) {
  if (plan.regions.empty()) return {};
  const std::size_t phases = plan.regions.front().of_phases.size();
  std::vector<std::string> heads{"region", "of their bytes", "of their touches"};
  for (std::size_t i = 0; i < phases; ++i) heads.push_back(fmt::format("in phase {}", i + 1));
  heads.emplace_back("allocated at");
  std::vector<std::vector<std::string>> rows{heads};
  std::vector<std::uint32_t> left(2 + phases, plan::kRegionShares);  // of what is in no region
  const auto add_row = [&](std::string name, std::span<const std::uint32_t> shares, std::string_view site) {
    std::vector<std::string> row{std::move(name)};
    for (const std::uint32_t share : shares) row.push_back(share_text(share, plan::kRegionShares));
    row.resize(heads.size() - 1);
    row.push_back(shortened(printable(site), kTextWidth));
    rows.push_back(std::move(row));
  };
  for (std::size_t i = 0; i < plan.regions.size(); ++i) {
    const plan::PlannedRegion& region = plan.regions[i];
    std::vector<std::uint32_t> shares{region.of_bytes, region.of_touches};
    shares.insert(shares.end(), region.of_phases.begin(), region.of_phases.end());
    for (std::size_t at = 0; at < left.size(); ++at) left[at] -= std::min(left[at], shares[at]);
    std::string name = fmt::format("{}: {}", i + 1, format_size(region.bytes));
    for (const std::uint32_t site : region.sites) {  // figures stand beside the first
      add_row(std::exchange(name, ""), std::exchange(shares, {}), allocated_at(plan.sites[site], names));
    }
  }
  constexpr std::uint32_t kNothing = plan::kRegionShares / 200;  // it would be told as 0 %
  if (std::ranges::any_of(left, [](std::uint32_t share) { return share >= kNothing; })) {
    add_row("none", left, "elsewhere");
  }
  std::string text = phases == 0
                         ? "\nSmall objects that are touched more often for their size lie together, each region "
                           "in memory of its own.\n"
                         : fmt::format(
                               "\nSmall objects are used in {} phases. Those that are touched more often "
                               "for their size, or in the same phases, lie together,\neach region in "
                               "memory of its own.\n",
                               phases);
  text += aligned(rows);
  for (const auto& [level, saved] : {std::pair(0.7, plan.region_saving.at_70), {0.5, plan.region_saving.at_50}}) {
    text += fmt::format("With {} of what small objects take, at least {} of their misses are saved.\n",
                        share_text(level, 1), share_text(std::min(saved, kNearlyAll), plan::kRegionShares));
  }
  return text;
}

}  // namespace

std::string plan_text(const plan::Plan& plan, CodeNames& names) {
  return orders_text(plan, names) + regions_text(plan, names);
}

std::string savings_text(const plan::PlanScore& score) {
  std::string text;
  for (const plan::ScoredLevel& level : score.levels) {
    text += saving_sentence(level, score.levels.front().planned.seconds > 0);
  }
  return text;
}

std::string score_text(const plan::PlanScore& score) {
  if (score.levels.empty()) return "\nThe sample has too few pages to tell how much that saves.\n";
  const bool is_timed = score.levels.front().planned.seconds > 0;
  const auto size = [](double pages) { return format_size(static_cast<std::uint64_t>(pages * base::kPageBytes)); };
  const auto cost = [&](const plan::PagerPrediction& one) {
    return size(one.reads) + (is_timed ? fmt::format(", {:.2g} s", one.seconds) : "");
  };
  std::vector<std::vector<std::string>> rows{
      {"memory", "this plan", "no plan", "hottest objects locked", "least recently used", "an oracle"}};
  for (const plan::ScoredLevel& level : score.levels) {
    rows.push_back({fmt::format("{} ({})", format_size(level.memory_bytes), share_text(level.share, 1)),
                    cost(level.planned), cost(level.planless), size(level.locked), size(level.lru), size(level.best)});
  }
  std::string text =
      fmt::format("\nWhat the recorded run would read again in less memory{}, by what is done about it\n{}",
                  is_timed ? ", and how long it would take" : "", aligned(rows));
  text +=
      "The first two are replays of the profile's sample by Farheap's pager; the next two are what kernel swap reads, "
      "with\nthe objects locked that are used most for their size, and without.\n";
  const KnownError& error = kPredictedPolicies[2].seconds;
  if (is_timed && error.programs != 0) {
    text += fmt::format("Times with a plan were wrong by {:.0f} % in the mean of {} programs, most of them too long.\n",
                        error.mean * 100, error.programs);
  }
  return text + savings_text(score);
}

}  // namespace farheap::tool
