// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/memory_curve.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/units.hpp"
#include "pager/page_trace.hpp"
#include "plan/lru.hpp"
#include "plan/optimum.hpp"

namespace farheap::plan {

namespace {

constexpr std::uint64_t kLeastPages = 8, kLeastUses = 16;  // of the sample: less tells nothing

std::vector<pager::PageTraceEntry> entries_of(const profile::Touches& touches) {
  std::vector<pager::PageTraceEntry> entries;
  entries.reserve(touches.words.size());
  for (const std::uint32_t word : touches.words) {
    if (const auto entry = pager::unpack_entry(word)) entries.push_back(*entry);
  }
  return entries;
}

struct Sizes {
  std::uint64_t most = 0;   // pages that had contents at the same time
  std::uint64_t all = 0;    // as SampledTraceHeader::pages counts them
  std::uint64_t again = 0;  // uses that were not the first
};
Sizes sizes_of(const std::vector<pager::PageTraceEntry>& entries) {
  std::unordered_set<pager::PageNumber> there;
  Sizes sizes;
  for (const auto& entry : entries) {
    if (entry.event == pager::PageEvent::kDropped) {
      there.erase(entry.page);
    } else if (there.insert(entry.page).second) {
      ++sizes.all;
      sizes.most = std::max<std::uint64_t>(sizes.most, there.size());
    } else if (entry.event == pager::PageEvent::kCame) {
      ++sizes.again;
    }
  }
  return sizes;
}

double pages_for_one(const profile::Touches& touches, const Sizes& sizes) {
  if (touches.pages == 0 || sizes.all == 0) return std::exp2(touches.one_in_log2);
  return static_cast<double>(touches.pages) / static_cast<double>(sizes.all);
}

}  // namespace

CurveSample curve_sample(const profile::ProcessProfile& process) {
  constexpr std::uint64_t kEnoughPages = 256, kTimes = 2;
  constexpr double kAll = 0.9;
  CurveSample sample{process.touches};
  const Sizes whole = sizes_of(entries_of(process.touches));
  if (whole.most >= kEnoughPages) return sample;
  const Sizes begin = sizes_of(entries_of(process.detailed));
  const auto of_all = [](std::uint64_t pages, double for_one) { return static_cast<double>(pages) * for_one; };
  const double for_one = pages_for_one(process.touches, whole);
  CurveSample detailed{process.detailed};
  // If it has all pages, their number is known better than by what was drawn.
  const double drawn = std::exp2(process.detailed.one_in_log2);
  if (of_all(begin.most, drawn) < kAll * of_all(whole.most, for_one)) return sample;
  if (begin.again < kTimes * begin.most) return sample;
  if (begin.all == begin.most && whole.all == whole.most) detailed.touches.pages = process.touches.pages;
  const double seen = of_all(begin.again, pages_for_one(detailed.touches, begin));
  detailed.times = std::max(of_all(whole.again, for_one) / seen, 1.0);
  return detailed;
}

MemoryCurve memory_curve(const CurveSample& sample, unsigned points) {
  const profile::Touches& touches = sample.touches;
  MemoryCurve curve;
  const auto entries = entries_of(touches);
  const Uses uses = uses_of(entries);
  const Sizes sizes = sizes_of(entries);
  curve.sampled = sizes.most;
  curve.uses = uses.uses.size();
  curve.times = sample.times;
  curve.pages_for_one = pages_for_one(touches, sizes);
  if (sizes.most < kLeastPages || uses.uses.size() < kLeastUses) return curve;
  const double each = curve.pages_for_one * sample.times;
  const auto bytes_of = [&](double sampled) {
    return static_cast<std::uint64_t>(std::llround(sampled * curve.pages_for_one)) * base::kPageBytes;
  };
  curve.whole_bytes = bytes_of(static_cast<double>(sizes.most));
  std::uint64_t before = 0;
  for (unsigned i = 1; i <= points; ++i) {
    const double share = static_cast<double>(i) / points;
    const auto memory = static_cast<std::uint64_t>(std::llround(share * static_cast<double>(sizes.most)));
    if (memory <= std::max<std::uint64_t>(before, touches.window)) continue;
    before = memory;
    curve.points.push_back({bytes_of(static_cast<double>(memory)), static_cast<double>(lru_reads(uses, memory)) * each,
                            static_cast<double>(optimum(uses, memory).pages_read) * each});
  }
  return curve;
}

}  // namespace farheap::plan
