// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory_advice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"
#include "plan/memory_curve.hpp"
#include "plan/pager_curve.hpp"
#include "plan/planner.hpp"
#include "plan_text.hpp"

namespace farheap::tool {

namespace {

constexpr double kFaultUs = 30;  // beside the reading: docs/benchmarks/paging.md
constexpr double kMegabyte = 1e6;
constexpr double kNear = 1.2;
constexpr std::uint64_t kLeastSampled = 48;
constexpr std::uint64_t kBeside = 4 * base::kMiB;  // what a process has beside its heap, and Farheap's own
constexpr double kMostWaiting = 0.5;               // of the run's time

// The least memory in which even waiting for each missed page by itself costs little, and two pages of the sample more,
// because that is how coarse the sizes are. Nothing where it could mislead.
void advise(const profile::Profile& profile, const profile::ProcessProfile& process, MemoryAdvice& advice) {
  const auto pages = [](const profile::ProcessProfile& one) { return !one.touches.words.empty(); };
  if (std::ranges::count_if(profile.processes, pages) > 1) {
    advice.caution = "several processes of the run used much memory, and share the budget: this is one of them alone";
    return;
  }
  if (process.pages_read != 0) {
    advice.caution = "pages left memory while it was recorded: too few uses were seen; record it with more --memory";
    return;
  }
  if (advice.sampled_pages < kLeastSampled) {
    advice.caution =
        "few pages were in the sample: sizes and misses are coarse; record a larger input, or fewer rounds";
    return;
  }
  for (auto point = advice.points.rbegin(); point != advice.points.rend(); ++point) {
    if (point->alone_seconds > kNear * advice.own_seconds) break;
    advice.enough_bytes = point->memory_bytes;
  }
  if (advice.enough_bytes == 0) return;
  advice.enough_bytes += static_cast<std::uint64_t>(2 * advice.pages_for_one) * base::kPageBytes + kBeside;
}

double speed(const std::vector<profile::StoreSpeed>& store, const std::string& name) {
  const auto found = std::ranges::find(store, name, &profile::StoreSpeed::name);
  return found != store.end() ? found->median : 0;
}

constexpr char kReadOne[] = "get 4.0 KiB, single", kReadMany[] = "get 256.0 KiB, sequential, batch";

}  // namespace

bool tells_reading(const std::vector<profile::StoreSpeed>& store) {
  return speed(store, kReadOne) > 0 && speed(store, kReadMany) > 0;
}

// First touches, which any run waits for, are the program's own time.
plan::Speeds speeds_of(const profile::Profile& profile, const profile::ProcessProfile& process, double seconds) {
  const double stalled = process.pages_read != 0 ? static_cast<double>(process.stalled_ns) * 1e-9 : 0;
  const double many = speed(profile.store, kReadMany);
  return {std::max(seconds - stalled, 0.0), many > 0 ? base::kPageBytes / (many * kMegabyte) : 0,
          (speed(profile.store, kReadOne) + kFaultUs) * 1e-6};
}

plan::PlanScore score_of(const profile::Profile& profile, const plan::MadePlan& made, double seconds,
                         const plan::HintPlan* hints) {
  const bool waited = made.process->pages_read != 0;
  return plan::score_plan(made, waited ? plan::Speeds{} : speeds_of(profile, *made.process, seconds), hints);
}

std::string error_text(const KnownError& error) {
  if (error.programs == 0) return "not measured";
  return fmt::format("{:.1f} % of uses", error.mean * 100);
}

std::string seconds_error_text(const KnownError& error) {
  if (error.programs == 0) return "not measured";
  return fmt::format("{:.0f} %", error.mean * 100);
}

MemoryAdvice memory_advice(const profile::Profile& profile, double seconds) {
  MemoryAdvice advice;
  const auto most = std::ranges::max_element(profile.processes, {}, [](const auto& one) { return one.touches.pages; });
  if (most == profile.processes.end() || most->touches.words.empty()) {
    advice.missing = "no process used enough memory for long enough that the order of its pages could be told";
    advice.no_plan = advice.missing;
    return advice;
  }
  advice.process = most->process;
  auto made = plan::make_plan(profile, "it");
  const bool is_planned = made && made->process == &*most;
  if (!is_planned) advice.no_plan = made ? "the plan is of another process" : made.error().why;
  if (is_planned && made->plan.phases.empty()) {
    advice.no_plan = "the plan sorts small objects, and a replay of where they lay does not tell what that saves";
  }
  const auto words_of = [](const plan::Plan& plan) {
    CodeNames names(plan.files);
    return plan_text(plan, names);
  };
  if (made) {
    const plan::PlanScore score = score_of(profile, *made, seconds, nullptr);
    if (score.is_in_vain()) made->plan.phases.clear();
    const bool has_orders = !made->plan.phases.empty();
    if (has_orders || !made->plan.regions.empty()) advice.plan_words = words_of(made->plan);
    if (has_orders) advice.plan_words += savings_text(score);
    if (is_planned && score.is_in_vain()) {
      advice.no_plan = "a replay takes much longer with one (`farheap plan` tells how much)";
    }
  }
  if (most->is_attached) {
    advice.missing =
        "it was recorded in the middle of a run; record it from its start, with more --memory than it needs";
    return advice;
  }
  const double stalled = most->pages_read != 0 ? static_cast<double>(most->stalled_ns) * 1e-9 : 0;
  const plan::Speeds speeds = speeds_of(profile, *most, seconds);
  advice.own_seconds = speeds.own_seconds;
  advice.read_us = speed(profile.store, kReadOne);
  advice.read_mb_per_second = speed(profile.store, kReadMany);
  if (stalled > kMostWaiting * seconds) {
    advice.missing = "the run waited for memory too long to tell what it takes without; record it with more --memory";
    return advice;
  }
  const plan::MemoryCurve curve = plan::memory_curve(most->touches);
  advice.whole_bytes = curve.whole_bytes;
  advice.sampled_pages = curve.sampled;
  advice.uses = curve.uses;
  advice.pages_for_one = curve.pages_for_one;
  if (curve.points.empty()) {
    advice.missing = "too few pages were seen to be used again";
    return advice;
  }
  if (advice.read_mb_per_second <= 0) {
    advice.missing = "the speed of the store is not in the profile";
    return advice;
  }
  const auto ahead = [&](double misses) {
    const double reading = misses * base::kPageBytes / (advice.read_mb_per_second * kMegabyte);
    return std::max(advice.own_seconds, reading);
  };
  const std::vector<plan::PagerPrediction> farheap = plan::pager_curve(most->touches, curve, speeds);
  const std::vector<plan::PagerPrediction> planned =
      advice.no_plan.empty() ? plan::pager_curve(most->touches, curve, speeds, &*made) : farheap;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const plan::MemoryPoint& point = curve.points[i];
    MemoryPrediction one;
    one.memory_bytes = point.memory_bytes;
    one.lru_misses = point.lru_misses;
    one.farheap_misses = farheap[i].reads;
    one.best_misses = point.best_misses;
    one.ahead_seconds = ahead(one.lru_misses);
    one.alone_seconds = advice.own_seconds + one.lru_misses * (advice.read_us + kFaultUs) * 1e-6;
    one.farheap_seconds = farheap[i].seconds;
    one.planned_misses = planned[i].reads;
    one.planned_seconds = planned[i].seconds;
    one.best_seconds = ahead(one.best_misses);
    advice.points.push_back(one);
  }
  advise(profile, *most, advice);
  return advice;
}

}  // namespace farheap::tool
