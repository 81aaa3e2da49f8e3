// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/heat_table.hpp"

#include <algorithm>

namespace farheap::base {

HeatCounts& HeatCounts::operator+=(const HeatCounts& more) {
  for (std::size_t i = 0; i < kHeatKinds; ++i) values[i] += more.values[i];
  return *this;
}

HeatCounts HeatCounts::since(const HeatCounts& before) const {
  HeatCounts result = *this;
  for (std::size_t i = 0; i < kHeatKinds; ++i) {
    if (values[i] >= before.values[i]) result.values[i] -= before.values[i];
  }
  return result;
}

bool HeatCounts::any() const {
  return std::any_of(values.begin(), values.end(), [](std::uint64_t value) { return value != 0; });
}

std::uint64_t HeatCounts::faults() const {
  return (*this)[Heat::kFresh] + (*this)[Heat::kProbation] + (*this)[Heat::kStore] + (*this)[Heat::kWaited];
}

void HeatTable::Snapshot::widen_to(std::uint64_t bytes) {
  if (range_bytes == 0) range_bytes = bytes;
  for (; range_bytes < bytes; range_bytes *= 2) {
    for (std::size_t i = 0; i < kRanges; ++i) {
      const HeatCounts counts = ranges[i];
      ranges[i] = {};
      ranges[i / 2] += counts;
    }
  }
}

HeatCounts HeatTable::Snapshot::total() const {
  HeatCounts sum;
  for (const auto& range : ranges) sum += range;
  return sum;
}

void HeatTable::start(std::int32_t pid) {
  for (auto& range : ranges_) {
    for (auto& value : range.counts) value.store(0, std::memory_order_relaxed);
  }
  version_.store(0, std::memory_order_relaxed);
  shift_.store(kFirstShift, std::memory_order_relaxed);
  pid_.store(pid, std::memory_order_release);
}

// kRanges and more: beyond them.
std::size_t HeatTable::range_of(std::uint64_t offset) const {
  const std::uint32_t shift = shift_.load(std::memory_order_relaxed);
  return shift < 64 ? offset >> shift : 0;
}

void HeatTable::count(std::uint64_t offset, Heat kind, std::uint64_t by) {
  std::size_t at = range_of(offset);
  if (at >= kRanges) {
    widen(offset);
    at = std::min(range_of(offset), kRanges - 1);
  }
  ranges_[at].counts[static_cast<unsigned>(kind)].fetch_add(by, std::memory_order_relaxed);
}

void HeatTable::widen(std::uint64_t offset) {
  constexpr int kTries = 1'000'000;  // somebody doubles them, which takes no such time
  std::uint32_t version = version_.load() & ~1U;
  for (int i = 0; !version_.compare_exchange_weak(version, version + 1); ++i) {  // one at a time
    if (i == kTries) return;
    version &= ~1U;
  }
  for (int doubled = 0; doubled < 64 && range_of(offset) >= kRanges; ++doubled) {
    shift_.fetch_add(1, std::memory_order_relaxed);
    for (std::size_t i = 1; i < kRanges; ++i) {
      for (std::size_t kind = 0; kind < kHeatKinds; ++kind) {
        const std::uint64_t value = ranges_[i].counts[kind].exchange(0, std::memory_order_relaxed);
        if (value != 0) ranges_[i / 2].counts[kind].fetch_add(value, std::memory_order_relaxed);
      }
    }
  }
  version_.store(version + 2);
}

// Acquiring loads: the look at the version that follows stays behind them.
HeatTable::Snapshot HeatTable::copy() const {
  Snapshot result;
  result.pid = pid_.load(std::memory_order_acquire);
  const std::uint32_t shift = shift_.load(std::memory_order_acquire);
  result.range_bytes = shift < 64 && shift != 0 ? std::uint64_t{1} << shift : 0;
  for (std::size_t i = 0; i < kRanges; ++i) {
    for (std::size_t kind = 0; kind < kHeatKinds; ++kind) {
      result.ranges[i].values[kind] = ranges_[i].counts[kind].load(std::memory_order_acquire);
    }
  }
  return result;
}

std::uint64_t HeatTable::sum(Heat kind) const {
  std::uint64_t sum = 0;
  for (const auto& range : ranges_) sum += range.counts[static_cast<unsigned>(kind)].load(std::memory_order_relaxed);
  return sum;
}

HeatTable::Snapshot HeatTable::read() const {
  constexpr int kTries = 100;  // a process that was killed while its ranges doubled never ends that
  Snapshot result;
  for (int i = 0; i < kTries; ++i) {
    const std::uint32_t before = version_.load(std::memory_order_acquire);
    result = copy();
    if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) break;
  }
  return result;
}

}  // namespace farheap::base
