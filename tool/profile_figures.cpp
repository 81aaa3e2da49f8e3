// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>

#include "base/units.hpp"
#include "plan/planner.hpp"
#include "plan/use_phases.hpp"
#include "site_stacks.hpp"

namespace farheap::tool {

namespace {

Waits waits_of(const profile::Stall& stall) {
  return {static_cast<double>(stall.faults), static_cast<double>(stall.stalled_ns) * 1e-9,
          stall.pages_read * base::kPageBytes};
}

class Adder {
 public:
  explicit Adder(CodeNames& names) : names_(names) {}

  void add(const profile::ProcessProfile& process) {
    SiteStacks sites(process, names_);
    std::map<profile::SiteId, SiteFigures*> of_site;
    const auto figures = [&](profile::SiteId site) -> SiteFigures& {
      SiteFigures*& found = of_site[site];
      if (found == nullptr) found = &this->site(sites.stack(site));
      return *found;
    };
    for (const profile::SiteTotals& totals : process.sites) {
      SiteFigures& into = figures(totals.site);
      into.objects += totals.objects;
      into.allocated_bytes += totals.allocated_bytes;
      into.live_bytes += totals.live_bytes;
      into.peak_bytes += totals.peak_bytes;
      into.touched += totals.touches;
      touches_ += totals.touches;
    }
    for (const profile::Stall& stall : process.stalls) {
      SiteFigures& site = figures(stall.site);
      const Waits waits = waits_of(stall);
      site.waits += waits;
      Line& line = lines_[line_text(process, stall.place)];
      line.waits += waits;
      line.by_site[site.site] += waits.seconds;
      line.by_stack[&site] += waits.seconds;
      all_ += waits;
    }
  }

  // To look where a thread waits takes time, which is in what was looked at alone: the seconds are what they are in the
  // sum of all faults.
  void finish(ProfileFigures& into) {
    into.in_sample = all_;
    const double share = all_.seconds > 0 ? into.all.seconds / all_.seconds : 1;
    for (auto& [text, line] : lines_) line.waits.seconds *= share;
    for (auto& [text, line] : lines_) {
      for (auto& [site, seconds] : line.by_site) seconds *= share;
    }
    for (auto& [stack, site] : sites_) {
      site.waits.seconds *= share;
      if (touches_ > 0) site.touched /= touches_;
    }
    for (auto& [text, line] : lines_) {
      const auto most = std::ranges::max_element(line.by_site, {}, [](const auto& one) { return one.second; });
      into.lines.push_back({text, line.waits, most->first,
                            line.waits.seconds > 0 ? most->second / line.waits.seconds : 0,
                            longest_stack(line.by_stack, most->first)});
    }
    std::ranges::stable_sort(into.lines, std::greater{}, [](const LineFigures& one) { return one.waits.seconds; });
    for (auto& [stack, site] : sites_) into.sites.push_back(std::move(site));
    std::ranges::stable_sort(into.sites, std::greater{},
                             [](const SiteFigures& one) { return std::pair(one.waits.seconds, one.peak_bytes); });
  }

 private:
  struct Line {
    Waits waits;
    std::map<std::string, double> by_site;  // seconds
    std::map<const SiteFigures*, double> by_stack;
  };

  static std::vector<std::string> longest_stack(const std::map<const SiteFigures*, double>& by_stack,
                                                const std::string& site) {
    const SiteFigures* longest = nullptr;
    double most = -1;
    for (const auto& [one, seconds] : by_stack) {
      if (one->site != site || seconds <= most) continue;
      longest = one;
      most = seconds;
    }
    return longest != nullptr ? longest->stack : std::vector<std::string>();
  }

  SiteFigures& site(const std::vector<SiteFrame>& stack) {
    std::vector<std::string> names;
    for (const SiteFrame& frame : stack | std::views::reverse) {
      for (const CodeName& function : frame.functions | std::views::reverse) names.push_back(function.text());
    }
    const auto [found, is_new] = sites_.try_emplace(names);
    if (is_new) {
      found->second.stack = names;
      found->second.site = names.empty() ? kNoSite : names.back();
    }
    return found->second;
  }

  std::string line_text(const profile::ProcessProfile& process, std::uint32_t number) {
    if (number == 0) return "not known";
    const profile::WaitPlace& place = process.places[number];
    const std::vector<CodeName> own = names_.instruction(place.instruction);
    if (!place.has_caller) return user_line(own);
    return fmt::format("{}, in {}", user_line(names_.call(place.caller)), own.front().function_text());
  }

  // The line of the program's own, and in which function of the C++ library that the compiler put there.
  static std::string user_line(const std::vector<CodeName>& functions) {
    const auto mine = std::ranges::find_if_not(functions, is_of_library);
    if (mine == functions.end() || mine == functions.begin()) return functions.front().text();
    return fmt::format("{}, in {}", mine->text(), functions.front().function_text());
  }

  CodeNames& names_;
  Waits all_;
  double touches_ = 0;
  std::map<std::string, Line> lines_;
  std::map<std::vector<std::string>, SiteFigures> sites_;
};

// Sites of one line are one.
PhaseFigures phases_of(const profile::ProcessProfile& process, CodeNames& names) {
  constexpr std::size_t kMostPhases = 8;  // that a table has columns for
  const plan::UsePhases found = plan::use_phases(process, kMostPhases);
  PhaseFigures figures{.process = process.process,
                       .pages_for_one = std::uint64_t{1} << process.touches.one_in_log2,
                       .sites = {},
                       .phases = {},
                       .order = found.order};
  SiteStacks stacks(process, names);
  std::vector<std::size_t> row;
  for (const profile::SiteId site : found.sites) {
    const std::vector<SiteFrame> stack = stacks.stack(site);
    const std::string text = stack.empty() ? kNoSite : stack.front().functions.front().text();
    row.push_back(static_cast<std::size_t>(std::ranges::find(figures.sites, text) - figures.sites.begin()));
    if (row.back() == figures.sites.size()) figures.sites.push_back(text);
  }
  row.push_back(figures.sites.size());
  figures.sites.emplace_back(kOtherMemory);
  for (const plan::UsePhase& phase : found.phases) {
    auto& one = figures.phases.emplace_back(phase.visits, phase.uses, std::vector<std::uint64_t>(figures.sites.size()));
    for (std::size_t i = 0; i < row.size(); ++i) one.of_site[row[i]] += phase.of_site[i];
  }
  return figures;
}

void add_notes(const profile::Profile& profile, CodeNames& names, ProfileFigures& into) {
  if (profile.is_cut) into.notes.push_back("not all of the profile could be read: " + profile.what_is_missing());
  if (profile.processes_left_out != 0) {
    into.notes.push_back(
        fmt::format("{} more processes are not in it: 64 are kept, those that waited longest and held most, and no "
                    "damaged recording",
                    profile.processes_left_out));
  }
  into.is_attached = std::ranges::any_of(profile.processes, &profile::ProcessProfile::is_attached);
  if (into.is_attached) {
    into.notes.emplace_back(
        "it was recorded in the middle of a run: memory from before is of no known site, and in no bytes or objects "
        "here");
  }
  std::uint64_t without_room = 0;
  for (const auto& process : profile.processes) without_room += process.without_room;
  if (without_room != 0) {
    into.notes.push_back(
        fmt::format("{} samples found a table of the recording full, and are not in it", without_room));
  }
  for (const std::string& file : names.changed_files()) {
    into.notes.push_back(fmt::format("{} is not as it was recorded: its code has no names here", file));
  }
}

}  // namespace

Waits& Waits::operator+=(const Waits& other) {
  faults += other.faults;
  seconds += other.seconds;
  bytes_read += other.bytes_read;
  return *this;
}

ProfileFigures figures_of(const profile::Profile& profile, CodeNames& names) {
  ProfileFigures figures;
  Adder adder(names);
  double looked_in_vain = 0;
  for (const profile::ProcessProfile& process : profile.processes) {
    figures.all += {static_cast<double>(process.faults), static_cast<double>(process.stalled_ns) * 1e-9,
                    process.pages_read * base::kPageBytes};
    figures.peak_bytes += process.peak_bytes;
    looked_in_vain += static_cast<double>(process.faults_without_place);
    adder.add(process);
  }
  adder.finish(figures);
  figures.processes = profile.processes.size();
  if (const auto* process = plan::process_to_plan(profile)) figures.phases = phases_of(*process, names);
  if (figures.all.faults > 0) figures.without_place = looked_in_vain / figures.all.faults;
  add_notes(profile, names, figures);
  return figures;
}

}  // namespace farheap::tool
