// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/planned_regions.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "segment/at_the_tables.hpp"

namespace farheap::plan {

using profile::CallSites;
using profile::SiteId;

namespace {

// Stacks are looked at as deep as the names of the regions' sites go.
CallSites::Limits limits_for(const Plan& plan) {
  CallSites::Limits limits = kPlannedStacks;
  limits.frames = 1;
  for (const PlannedRegion& region : plan.regions) {
    for (const std::uint32_t site : region.sites) {
      limits.frames = std::max(limits.frames, static_cast<unsigned>(plan.sites[site].size()));
    }
  }
  limits.frames = std::min(limits.frames, kPlannedStacks.frames);
  return limits;
}

}  // namespace

Result<std::unique_ptr<PlannedRegions>> PlannedRegions::make(const Plan& plan, std::span<const std::byte> heap) {
  auto calls = CallSites::make(limits_for(plan));
  if (!calls) return fail(std::move(calls.error()));
  auto known = RegionOfSite::make(kPlannedStacks.tree_frames + 1);
  if (!known) return fail(std::move(known.error()));
  auto callers = Callers::make(kCallers);
  if (!callers) return fail(std::move(callers.error()));
  return std::unique_ptr<PlannedRegions>(
      new PlannedRegions(plan, heap, std::move(*calls), std::move(*known), std::move(*callers)));
}

PlannedRegions::PlannedRegions(const Plan& plan, std::span<const std::byte> heap, CallSites calls, RegionOfSite known,
                               Callers callers)
    : plan_(plan),
      heap_(heap),
      calls_(std::move(calls)),
      known_(std::move(known)),
      callers_(std::move(callers)),
      regions_(plan.sites.size(), kUnknown) {
  plan_.phases.clear();
  for (std::size_t region = 0; region < plan_.regions.size(); ++region) {
    for (const std::uint32_t site : plan_.regions[region].sites) {
      regions_[site] = static_cast<std::uint8_t>(kNoRegion + 1 + region);
    }
  }
}

unsigned PlannedRegions::region_of(const void* caller, const void* frame) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  Caller* const known = find(address);
  if (known == nullptr) return told(region_of_stack(caller, frame));  // there are too many
  std::uint8_t found = known->region.load(std::memory_order_relaxed);
  if (known->address.load(std::memory_order_acquire) != address) found = look_up_caller(address, *known);
  return told(found != kUnknown ? found : region_of_stack(caller, frame));
}

unsigned PlannedRegions::told(std::uint8_t found) {
  if (found == kNoRegion) return 0;
  if (!is_met()) is_met_.store(true, std::memory_order_relaxed);
  return found - kNoRegion;
}

// Its place, or a free one; nullptr: neither.
PlannedRegions::Caller* PlannedRegions::find(std::uintptr_t address) {
  const std::uint64_t hash = address * 0x9e3779b97f4a7c15u >> 32;
  for (std::size_t step = 0; step < kMostSteps; ++step) {
    Caller& one = callers_[(hash + step) % kCallers];
    const std::uintptr_t there = one.address.load(std::memory_order_acquire);
    if (there == address || there == 0) return &one;
  }
  return nullptr;
}

// Of two threads one writes; the other's caller may have lost its place to it, and is looked up anew next time.
std::uint8_t PlannedRegions::look_up_caller(std::uintptr_t address, Caller& into) {
  const segment::AtTheTables working;
  base::LockGuard lock(mutex_);
  const profile::CodePlace place = planned_.place_of(address, plan_);
  std::uint8_t found = kNoRegion;
  for (std::size_t site = 0; site < plan_.sites.size(); ++site) {
    const SiteName& name = plan_.sites[site];
    if (regions_[site] == kUnknown || name.empty() || name.front() != place || place.file == 0) continue;
    found = name.size() == 1 ? regions_[site] : kUnknown;
    break;
  }
  if (into.address.load(std::memory_order_relaxed) == 0) {
    into.region.store(found, std::memory_order_relaxed);
    into.address.store(address, std::memory_order_release);
  }
  return found;
}

std::uint8_t PlannedRegions::region_of_stack(const void* caller, const void* frame) {
  if (static_cast<std::size_t>(static_cast<const std::byte*>(frame) - heap_.data()) < heap_.size()) return kNoRegion;
  SiteId site = calls_.known_site_of(caller, frame);
  const std::uint8_t found = site == CallSites::kNoSite ? kUnknown : known_[site].load(std::memory_order_relaxed);
  if (found != kUnknown) return found;
  if (site == CallSites::kNoSite && calls_.tree_frames() >= kPlannedStacks.tree_frames) return kNoRegion;  // none joins
  const segment::AtTheTables working;
  if (site == CallSites::kNoSite) site = calls_.site_of(caller, frame);
  return site == CallSites::kNoSite ? kNoRegion : look_up(site);
}

// The site of a region whose frames the stack begins with.
std::uint8_t PlannedRegions::look_up(SiteId site) {
  base::LockGuard lock(mutex_);
  SiteName stack;
  for (const std::uintptr_t address : calls_.stack(site)) stack.push_back(planned_.place_of(address, plan_));
  std::uint8_t found = kNoRegion;
  for (std::size_t one = 0; one < plan_.sites.size(); ++one) {
    const SiteName& name = plan_.sites[one];
    if (regions_[one] == kUnknown || name.empty() || name.size() > stack.size()) continue;
    const bool is_in_files = std::ranges::none_of(name, [](const auto& place) { return place.file == 0; });
    if (is_in_files && std::ranges::equal(name, std::span(stack).first(name.size()))) found = regions_[one];
  }
  known_[site].store(found, std::memory_order_relaxed);
  return found;
}

}  // namespace farheap::plan
