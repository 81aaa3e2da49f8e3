// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run_sample.hpp"

#include <algorithm>
#include <chrono>

#include "base/clock.hpp"
#include "os/run_memory.hpp"
#include "process_facts.hpp"

namespace farheap::tool {
namespace {

double seconds_since(std::int64_t started_ns) {
  const auto now = base::Clock::now().time_since_epoch();
  const std::chrono::duration<double> age = now - std::chrono::nanoseconds(started_ns);
  return std::max(0.0, age.count());  // whatever a stranger's page says
}

}  // namespace

CounterValues counter_values(const base::RunCounters& counters) {
  CounterValues values;
  values.processes = counters.processes.load();
  values.paging_processes = counters.paging_processes.load();
  values.faults = counters.faults.load();
  values.faults_fresh = counters.faults_fresh.load();
  values.faults_probation = counters.faults_probation.load();
  values.faults_store = counters.faults_store.load();
  values.faults_waited = counters.faults_waited.load();
  values.bytes_read = counters.bytes_read.load();
  values.bytes_written = counters.bytes_written.load();
  values.bytes_read_ahead = counters.bytes_read_ahead.load();
  values.pages_dropped_clean = counters.pages_dropped_clean.load();
  values.stall_ns = counters.stall_ns.load();
  values.stall_no_room_ns = counters.stall_no_room_ns.load();
  values.store_full_waits = counters.store_full_waits.load();
  values.peak_bytes = counters.peak_bytes.load();
  values.failed_starts = counters.failed_starts.load();
  values.guard_fetches = counters.guard_fetches.load();
  values.faults_packed = counters.faults_packed.load();
  values.touches_expected = counters.touches_expected.load();
  values.touches_unexpected = counters.touches_unexpected.load();
  values.orders_given_up = counters.orders_given_up.load();
  values.orders_too_dear = counters.orders_too_dear.load();
  values.plans_met = counters.plans_met.load();
  values.region_bytes = counters.region_bytes.load();
  values.region_spare_bytes = counters.region_spare_bytes.load();
  values.order_bytes_read = counters.order_bytes_read.load();
  values.order_bytes_expected = counters.order_bytes_expected.load();
  return values;
}

Sample Sampler::take() {
  Sample sample;
  sample.seconds = seconds_since(page_.started_ns.load());
  sample.budget_bytes = page_.budget_bytes.load();
  sample.heap_address = page_.heap_address.load();
  for (std::size_t i = 0; i < base::RunPage::kSlots; ++i) {
    const base::RunSlot& slot = page_.slots[i];
    const std::uint32_t heats = slot.heats.load(std::memory_order_acquire);
    base::HeatTable::Snapshot heat;
    if (heats != 0) {
      heat = page_.heat(i).read();
      if (seen_[i].heats != heats) seen_[i] = {heats, {}};
      add_ranges(sample, i, heat);
    }
    const std::uint64_t bytes = os::held_bytes(page_, slot);
    if (bytes == 0) continue;
    const int pid = slot.pid();
    const bool paging = slot.watched.load() != 0 && heat.pid == pid;
    sample.resident_bytes += bytes;
    // Of one in another pid namespace, the number is the one that it has there.
    const std::string name = page_.is_in_own_namespace(slot) ? name_of(pid) : "(in a pid namespace)";
    sample.processes.push_back({pid, name, bytes, paging, paging ? heat.total() : base::HeatCounts{}});
  }
  sample.counters = counter_values(page_.counters);
  // Any process of the run can write to them.
  if (!sample.counters.not_below(counters_)) {
    sample.counters = counters_;
    fell_ = true;
  }
  counters_ = sample.counters;
  sample.counters_fell = fell_;
  return sample;
}

void Sampler::add_ranges(Sample& sample, std::size_t slot, const base::HeatTable::Snapshot& now) {
  const bool is_possible = now.range_bytes != 0 && now.range_bytes <= kMostOffset / base::HeatTable::kRanges;
  if (now.pid <= 0 || !is_possible) return;  // no process of Farheap wrote that
  auto& before = seen_[slot].heat;
  before.widen_to(now.range_bytes);
  for (std::size_t i = 0; i < now.ranges.size(); ++i) {
    const auto counts = now.ranges[i].since(before.ranges[i]);
    if (counts.any()) sample.ranges.push_back({now.pid, i * now.range_bytes, now.range_bytes, counts});
  }
  before = now;
}

}  // namespace farheap::tool
