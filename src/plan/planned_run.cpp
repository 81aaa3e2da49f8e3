// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/planned_run.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/inside_runtime.hpp"
#include "base/log.hpp"
#include "profile/recording.hpp"
#include "segment/at_the_tables.hpp"

namespace farheap::plan {

using profile::kLargeObjectBytes;
using profile::SiteId;

namespace {

// Objects come in groups: who is told of each of them would be told of the last one late.
constexpr std::chrono::milliseconds kGroup{2};
constexpr int kRest = 10;            // times what making an order took, before the next one
constexpr std::uint8_t kMany = 255;  // objects begin in a piece; so many are never counted off again

}  // namespace

Result<std::unique_ptr<PlannedRun>> PlannedRun::make(Plan plan, std::span<const std::byte> heap,
                                                     std::uint64_t most_visits) {
  auto sites = profile::CallSites::make(kPlannedStacks);
  if (!sites) return fail(std::move(sites.error()));
  auto begins = os::ReservedArray<std::atomic<std::uint8_t>>::make(heap.size() / kLargeObjectBytes + 1);
  if (!begins) return fail(std::move(begins.error()));
  std::unique_ptr<PlannedRegions> regions;
  if (!plan.regions.empty()) {
    auto made = PlannedRegions::make(plan, heap);
    if (!made) return fail(std::move(made.error()));
    regions = std::move(*made);
  }
  std::unique_ptr<PlannedRun> run(
      new PlannedRun(std::move(plan), heap, most_visits, std::move(*sites), std::move(*begins)));
  run->regions_ = std::move(regions);
  return run;
}

PlannedRun::PlannedRun(Plan plan, std::span<const std::byte> heap, std::uint64_t most_visits, profile::CallSites sites,
                       os::ReservedArray<std::atomic<std::uint8_t>> begins)
    : plan_(std::move(plan)),
      objects_(plan_.phases.size()),
      heap_(heap),
      most_visits_(most_visits),
      sites_(std::move(sites)),
      begins_(std::move(begins)),
      phase_(plan_.phases.size()) {
  for (std::size_t phase = 0; phase < plan_.phases.size(); ++phase) {
    const std::vector<PlannedObject>& objects = plan_.phases[phase].objects;
    for (std::uint32_t i = 0; i < objects.size(); ++i) {
      objects_[phase].try_emplace({objects[i].site, objects[i].number}, i);
    }
  }
}

bool PlannedRun::wait_for_change(base::Clock::duration at_most) {
  {
    base::LockGuard lock(mutex_);
    const auto is_changed = [this]() FARHEAP_REQUIRES(mutex_) { return !is_told_; };
    if (!changed_.wait_for(mutex_, at_most, is_changed)) return false;
  }
  base::sleep_for(std::max<base::Clock::duration>(kGroup, kRest * took_));
  return true;
}

std::vector<LiveObject> PlannedRun::living_objects() const {
  const Objects& of_phase = objects_[phase_.now()];
  std::vector<LiveObject> objects;
  for (const auto& [first, living] : living_) {
    const auto found = of_phase.find({living.site, living.number});
    if (found != of_phase.end()) objects.push_back({found->second, first, living.bytes});
  }
  return objects;
}

std::shared_ptr<const pager::PageOrder> PlannedRun::order() {
  if (plan_.phases.empty()) return nullptr;
  std::vector<LiveObject> objects;
  for (std::size_t i = 0; i <= plan_.phases.size() && objects.empty() && (i == 0 || phase_.go_on()); ++i) {
    base::LockGuard lock(mutex_);  // for each anew: whoever allocates waits for it
    is_told_ = true;
    objects = living_objects();
  }
  const std::size_t now = phase_.now();
  const PlannedPhase& phase = plan_.phases[now];
  if (objects == told_ && now == told_phase_) return order_;
  const auto since = base::Clock::now();
  told_ = std::move(objects);
  told_phase_ = now;
  order_ = nullptr;
  if (most_visits(phase, told_) <= most_visits_) {
    if (!told_.empty()) order_ = std::make_shared<const pager::PageOrder>(order_of(phase, told_));
  } else if (!std::exchange(has_warned_, true)) {
    base::log(base::LogLevel::kWarn, "the plan is not followed: its order itself would take too much memory");
  }
  took_ = base::Clock::now() - since;
  return order_;
}

void PlannedRun::allocated(const void* object, std::size_t bytes, const void* caller, const void* frame) {
  if (bytes < kLargeObjectBytes || object == nullptr || base::t_inside_runtime) return;
  const std::uint64_t offset = offset_of(object);
  if (offset >= heap_.size() || offset_of(frame) < heap_.size()) return;
  const segment::AtTheTables working;
  const SiteId site = sites_.site_of(caller, frame);
  if (site == profile::CallSites::kNoSite) return;
  base::LockGuard lock(mutex_);
  const std::uint32_t planned = planned_.of(site, sites_, plan_);
  if (planned == PlannedSites::kNotPlanned) return;
  const std::uint64_t end = offset + std::min<std::uint64_t>(bytes, heap_.size() - offset);
  forget(offset, end);  // given back unseen
  const std::uint32_t number = numbers_.born(planned);
  const bool is_planned =
      std::ranges::any_of(objects_, [&](const Objects& of_phase) { return of_phase.contains({planned, number}); });
  living_.insert_or_assign(offset, Living{planned, number, is_planned, end - offset});
  std::atomic<std::uint8_t>& begins = begins_[offset / kLargeObjectBytes];
  if (begins.load(std::memory_order_relaxed) != kMany) begins.fetch_add(1, std::memory_order_relaxed);
  if (!is_planned) return;
  is_met_.store(true, std::memory_order_relaxed);
  tell_change();
}

void PlannedRun::freed(const void* object) {
  const std::uint64_t offset = offset_of(object);
  if (offset >= heap_.size() || begins_[offset / kLargeObjectBytes].load(std::memory_order_relaxed) == 0) return;
  end_objects(offset, 1);
}

void PlannedRun::unmapped(const void* at, std::size_t bytes) {
  const std::uint64_t offset = offset_of(at);
  if (offset >= heap_.size() || bytes == 0) return;
  const std::uint64_t last = std::min<std::uint64_t>(offset + (bytes - 1), heap_.size() - 1);
  for (std::uint64_t piece = offset / kLargeObjectBytes; piece <= last / kLargeObjectBytes; ++piece) {
    if (begins_[piece].load(std::memory_order_relaxed) != 0) return end_objects(offset, bytes);
  }
}

void PlannedRun::end_objects(std::uint64_t offset, std::uint64_t bytes) {
  if (base::t_inside_runtime) return;
  const segment::AtTheTables working;
  base::LockGuard lock(mutex_);
  forget(offset, offset + std::min<std::uint64_t>(bytes, heap_.size() - offset));
}

// Takes away the objects that begin there.
void PlannedRun::forget(std::uint64_t first, std::uint64_t end) {
  const auto from = living_.lower_bound(first), to = living_.lower_bound(end);
  bool was_planned = false;
  for (auto one = from; one != to; ++one) {
    const Living& living = one->second;
    numbers_.died(living.site, living.number);
    was_planned |= living.is_planned;
    std::atomic<std::uint8_t>& begins = begins_[one->first / kLargeObjectBytes];
    if (begins.load(std::memory_order_relaxed) != kMany) begins.fetch_sub(1, std::memory_order_relaxed);
  }
  living_.erase(from, to);
  if (was_planned) tell_change();
}

void PlannedRun::tell_change() {
  is_told_ = false;
  changed_.notify_one();
}

}  // namespace farheap::plan
