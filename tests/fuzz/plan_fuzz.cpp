// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes as a plan: refused, or one whose numbers all name something, that means the same when it is written again,
// and that gives an order for objects of any size. Each is tried once as it is, and once with a checksum that fits.
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "plan/planned_order.hpp"

namespace {

using namespace farheap;
using namespace farheap::plan;

constexpr std::size_t kHead = 32;  // the magic, the format, the checksum and the length

void must(bool is_so) {
  if (!is_so) std::abort();
}

void must_be_sound(const Plan& plan) {
  must(!plan.files.empty());
  for (const SiteName& site : plan.sites) {
    for (const auto& place : site) must(place.file < plan.files.size());
  }
  std::vector<bool> is_taken(plan.sites.size());
  for (const PlannedRegion& region : plan.regions) {
    for (const std::uint32_t site : region.sites) {
      must(site < is_taken.size() && !is_taken[site]);
      is_taken[site] = true;
    }
  }
  for (const PlannedPhase& phase : plan.phases) {
    for (const PlannedObject& object : phase.objects) {
      must(object.site < plan.sites.size());
      for (const auto& uses : object.parts) {
        must(std::ranges::is_sorted(uses, {}, &PlannedUse::time));
        must(uses.empty() || uses.back().time <= phase.times().end());
      }
      for (const PlannedStride& stride : object.strides) must(stride.repeats > 1 && !stride.times.empty());
    }
  }
}

// Of each object one that is alive; of a few blocks, because there may be many uses of each.
void must_give_an_order(const PlannedPhase& phase) {
  std::vector<LiveObject> live;
  for (std::uint32_t i = 0; i < phase.objects.size() && i < 16; ++i) {
    live.push_back({i, i * 1'500'000u, 1 + phase.objects[i].bytes % 3'000'000});
  }
  const pager::PageOrder order = order_of(phase, live);
  const auto visits = order.visits();
  for (std::size_t i = 0; i < visits.size(); ++i) {
    must(visits[i].first <= visits[i].last && visits[i].first_page < pager::PageOrder::kBlockPages);
    must(i == 0 || i == order.round() || visits[i - 1].first <= visits[i].first);
  }
  if (!order.has_round()) return;
  must(order.round() < visits.size());
  must(order.visit(visits.size()).first > visits.back().last);
}

void read(const std::string& bytes) {
  const auto plan = read_plan(bytes, "fuzzed");
  if (!plan) return must(!plan.error().message().empty());
  must_be_sound(*plan);
  const auto again = read_plan(encode(*plan), "written again");
  must(again.has_value() && *again == *plan);
  for (std::size_t i = 0; i < plan->phases.size() && i < 4; ++i) must_give_an_order(plan->phases[i]);
}

void mend(std::string& bytes) {
  if (bytes.size() < kHead) return;
  const std::uint64_t length = bytes.size() - kHead, format = kPlanFormat,
                      sum = XXH3_64bits(bytes.data() + kHead, length);
  std::memcpy(bytes.data(), kPlanMagic.data(), kPlanMagic.size());
  std::memcpy(bytes.data() + 8, &format, sizeof format);
  std::memcpy(bytes.data() + 16, &sum, sizeof sum);
  std::memcpy(bytes.data() + 24, &length, sizeof length);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  mend(bytes);
  read(bytes);
  return 0;
}
