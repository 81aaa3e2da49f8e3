// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/memory_curve.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/units.hpp"
#include "plan/lru.hpp"
#include "plan/optimum.hpp"
#include "profile/page_trace.hpp"

namespace farheap::plan {

namespace {

constexpr std::uint64_t kLeastPages = 8, kLeastUsesOfCurve = 16;  // of the sample: less tells nothing

std::vector<profile::PageTraceEntry> entries_of(const profile::Touches& touches) {
  std::vector<profile::PageTraceEntry> entries;
  entries.reserve(touches.words.size());
  for (const std::uint32_t word : touches.words) {
    if (const auto entry = profile::unpack_entry(word)) entries.push_back(*entry);
  }
  return entries;
}

struct Sizes {
  std::uint64_t most = 0;  // pages that had contents at the same time
  std::uint64_t all = 0;   // as SampledTraceHeader::pages counts them
};
Sizes sizes_of(const std::vector<profile::PageTraceEntry>& entries) {
  std::unordered_set<pager::PageNumber> there;
  Sizes sizes;
  for (const auto& entry : entries) {
    if (entry.event == profile::PageEvent::kDropped) {
      there.erase(entry.page);
    } else if (there.insert(entry.page).second) {
      ++sizes.all;
      sizes.most = std::max<std::uint64_t>(sizes.most, there.size());
    }
  }
  return sizes;
}

}  // namespace

MemoryCurve memory_curve(const profile::Touches& touches, unsigned points) {
  MemoryCurve curve;
  const auto entries = entries_of(touches);
  const Uses uses = uses_of(entries);
  const Sizes sizes = sizes_of(entries);
  curve.sampled = sizes.most;
  curve.uses = uses.uses.size();
  curve.pages_for_one = std::exp2(touches.one_in_log2);
  if (sizes.most < kLeastPages || uses.uses.size() < kLeastUsesOfCurve) return curve;
  if (touches.pages != 0) curve.pages_for_one = static_cast<double>(touches.pages) / static_cast<double>(sizes.all);
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
    curve.points.push_back({bytes_of(static_cast<double>(memory)),
                            static_cast<double>(lru_reads(uses, memory)) * curve.pages_for_one,
                            static_cast<double>(optimum(uses, memory).pages_read) * curve.pages_for_one});
  }
  return curve;
}

}  // namespace farheap::plan
