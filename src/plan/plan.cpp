// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/plan.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "base/fields.hpp"
#include "os/regular_file.hpp"

namespace farheap::plan {

namespace {

using base::FieldReader;
using base::FieldWriter;

constexpr char kCannotRead[] = "cannot read the plan";

constexpr char kHowToMakeOne[] = "`farheap plan PROFILE -o FILE` makes one";

void put_small(std::string& text, std::uint32_t number) {
  for (unsigned i = 0; i < sizeof number; ++i) text += static_cast<char>(number >> (8 * i) & 0xff);
}

std::uint32_t small_at(const std::string& text, std::size_t at) {
  std::uint32_t number = 0;
  for (unsigned i = 0; i < sizeof number; ++i) {
    number |= static_cast<std::uint32_t>(static_cast<unsigned char>(text[at + i])) << (8 * i);
  }
  return number;
}

std::string text_of(const std::vector<PlannedUse>& uses) {
  std::string text;
  for (const PlannedUse& use : uses) {
    put_small(text, use.time);
    put_small(text, use.pages);
  }
  return text;
}

bool take_uses(const std::string& text, std::vector<PlannedUse>& into) {
  if (text.size() % sizeof(PlannedUse) != 0) return false;
  for (std::size_t at = 0; at < text.size(); at += sizeof(PlannedUse)) {
    into.push_back({small_at(text, at), small_at(text, at + sizeof(std::uint32_t))});
  }
  return std::ranges::is_sorted(into, {}, &PlannedUse::time);
}

// Elements take eight bytes at least: a count that is larger than what is left is none.
template <class Element, class Take>
bool take_list(FieldReader& in, std::vector<Element>& into, Take take) {
  const std::uint64_t count = in.number();
  if (count > in.left() / sizeof(std::uint64_t)) return false;
  for (std::uint64_t i = 0; i < count && in.is_good(); ++i) {
    Element one;
    if (!take(one)) return false;
    into.push_back(std::move(one));
  }
  return in.is_good();
}

std::uint32_t take_small(FieldReader& in, bool& is_good) {
  const std::uint64_t value = in.number();
  is_good &= value <= ~std::uint32_t{0};
  return static_cast<std::uint32_t>(value);
}

void put_phase(FieldWriter& out, const PlannedPhase& phase) {
  for (const std::uint32_t figure :
       {phase.once, phase.round, phase.window, phase.window_pages, phase.unsure, phase.foreseen}) {
    out.number(figure);
  }
  out.number(phase.objects.size());
  for (const PlannedObject& object : phase.objects) {
    for (const std::uint64_t figure :
         {std::uint64_t{object.site}, std::uint64_t{object.number}, object.bytes, std::uint64_t{object.foreseen}}) {
      out.number(figure);
    }
    out.number(object.parts.size());
    for (const auto& uses : object.parts) out.text(text_of(uses));
    out.number(object.strides.size());
    for (const PlannedStride& stride : object.strides) {
      out.number(stride.repeats);
      out.number(stride.times.size());
      for (const std::uint32_t time : stride.times) out.number(time);
    }
  }
}

std::string body_of(const Plan& plan) {
  FieldWriter out;
  out.text(plan.program);
  out.number(plan.files.size());
  for (const profile::CodeFile& file : plan.files) {
    out.text(file.path);
    out.text(file.build_id);
  }
  out.number(plan.sites.size());
  for (const SiteName& site : plan.sites) {
    out.number(site.size());
    for (const profile::CodePlace& place : site) {
      out.number(place.file);
      out.number(place.offset);
    }
  }
  out.number(plan.phases.size());
  for (const PlannedPhase& phase : plan.phases) put_phase(out, phase);
  out.number(plan.regions.size());
  for (const PlannedRegion& region : plan.regions) {
    out.number(region.sites.size());
    for (const std::uint32_t site : region.sites) out.number(site);
    for (const std::uint64_t figure :
         {region.bytes, std::uint64_t{region.of_touches}, std::uint64_t{region.of_bytes}}) {
      out.number(figure);
    }
    out.number(region.of_phases.size());
    for (const std::uint32_t share : region.of_phases) out.number(share);
  }
  out.number(plan.region_saving.at_70);
  out.number(plan.region_saving.at_50);
  return out.bytes();
}

bool take_stride(FieldReader& in, const PlanTimes& times, PlannedStride& into) {
  bool is_good = true;
  into.repeats = take_small(in, is_good);
  return take_list(in, into.times,
                   [&](std::uint32_t& time) {
                     time = take_small(in, is_good);
                     return is_good && time <= times.end();
                   }) &&
         into.repeats > 1 && !into.times.empty();
}

bool take_object(FieldReader& in, std::size_t sites, const PlanTimes& times, PlannedObject& into) {
  bool is_good = true;
  into.site = take_small(in, is_good);
  into.number = take_small(in, is_good);
  into.bytes = in.number();
  into.foreseen = take_small(in, is_good);
  return is_good && into.site < sites &&
         take_list(
             in, into.parts,
             [&](std::vector<PlannedUse>& uses) {
               return take_uses(in.text(), uses) && (uses.empty() || uses.back().time <= times.end());
             }) &&
         take_list(in, into.strides, [&](PlannedStride& stride) { return take_stride(in, times, stride); });
}

bool take_phase(FieldReader& in, std::size_t sites, PlannedPhase& into) {
  bool is_good = true;
  for (std::uint32_t* const figure :
       {&into.once, &into.round, &into.window, &into.window_pages, &into.unsure, &into.foreseen}) {
    *figure = take_small(in, is_good);
  }
  if (!is_good || ~std::uint32_t{0} - into.once < into.round) return false;
  return take_list(in, into.objects,
                   [&](PlannedObject& object) { return take_object(in, sites, into.times(), object); });
}

bool take_region(FieldReader& in, std::vector<bool>& is_taken, PlannedRegion& into) {
  bool is_good = true;
  const bool is_read = take_list(in, into.sites, [&](std::uint32_t& site) {
    site = take_small(in, is_good);
    if (!is_good || site >= is_taken.size() || is_taken[site]) return false;
    is_taken[site] = true;
    return true;
  });
  into.bytes = in.number();
  into.of_touches = take_small(in, is_good);
  into.of_bytes = take_small(in, is_good);
  const bool has_phases = take_list(in, into.of_phases, [&](std::uint32_t& share) {
    share = take_small(in, is_good);
    return is_good && share <= kRegionShares;
  });
  return is_read && has_phases && into.of_phases.size() <= kMostRegionPhases && is_good &&
         into.of_touches <= kRegionShares && into.of_bytes <= kRegionShares;
}

bool take_regions(FieldReader& in, Plan& plan) {
  std::vector<bool> is_taken(plan.sites.size());
  bool is_good = true;
  const bool is_read =
      take_list(in, plan.regions, [&](PlannedRegion& region) { return take_region(in, is_taken, region); });
  RegionSaving& saving = plan.region_saving;
  saving.at_70 = take_small(in, is_good);
  saving.at_50 = take_small(in, is_good);
  const auto has_same_phases = [&](const PlannedRegion& one) {
    return one.of_phases.size() == plan.regions.front().of_phases.size();
  };
  return is_read && is_good && plan.regions.size() <= kMostRegions &&
         std::ranges::all_of(plan.regions, has_same_phases) && saving.at_70 <= kRegionShares &&
         saving.at_50 <= kRegionShares;
}

bool take_body(std::string_view bytes, Plan& plan) {
  FieldReader in(bytes);
  bool is_good = true;
  plan.program = in.text();
  plan.files.clear();
  const bool is_read =
      take_list(in, plan.files,
                [&](profile::CodeFile& file) {
                  file.path = in.text();
                  file.build_id = in.text();
                  return true;
                }) &&
      take_list(in, plan.sites,
                [&](SiteName& site) {
                  return take_list(in, site, [&](profile::CodePlace& place) {
                    place.file = take_small(in, is_good);
                    place.offset = in.number();
                    return is_good && place.file < plan.files.size();
                  });
                }) &&
      take_list(in, plan.phases, [&](PlannedPhase& phase) { return take_phase(in, plan.sites.size(), phase); }) &&
      take_regions(in, plan);
  return is_read && in.is_whole() && !plan.files.empty();
}

}  // namespace

std::uint32_t ObjectNumbers::born(std::uint32_t site) {
  OfSite& all = sites_[site];
  if (all.free.empty()) return all.next++;
  return all.free.extract(all.free.begin()).value();
}

void ObjectNumbers::died(std::uint32_t site, std::uint32_t number) { sites_[site].free.insert(number); }

std::string encode(const Plan& plan) {
  const std::string body = body_of(plan);
  FieldWriter out;
  out.number(kPlanFormat);
  out.number(XXH3_64bits(body.data(), body.size()));
  out.text(body);
  return std::string(kPlanMagic) + out.bytes();
}

Result<std::string> plan_bytes(const std::string& path) {
  return os::read_regular_file(path, kMostPlanBytes, kCannotRead, kHowToMakeOne);
}

Result<Plan> read_plan(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with(profile::kProfileMagic)) {
    return fail(ErrorCode::kCorrupt, kCannotRead, name, "it is a profile",
                fmt::format("`farheap plan {} -o app.plan` makes a plan of it", name));
  }
  if (!bytes.starts_with(kPlanMagic)) {
    return fail(ErrorCode::kCorrupt, kCannotRead, name, "it is none", kHowToMakeOne);
  }
  FieldReader in(bytes.substr(kPlanMagic.size()));
  const std::uint64_t format = in.number();
  if (format > kPlanFormat) {
    return fail(ErrorCode::kUnavailable, kCannotRead, name, fmt::format("it has the newer format {}", format),
                "use a newer farheap");
  }
  if (format < kPlanFormat && in.is_good()) {
    return fail(ErrorCode::kUnavailable, kCannotRead, name, fmt::format("it has the older format {}", format),
                "make it again of its profile");
  }
  const std::uint64_t checksum = in.number();
  const std::string body = in.text();
  Plan plan;
  if (format != kPlanFormat || bytes.size() > kMostPlanBytes || !in.is_whole() ||
      checksum != XXH3_64bits(body.data(), body.size()) || !take_body(body, plan)) {
    return fail(ErrorCode::kCorrupt, kCannotRead, name, "it is damaged, or not whole", "make it again");
  }
  return plan;
}

}  // namespace farheap::plan
