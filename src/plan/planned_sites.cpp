// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/planned_sites.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "profile/code_ranges.hpp"
#include "profile/harvest.hpp"

namespace farheap::plan {

using profile::SiteId;

namespace {

constexpr unsigned kMostReads = 64;  // of what is mapped: code that a program makes itself is in no file

std::string_view name_in(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The number in the plan: by path and build-id, or by build-id alone where the file was moved. 0: it is not there.
std::uint32_t number_in_plan(const Plan& plan, const std::string& path) {
  const auto has_name = [&](const profile::CodeFile& file) { return name_in(file.path) == name_in(path); };
  if (std::none_of(plan.files.begin() + 1, plan.files.end(), has_name)) return 0;
  const std::string build_id = profile::build_id_of_file(path);
  for (std::size_t i = 1; i < plan.files.size(); ++i) {
    const profile::CodeFile& file = plan.files[i];
    if (has_name(file) && file.build_id == build_id && (!build_id.empty() || file.path == path)) {
      return static_cast<std::uint32_t>(i);
    }
  }
  return 0;
}

profile::CodePlaces read_code(const Plan& plan) {
  std::string lines;
  profile::read_maps([&](std::string_view line) {
    profile::MapsLine one;
    if (profile::read_maps_line(line, one) && one.is_code) lines.append(line).push_back('\n');
    return true;
  });
  return {lines, [&](const std::string& path) { return number_in_plan(plan, path); }};
}

}  // namespace

std::uint32_t PlannedSites::of(SiteId site, const profile::CallSites& calls, const Plan& plan) {
  const auto [found, is_new] = known_.try_emplace(site, kNotPlanned);
  if (!is_new) return found->second;
  SiteName name;
  if (!look_up(site, calls, plan, name)) return kNotPlanned;
  const auto planned = std::ranges::find(plan.sites, name);
  if (planned != plan.sites.end()) found->second = static_cast<std::uint32_t>(planned - plan.sites.begin());
  return found->second;
}

profile::CodePlace PlannedSites::place_of(std::uintptr_t address, const Plan& plan) {
  if (!code_.knows(address) && code_reads_ < kMostReads) {
    ++code_reads_;
    code_ = read_code(plan);
  }
  return code_.at(address);
}

// False: code that is in no file of the plan.
bool PlannedSites::look_up(SiteId site, const profile::CallSites& calls, const Plan& plan, SiteName& name) {
  for (const std::uintptr_t address : calls.stack(site)) {
    name.push_back(place_of(address, plan));
    if (name.back().file == 0) return false;
  }
  return true;
}

}  // namespace farheap::plan
