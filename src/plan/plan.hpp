// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan: in which order a program uses its large objects, as a profile has shown it (planner.hpp). It names objects by
// where they were allocated, and parts of them by where in the object they lie: neither addresses nor sizes. So one
// plan serves every budget, and inputs of every size, as long as the program goes through its objects in the same way.
// (Its format: docs/formats.md.)
//
// A plan has a phase for each stretch of the program in which it repeats something else, in the order in which they
// came; and regions, into which its small objects are sorted. Time in a phase is counted in uses of sampled pages, and
// says only what comes before what. What is done once comes first; then, if there is one, the round that is repeated
// until the program goes on to something else.
//
// Thread-safety: values, and pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <farheap/result.hpp>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plan/use_times.hpp"
#include "profile/profile.hpp"

namespace farheap::plan {

// Where an object was allocated: return addresses, the innermost first. (How many: docs/benchmarks/plan.md, "What does
// the name of an allocation site cost?")
inline constexpr std::size_t kNameFrames = 4;
using SiteName = std::vector<profile::CodePlace>;

// Use (use_times.hpp), in whole numbers.
struct PlannedUse {
  std::uint32_t time = 0, pages = 0;
  friend bool operator==(const PlannedUse&, const PlannedUse&) = default;
};

// A pass that goes through all pieces of an object side by side (strides.hpp).
struct PlannedStride {
  std::uint32_t repeats = 0;         // pieces, of one length
  std::vector<std::uint32_t> times;  // of the parts of a piece, which are of one size; in any order
  [[nodiscard]] std::uint32_t begin() const { return *std::min_element(times.begin(), times.end()); }
  friend bool operator==(const PlannedStride&, const PlannedStride&) = default;
};

struct PlannedObject {
  std::uint32_t site = 0;      // of Plan::sites
  std::uint32_t number = 0;    // ObjectNumbers; both are the same in all phases
  std::uint64_t bytes = 0;     // it had in the profile: for people
  std::uint32_t foreseen = 0;  // of 100 uses so many came when those beside them, or those of the round before, said
  // The object in parts of one size, from the first byte on; the uses of each, in their order.
  std::vector<std::vector<PlannedUse>> parts;
  std::vector<PlannedStride> strides;  // uses beside those, in their order
  friend bool operator==(const PlannedObject&, const PlannedObject&) = default;
};

struct PlannedPhase {
  std::vector<PlannedObject> objects;  // that are used in it
  std::uint32_t once = 0, round = 0;   // PlanTimes
  // Of sampled pages so many were in view at once, and of all pages about: so long a use may go on, unseen.
  std::uint32_t window = 0, window_pages = 0;
  std::uint32_t unsure = 0;    // most times are right to so much
  std::uint32_t foreseen = 0;  // of 100 uses of all memory, as above
  friend bool operator==(const PlannedPhase&, const PlannedPhase&) = default;

  [[nodiscard]] PlanTimes times() const { return {static_cast<double>(once), static_cast<double>(round)}; }
};

// Small objects that lie together, in chunks that nobody else has (regions.hpp).
struct PlannedRegion {
  std::vector<std::uint32_t> sites;  // of Plan::sites, in their order: all stacks that begin so
  std::uint64_t bytes = 0;           // it had in the profile: for people
  // The region's share of all touches of small objects, and of all their bytes, in parts of kRegionShares.
  std::uint32_t of_touches = 0, of_bytes = 0;
  // And of the touches in each phase of small objects; empty: there is one. All regions have as many.
  std::vector<std::uint32_t> of_phases;
  friend bool operator==(const PlannedRegion&, const PlannedRegion&) = default;
};
inline constexpr std::uint32_t kRegionShares = 10'000;
// Regions save at least this share of the misses of small objects, in parts of kRegionShares, where 70 % of their bytes
// are in memory, and where 50 % are.
struct RegionSaving {
  std::uint32_t at_70 = 0, at_50 = 0;
  friend bool operator==(const RegionSaving&, const RegionSaving&) = default;
};
inline constexpr std::size_t kMostRegions = 16, kMostRegionPhases = 16;

struct Plan {
  std::string program;                          // the process's name
  std::vector<profile::CodeFile> files = {{}};  // [0] is unused
  std::vector<SiteName> sites;
  std::vector<PlannedPhase> phases;
  std::vector<PlannedRegion> regions;  // the hottest first; no site is in two
  RegionSaving region_saving;
  friend bool operator==(const Plan&, const Plan&) = default;
};

// Numbers objects of a site: each has the smallest number that no other living one of the site has.
class ObjectNumbers {
 public:
  [[nodiscard]] std::uint32_t born(std::uint32_t site);
  void died(std::uint32_t site, std::uint32_t number);

 private:
  struct OfSite {
    std::uint32_t next = 0;
    std::set<std::uint32_t> free;  // below next
  };
  std::map<std::uint32_t, OfSite> sites_;
};

inline constexpr std::string_view kPlanMagic = "FHPLAN\r\n";
inline constexpr std::uint32_t kPlanFormat = 5;
// A use takes eight bytes: most plans are a few kilobytes, and none need be larger than this.
inline constexpr std::size_t kMostPlanBytes = std::size_t{64} << 20;
[[nodiscard]] std::string encode(const Plan& plan);
// The file's bytes: kUnavailable for what is no regular file.
[[nodiscard]] Result<std::string> plan_bytes(const std::string& path);
// kCorrupt for what is no plan, or not whole; kUnavailable for another format. `name` is for messages.
[[nodiscard]] Result<Plan> read_plan(std::string_view bytes, const std::string& name);

}  // namespace farheap::plan
