// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>

#include "base/options.hpp"
#include "base/units.hpp"
#include "terminal.hpp"

namespace farheap::tool {

namespace {

using base::format_size;

constexpr std::size_t kLinesShown = 12, kTopSites = 12;
constexpr double kMostOfIt = 0.8;

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }
std::string seconds_text(double seconds) { return fmt::format("{:.2f} s", seconds); }

// How many of the innermost frames two stacks have in common.
std::size_t common_frames(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  const auto apart = std::ranges::mismatch(one | std::views::reverse, other | std::views::reverse);
  return static_cast<std::size_t>(apart.in1 - (one | std::views::reverse).begin());
}

// The caller, and behind it the first frame by which the stack differs from each other one that is shown: programs
// often allocate by a function of their own, and all sites have its line.
std::string called_from(const std::vector<std::string>& stack, const std::vector<SiteFigures>& sites) {
  if (stack.size() < 2) return {};
  std::size_t deepest = 1;
  for (std::size_t i = 0; i < std::min(sites.size(), kTopSites); ++i) {
    if (sites[i].stack == stack) continue;
    deepest = std::max(deepest, std::min(common_frames(stack, sites[i].stack), stack.size() - 1));
  }
  const auto frame = [&](std::size_t depth) {
    return shortened(printable(stack[stack.size() - 1 - depth]), kTextWidth);
  };
  if (deepest == 1) return frame(1);
  return fmt::format("{},{} from {}", frame(1), deepest == 2 ? "" : " ...", frame(deepest));
}

bool has_several_stacks(const std::string& site, const std::vector<SiteFigures>& sites) {
  return std::ranges::count(sites, site, &SiteFigures::site) > 1;
}

std::string most_for_text(const LineFigures& line, const std::vector<SiteFigures>& sites) {
  std::string text = shortened(printable(line.most_for), kTextWidth);
  if (!has_several_stacks(line.most_for, sites)) return text;
  const std::string caller = called_from(line.most_for_stack, sites);
  return caller.empty() ? text : text + ", from " + caller;
}

std::string lines_table(const ProfileFigures& figures) {
  std::vector<std::vector<std::string>> rows{{"waited", "share", "faults", "read", "line", "for pages of"}};
  for (const LineFigures& line : figures.lines) {
    if (rows.size() > kLinesShown) break;
    rows.push_back({seconds_text(line.waits.seconds), percent(line.waits.seconds / figures.all.seconds),
                    fmt::format("{:.0f}", line.waits.faults), format_size(line.waits.bytes_read),
                    shortened(printable(line.line), kTextWidth), most_for_text(line, figures.sites)});
  }
  return rows.size() == 1 ? std::string() : "\nWhere threads waited\n" + aligned(rows);
}

std::string sites_table(const ProfileFigures& figures) {
  std::vector<std::vector<std::string>> rows{
      {"peak", "at the end", "objects", "touched", "waited", "allocated at", "called from"}};
  for (const SiteFigures& site : figures.sites) {
    if (rows.size() > kTopSites) break;
    rows.push_back({format_size(site.peak_bytes), format_size(site.live_bytes), fmt::format("{:.0f}", site.objects),
                    percent(site.touched), seconds_text(site.waits.seconds),
                    shortened(printable(site.site), kTextWidth), called_from(site.stack, figures.sites)});
  }
  return rows.size() == 1 ? std::string() : "\nWhat they waited for, by where it was allocated\n" + aligned(rows);
}

std::string order_text(const std::vector<std::uint32_t>& order) {
  constexpr std::size_t kShown = 32;
  std::string text;
  for (std::size_t i = 0; i < std::min(order.size(), kShown); ++i) text += fmt::format(" {}", order[i] + 1);
  return text + (order.size() > kShown ? fmt::format(", and {} more", order.size() - kShown) : "");
}

// A column a phase.
std::string phases_table(const PhaseFigures& figures) {
  if (figures.phases.empty()) return {};
  double all = 0;
  for (const PhaseFigures::Phase& phase : figures.phases) all += static_cast<double>(phase.uses);
  std::vector<std::string> numbers, visits, shares;
  for (const PhaseFigures::Phase& phase : figures.phases) {
    numbers.push_back(fmt::format("phase {}", numbers.size() + 1));
    visits.push_back(fmt::format("{}", phase.visits));
    shares.push_back(percent(static_cast<double>(phase.uses) / all));
  }
  numbers.emplace_back("");
  visits.emplace_back("times that it came");
  shares.emplace_back("of all uses");
  std::vector<std::vector<std::string>> rows{numbers, visits, shares};
  for (std::size_t site = 0; site < figures.sites.size(); ++site) {
    if (site >= kTopSites && site + 1 < figures.sites.size()) continue;
    std::vector<std::string> row;
    row.reserve(figures.phases.size() + 1);
    for (const PhaseFigures::Phase& phase : figures.phases) {
      row.push_back(percent(static_cast<double>(phase.of_site[site]) / static_cast<double>(phase.uses)));
    }
    row.push_back("of its uses: " + shortened(printable(figures.sites[site]), kTextWidth));
    rows.push_back(std::move(row));
  }
  return fmt::format(
      "\nWhat process {} used when, told from the order of uses of one page in {}\n{}Phases came so:{}\n",
      figures.process, figures.pages_for_one, aligned(rows), order_text(figures.order));
}

nlohmann::ordered_json phases_json(const PhaseFigures& figures) {
  if (figures.phases.empty()) return nullptr;
  auto phases = nlohmann::ordered_json::array();
  for (const PhaseFigures::Phase& phase : figures.phases) {
    phases.push_back({{"visits", phase.visits}, {"uses", phase.uses}, {"of_site", phase.of_site}});
  }
  return {{"process", figures.process},
          {"pages_for_one", figures.pages_for_one},
          {"sites", figures.sites},
          {"phases", std::move(phases)},
          {"order", figures.order}};
}

nlohmann::ordered_json waits_json(const Waits& waits) {
  return {{"faults", std::llround(waits.faults)}, {"stall_seconds", waits.seconds}, {"bytes_read", waits.bytes_read}};
}

double weight_of(const SiteFigures& site, Weight weight) {
  switch (weight) {
    case Weight::kWaits: return site.waits.seconds * 1e6;
    case Weight::kPeak: return static_cast<double>(site.peak_bytes);
    case Weight::kAllocated: return static_cast<double>(site.allocated_bytes);
  }
  return 0;
}

// A ';' in a name would part it.
std::string folded_name(std::string name) {
  std::ranges::replace(name, ';', ':');
  return name;
}

std::vector<std::string> whole_stack(const SiteFigures& site) {
  return site.stack.empty() ? std::vector<std::string>{site.site} : site.stack;
}

std::string policies_text(const MemoryAdvice& advice) {
  std::string text;
  for (const PredictedPolicy& one : kPredictedPolicies) {
    if (one.key == "planned" && !advice.no_plan.empty()) {
      text += fmt::format("No figures of a plan: {}.\n", printable(advice.no_plan));
      continue;
    }
    text += fmt::format("{}: {}", one.name, one.leaves);
    if (one.misses.programs != 0) {
      text += fmt::format(" (misses were wrong by {:.1f} % of uses at the most, in {} programs)", one.misses.most * 100,
                          one.misses.programs);
    }
    text += ".\n";
  }
  return text;
}

nlohmann::ordered_json error_json(const KnownError& error) {
  if (error.programs == 0) return nullptr;
  return {{"programs", error.programs}, {"mean", error.mean}, {"most", error.most}};
}

nlohmann::ordered_json policies_json() {
  auto policies = nlohmann::ordered_json::array();
  for (const PredictedPolicy& one : kPredictedPolicies) {
    policies.push_back({{"key", one.key},
                        {"name", one.name},
                        {"leaves", one.leaves},
                        {"misses_error", error_json(one.misses)},
                        {"seconds_error", error_json(one.seconds)}});
  }
  return policies;
}

}  // namespace

std::string waits_summary(const ProfileFigures& figures) {
  if (figures.all.faults == 0) return "No thread waited for a page: the program fitted into its memory.";
  double covered = 0;
  std::size_t count = 0;
  while (count < figures.lines.size() && covered < kMostOfIt * figures.all.seconds) {
    covered += figures.lines[count++].waits.seconds;
  }
  std::string text =
      fmt::format("Threads waited {} for {:.0f} pages.", seconds_text(figures.all.seconds), figures.all.faults);
  if (figures.all.bytes_read == 0) {
    return text +
           " None was read: all were still in memory, where the recording looked which are used. Record with less "
           "--memory to see what waits for the store.";
  }
  if (covered <= 0) return text;
  const double share = covered / figures.all.seconds;
  return text + (count == 1 ? fmt::format(" One line cost {} of that.", percent(share))
                            : fmt::format(" {} lines cost {} of that.", count, percent(share)));
}

std::string heap_summary(const ProfileFigures& figures) {
  if (figures.is_attached) {
    return fmt::format("What was allocated meanwhile held about {} at the most.", format_size(figures.peak_bytes));
  }
  if (figures.processes < 2) {
    return fmt::format("Its heap held about {} at the most.", format_size(figures.peak_bytes));
  }
  return fmt::format(
      "The heaps of its {} processes held about {} at the most, added up; a child's has what it shares with its "
      "parent.",
      figures.processes, format_size(figures.peak_bytes));
}

std::string profile_text(const ProfileFigures& figures) {
  std::string text = waits_summary(figures) + "\n" + heap_summary(figures) + "\n";
  for (const std::string& note : figures.notes) text += "Note: " + printable(note) + ".\n";
  text += lines_table(figures) + sites_table(figures) + phases_table(figures.phases);
  if (figures.without_place > 0.01) {
    text += fmt::format("\nOf {} of the faults the kernel did not tell the line.\n", percent(figures.without_place));
  }
  return text;
}

nlohmann::ordered_json profile_json(const ProfileFigures& figures) {
  auto lines = nlohmann::ordered_json::array();
  for (const LineFigures& line : figures.lines) {
    auto one = waits_json(line.waits);
    one["line"] = line.line;
    one["most_for"] = line.most_for;
    one["most_for_share"] = line.most_for_share;
    lines.push_back(std::move(one));
  }
  auto sites = nlohmann::ordered_json::array();
  for (const SiteFigures& site : figures.sites) {
    auto one = waits_json(site.waits);
    one["site"] = site.site;
    one["stack"] = site.stack;
    one["objects"] = std::llround(site.objects);
    one["allocated_bytes"] = site.allocated_bytes;
    one["live_bytes"] = site.live_bytes;
    one["peak_bytes"] = site.peak_bytes;
    one["touched"] = site.touched;
    sites.push_back(std::move(one));
  }
  return {{"waits", waits_json(figures.all)},
          {"estimated", waits_json(figures.in_sample)},
          {"without_place", figures.without_place},
          {"heap_peak_bytes", figures.peak_bytes},
          {"lines", std::move(lines)},
          {"sites", std::move(sites)},
          {"phases", phases_json(figures.phases)},
          {"notes", figures.notes}};
}

std::string advice_text(const MemoryAdvice& advice) {
  std::string text = "\nHow much memory is enough\n";
  if (!advice.missing.empty()) return text + "  not known: " + advice.missing + "\n";
  const bool is_planned = advice.no_plan.empty();
  std::vector<std::vector<std::string>> rows{
      {"memory", "share", "LRU misses", "reading ahead", "page by page", "Farheap misses", "Farheap time"}};
  if (is_planned) rows[0].insert(rows[0].end(), {"plan misses", "plan time"});
  rows[0].insert(rows[0].end(), {"oracle misses", "reading ahead"});
  for (const MemoryPrediction& point : advice.points) {
    rows.push_back({format_size(point.memory_bytes),
                    percent(static_cast<double>(point.memory_bytes) / static_cast<double>(advice.whole_bytes)),
                    fmt::format("{:.0f}", point.lru_misses), seconds_text(point.ahead_seconds),
                    seconds_text(point.alone_seconds), fmt::format("{:.0f}", point.farheap_misses),
                    seconds_text(point.farheap_seconds)});
    if (is_planned) {
      rows.back().insert(rows.back().end(),
                         {fmt::format("{:.0f}", point.planned_misses), seconds_text(point.planned_seconds)});
    }
    rows.back().insert(rows.back().end(), {fmt::format("{:.0f}", point.best_misses), seconds_text(point.best_seconds)});
  }
  const auto& [lru, farheap, plan, best] = kPredictedPolicies;
  const std::string none = error_text({});
  rows.push_back({"known error", "", error_text(lru.misses), none, none, error_text(farheap.misses),
                  seconds_error_text(farheap.seconds)});
  if (is_planned) rows.back().insert(rows.back().end(), {error_text(plan.misses), seconds_error_text(plan.seconds)});
  rows.back().insert(rows.back().end(), {error_text(best.misses), none});
  text += aligned(rows);
  text += policies_text(advice);
  text += fmt::format(
      "Process {}: its own work took {}. The store reads a page in {:.0f} us, and {:.0f} MB/s in large pieces. {}\n"
      "told by a replay, in which the program works while the store reads and writes. The other times are those of "
      "reading alone. A\npager's own work is in none of them. Told from {} uses of {} pages, each for {:.0f}.\n",
      advice.process, seconds_text(advice.own_seconds), advice.read_us, advice.read_mb_per_second,
      is_planned ? "Farheap and plan time are" : "Farheap time is", advice.uses, advice.sampled_pages,
      advice.pages_for_one);
  if (!advice.caution.empty()) text += "No budget is recommended: " + advice.caution + ".\n";
  if (advice.enough_bytes != 0) {
    const std::uint64_t budget = std::max(advice.enough_bytes, base::kLeastBudgetBytes);
    text +=
        fmt::format("Enough, even page by page: farheap run --memory {}M\n", (budget + base::kMiB - 1) / base::kMiB);
  }
  return text;
}

std::string plan_text(const MemoryAdvice& advice) {
  if (advice.plan_words.empty()) return {};
  return "\nThe plan that `farheap plan` makes of this\n" + advice.plan_words;
}

nlohmann::ordered_json advice_json(const MemoryAdvice& advice) {
  auto points = nlohmann::ordered_json::array();
  const auto planned = [&](double figure) {
    return advice.no_plan.empty() ? nlohmann::ordered_json(figure) : nlohmann::ordered_json();
  };
  for (const MemoryPrediction& point : advice.points) {
    points.push_back({{"memory_bytes", point.memory_bytes},
                      {"lru_misses", point.lru_misses},
                      {"farheap_misses", point.farheap_misses},
                      {"best_misses", point.best_misses},
                      {"ahead_seconds", point.ahead_seconds},
                      {"alone_seconds", point.alone_seconds},
                      {"farheap_seconds", point.farheap_seconds},
                      {"planned_misses", planned(point.planned_misses)},
                      {"planned_seconds", planned(point.planned_seconds)},
                      {"best_seconds", point.best_seconds}});
  }
  return {{"process", advice.process},
          {"whole_bytes", advice.whole_bytes},
          {"own_seconds", advice.own_seconds},
          {"sampled_pages", advice.sampled_pages},
          {"uses", advice.uses},
          {"pages_for_one", advice.pages_for_one},
          {"read_us", advice.read_us},
          {"read_mb_per_second", advice.read_mb_per_second},
          {"enough_bytes", advice.enough_bytes},
          {"caution", advice.caution},
          {"missing", advice.missing},
          {"no_plan", advice.no_plan},
          {"plan_words", advice.plan_words},
          {"policies", policies_json()},
          {"points", std::move(points)}};
}

std::string profile_folded(const ProfileFigures& figures, Weight weight) {
  std::string text;
  for (const SiteFigures& site : figures.sites) {
    const auto value = std::llround(weight_of(site, weight));
    if (value == 0) continue;
    std::string stack;
    for (const std::string& frame : whole_stack(site)) {
      stack += (stack.empty() ? "" : ";") + printable(folded_name(frame));
    }
    text += fmt::format("{} {}\n", stack, value);
  }
  return text;
}

std::string profile_speedscope(const ProfileFigures& figures, const std::string& name) {
  using nlohmann::ordered_json;
  std::map<std::string, std::size_t> numbers;
  auto frames = ordered_json::array();
  std::vector<ordered_json> stacks;
  for (const SiteFigures& site : figures.sites) {
    auto stack = ordered_json::array();
    for (const std::string& frame : whole_stack(site)) {
      const auto [found, is_new] = numbers.try_emplace(frame, numbers.size());
      if (is_new) frames.push_back({{"name", frame}});
      stack.push_back(found->second);
    }
    stacks.push_back(std::move(stack));
  }
  auto profiles = ordered_json::array();
  const auto add = [&](const char* title, const char* unit, Weight weight) {
    auto samples = ordered_json::array(), weights = ordered_json::array();
    double sum = 0;
    for (std::size_t i = 0; i < stacks.size(); ++i) {
      const double value = weight_of(figures.sites[i], weight);
      if (value <= 0) continue;
      samples.push_back(stacks[i]);
      weights.push_back(value);
      sum += value;
    }
    profiles.push_back({{"type", "sampled"},
                        {"name", title},
                        {"unit", unit},
                        {"startValue", 0},
                        {"endValue", sum},
                        {"samples", std::move(samples)},
                        {"weights", std::move(weights)}});
  };
  add("waited for what was allocated there", "microseconds", Weight::kWaits);
  add("held at the most", "bytes", Weight::kPeak);
  add("allocated", "bytes", Weight::kAllocated);
  const ordered_json whole = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                              {"name", name},
                              {"exporter", "farheap"},
                              {"shared", {{"frames", std::move(frames)}}},
                              {"profiles", std::move(profiles)}};
  return whole.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace farheap::tool
