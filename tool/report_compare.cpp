// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report_compare.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/units.hpp"
#include "code_names.hpp"
#include "context_figures.hpp"
#include "context_forms.hpp"
#include "profile_figures.hpp"
#include "recording_folder.hpp"
#include "report_forms.hpp"
#include "trace_reader.hpp"
#include "whole_file.hpp"

namespace farheap::tool {

namespace {

constexpr double kLeastSeconds = 0.05, kLeastBytes = base::kMiB;
constexpr double kLeastShare = 0.001;  // of all accesses of the first run

void take_summary(const RunSummary& summary, ComparedRun& into) {
  into.seconds = summary.seconds;
  into.stall_seconds = summary.stall_seconds;
  into.faults = static_cast<double>(summary.faults);
  into.bytes_read = static_cast<double>(summary.bytes_read);
  into.bytes_written = static_cast<double>(summary.bytes_written);
  into.peak_bytes = static_cast<double>(summary.peak_bytes);
}

// Time is of all threads, added up.
void take_contexts(const profile::Profile& profile, CodeNames& names, ComparedRun& into) {
  into.is_counted = true;
  for (const profile::ProcessProfile& process : profile.processes) {
    const profile::Contexts& contexts = process.contexts;
    if (contexts.contexts.empty()) continue;
    const WholeContext all = whole_contexts(contexts).front();
    into.seconds += static_cast<double>(all.ns) * 1e-9;
    into.reads += static_cast<double>(all.reads);
    into.writes += static_cast<double>(all.writes);
    for (const SiteAccesses& row : accesses_by_site(contexts)) {
      const profile::CountedSite& site = contexts.sites[row.site];
      ComparedRun::Site& one = into.sites[counted_site_text(site, names)];
      one.accesses += static_cast<double>(row.reads + row.writes);
      one.peak_bytes += static_cast<double>(site.peak_bytes);
    }
  }
}

Status take_profile(const std::string& file, ComparedRun& into) {
  const auto profile = load_profile(file);
  if (!profile) return fail(profile.error());
  if (std::ranges::any_of(profile->processes, &profile::ProcessProfile::is_attached)) {
    return fail(ErrorCode::kUnavailable, "cannot compare", file,
                "it was recorded in the middle of a run, so nothing is known of the whole of it",
                "compare profiles of whole runs: `farheap record -- PROGRAM`");
  }
  CodeNames names(profile->files);
  if (has_only_contexts(*profile)) {
    take_contexts(*profile, names, into);
    return {};
  }
  const auto trace = parse_trace(profile->trace, file);
  if (!trace) return fail(trace.error());
  take_summary(summary_of(*trace), into);
  for (const SiteFigures& site : figures_of(*profile, names).sites) {
    ComparedRun::Site& one = into.sites[site.site];
    one.peak_bytes += static_cast<double>(site.peak_bytes);
    one.stall_seconds += site.waits.seconds;
  }
  return {};
}

// The last line that is an object with these members: standard error has the program's lines, too.
bool take_stats(const std::string& text, ComparedRun& into) {
  for (std::size_t end = text.size(); end != 0;) {
    const std::size_t begin = text.rfind('\n', end - 1);
    const std::size_t first = begin == std::string::npos ? 0 : begin + 1;
    const auto object = nlohmann::json::parse(text.substr(first, end - first), nullptr, false);
    end = begin == std::string::npos ? 0 : begin;
    if (!object.is_object() || !object.contains("seconds") || !object.contains("faults")) continue;
    const auto number = [&](const char* name) {
      const auto found = object.find(name);
      return found != object.end() && found->is_number() ? found->get<double>() : 0.0;
    };
    into.seconds = number("seconds");
    into.stall_seconds = number("stall_seconds");
    into.faults = number("faults");
    into.bytes_read = number("bytes_read");
    into.bytes_written = number("bytes_written");
    into.peak_bytes = number("peak_bytes");
    return true;
  }
  return false;
}

}  // namespace

Result<ComparedRun> compared_run(const std::string& file) {
  ComparedRun run;
  run.file = file;
  if (is_profile(file)) {
    if (Status taken = take_profile(file, run); !taken) return fail(std::move(taken.error()));
    return run;
  }
  if (Status is_none = check_no_plan(file); !is_none) return fail(std::move(is_none.error()));
  const auto text = whole_file(file, "cannot compare", "give a profile, a trace, or what --stats=json printed");
  if (!text) return fail(text.error());
  if (const auto trace = parse_trace(*text, file)) {
    take_summary(summary_of(*trace), run);
    return run;
  }
  if (take_stats(*text, run)) return run;
  return fail(ErrorCode::kCorrupt, "cannot compare", file,
              "it is neither a profile, nor a trace, nor a run's statistics",
              "`farheap record -o FILE` or `farheap run --stats=json` makes one");
}

Status check_of_a_kind(const ComparedRun& before, const ComparedRun& after) {
  if (before.is_counted == after.is_counted) return {};
  return fail(ErrorCode::kInvalidArgument, "cannot compare", after.file,
              after.is_counted ? "it was counted by the program itself, and the first run was not"
                               : "the first run was counted by the program itself, and this one was not",
              "compare two profiles of `farcc -ffar=record`, or two runs of `farheap record` or `farheap run`");
}

std::vector<ComparedFigure> compare(const ComparedRun& before, const ComparedRun& after, double tolerance) {
  std::vector<ComparedFigure> figures;
  const auto add = [&](const char* name, const char* unit, double least, double ComparedRun::* figure) {
    const double first = before.*figure, second = after.*figure;
    const double change = first != 0 ? second / first - 1 : second != 0 ? INFINITY : 0;
    figures.push_back({name, unit, first, second, change, second - first > std::max(tolerance * first, least)});
  };
  add("seconds", "s", kLeastSeconds, &ComparedRun::seconds);
  if (before.is_counted) {
    add("reads", "accesses", 0, &ComparedRun::reads);  // exact: each one counts
    add("writes", "accesses", 0, &ComparedRun::writes);
    return figures;
  }
  add("waited for pages", "s", kLeastSeconds, &ComparedRun::stall_seconds);
  add("read", "bytes", kLeastBytes, &ComparedRun::bytes_read);
  add("written", "bytes", kLeastBytes, &ComparedRun::bytes_written);
  add("peak", "bytes", kLeastBytes, &ComparedRun::peak_bytes);
  return figures;
}

std::vector<ComparedSite> compare_sites(const ComparedRun& before, const ComparedRun& after) {
  if (before.sites.empty() || after.sites.empty()) return {};
  std::set<std::string> names;
  for (const auto* run : {&before, &after}) {
    for (const auto& [name, site] : run->sites) names.insert(name);
  }
  const auto of = [](const ComparedRun& run, const std::string& name) {
    const auto found = run.sites.find(name);
    return found != run.sites.end() ? found->second : ComparedRun::Site{};
  };
  std::vector<ComparedSite> changed;
  for (const std::string& name : names) {
    const ComparedRun::Site first = of(before, name), second = of(after, name);
    const double seconds = second.stall_seconds - first.stall_seconds, bytes = second.peak_bytes - first.peak_bytes;
    const double accesses = second.accesses - first.accesses;
    const double least_accesses = std::max(1.0, kLeastShare * (before.reads + before.writes));
    const bool matters =
        std::abs(seconds) >= kLeastSeconds || std::abs(bytes) >= kLeastBytes || std::abs(accesses) >= least_accesses;
    if (matters) changed.push_back({name, seconds, accesses, bytes});
  }
  std::ranges::stable_sort(changed, std::greater{}, [](const ComparedSite& one) {
    return std::tuple(std::abs(one.stall_seconds), std::abs(one.accesses), std::abs(one.peak_bytes));
  });
  return changed;
}

}  // namespace farheap::tool
