// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory_advice.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "plan/memory_curve.hpp"

namespace farheap::tool {

namespace {

constexpr double kFaultUs = 30;  // beside the reading: docs/benchmarks/faults.md
constexpr double kMegabyte = 1e6;
constexpr double kNear = 1.1;
constexpr double kMostWaiting = 0.5;  // of the run's time

double speed(const profile::Profile& profile, const std::string& name) {
  const auto found = std::ranges::find(profile.store, name, &profile::StoreSpeed::name);
  return found != profile.store.end() ? found->median : 0;
}

}  // namespace

MemoryAdvice memory_advice(const profile::Profile& profile, double seconds) {
  MemoryAdvice advice;
  const auto most = std::ranges::max_element(profile.processes, {}, [](const auto& one) { return one.touches.pages; });
  if (most == profile.processes.end() || most->touches.words.empty()) {
    advice.missing = "no process used enough memory for long enough that the order of its pages could be told";
    return advice;
  }
  advice.process = most->process;
  // First touches, which any run waits for, are the program's own time.
  const double stalled = most->pages_read != 0 ? static_cast<double>(most->stalled_ns) * 1e-9 : 0;
  advice.own_seconds = std::max(seconds - stalled, 0.0);
  advice.read_us = speed(profile, "get 4.0 KiB, single");
  advice.read_mb_per_second = speed(profile, "get 256.0 KiB, sequential, batch");
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
  for (const plan::MemoryPoint& point : curve.points) {
    advice.points.push_back({point.memory_bytes, point.lru_misses, point.best_misses, ahead(point.lru_misses),
                             advice.own_seconds + point.lru_misses * (advice.read_us + kFaultUs) * 1e-6,
                             ahead(point.best_misses)});
  }
  for (auto point = advice.points.rbegin(); point != advice.points.rend(); ++point) {
    if (point->ahead_seconds > kNear * advice.own_seconds) break;
    advice.knee_bytes = point->memory_bytes;
  }
  return advice;
}

}  // namespace farheap::tool
