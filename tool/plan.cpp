// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap plan PROFILE: what `farheap run --plan` follows.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "base/units.hpp"
#include "memory_advice.hpp"
#include "output_file.hpp"
#include "plan/candidates.hpp"
#include "plan/planner.hpp"
#include "plan_for_run.hpp"
#include "plan_text.hpp"
#include "profile/harvest.hpp"
#include "recording_folder.hpp"
#include "terminal.hpp"
#include "trace_reader.hpp"
#include "verbs.hpp"

namespace farheap::tool {

static constexpr char kCannotFollow[] = "cannot follow the plan";

namespace {

plan::PlanScore score_of_file(const profile::Profile& profile, const plan::MadePlan& made, const std::string& path) {
  const auto trace = parse_trace(profile.trace, path);
  const double seconds = trace ? trace->last().seconds : 0;
  const auto hints = plan::plan_hints(profile, path);
  return score_of(profile, made, seconds, hints ? &*hints : nullptr);
}

std::string cost_text(const plan::PagerPrediction& one) {
  const std::string read = base::format_size(static_cast<std::uint64_t>(one.reads * base::kPageBytes)) + " read";
  return one.seconds > 0 ? fmt::format("{:.2g} s ({})", one.seconds, read) : read;
}

std::string what_is_planned(std::size_t objects, std::size_t regions) {
  std::string of_objects = objects == 1 ? "1 object" : fmt::format("{} objects", objects);
  if (regions == 0) return of_objects;
  const std::string of_regions =
      regions == 1 ? "1 region of small ones" : fmt::format("{} regions of small ones", regions);
  return objects == 0 ? of_regions : of_objects + " and " + of_regions;
}

Error in_vain(const plan::PlanScore& score, const std::string& path) {
  const auto worst = std::ranges::max_element(score.levels, {}, [](const plan::ScoredLevel& level) {
    return level.planned.seconds > 0 ? level.planned.seconds / level.planless.seconds
                                     : level.planned.reads / std::max(level.planless.reads, 1.0);
  });
  return {ErrorCode::kUnavailable, "made no plan", path,
          fmt::format("a replay of the profile takes longer with it: in {:.0f} % of the memory {} instead of {}, and "
                      "nowhere a tenth less",
                      100 * worst->share, cost_text(worst->planned), cost_text(worst->planless)),
          "run it without one; --anyway makes the plan all the same"};
}

}  // namespace

int plan(const PlanArguments& arguments) {
  const auto profile = load_profile(arguments.file);
  if (!profile) {
    complain(profile.error());
    return kFailed;
  }
  auto planned = plan::make_plan(*profile, arguments.file);
  if (!planned) {
    complain(planned.error());
    return kFailed;
  }
  plan::Plan* const made = &planned->plan;
  std::set<std::pair<std::uint32_t, std::uint32_t>> objects;
  for (const plan::PlannedPhase& phase : made->phases) {
    for (const plan::PlannedObject& object : phase.objects) objects.emplace(object.site, object.number);
  }
  std::error_code none;
  if (std::filesystem::equivalent(arguments.file, arguments.output, none)) {
    complain({ErrorCode::kInvalidArgument, "cannot write the plan", arguments.output, "that is the profile itself",
              "give the plan another name with -o"});
    return kFailed;
  }
  const plan::PlanScore score = score_of_file(*profile, *planned, arguments.file);
  if (score.is_in_vain() && !arguments.anyway) {
    const Error why = in_vain(score, arguments.file);
    if (made->regions.empty()) {
      complain(why);
      return kFailed;
    }
    say(fmt::format("the plan has no order of large objects: {}", why.why));
    made->phases.clear();
    objects.clear();
  }
  if (const auto written = write_output(arguments.output, encode(*made), "cannot write the plan"); !written) {
    complain(written.error());
    return kFailed;
  }
  if (profile->is_cut) {
    say(fmt::format("WARNING: the plan is of a part of {}: {}", arguments.file, profile->what_is_missing()));
  }
  if (planned->process->pages_read != 0) {
    say("WARNING: pages left memory while it was recorded, so too few uses were seen; record it with more --memory");
  }
  if (planned->process != plan::process_to_plan(*profile)) {
    say(fmt::format("no plan can be made of {}, which used most: it is of process {}",
                    printable(plan::process_to_plan(*profile)->name), planned->process->process));
  }
  if (arguments.explain) {
    CodeNames names(made->files);
    // Regions move objects: a replay of where they lay tells nothing of them.
    print_out("{}{}", plan_text(*made, names), made->phases.empty() ? "" : score_text(score));
  }
  say(fmt::format("plan: {} of {} in {}; `farheap run --memory SIZE --plan {} -- ...` follows it",
                  what_is_planned(objects.size(), made->regions.size()), made->program, arguments.output,
                  shell_word(arguments.output)));
  return kDone;
}

Status check_build(const plan::Plan& plan, const std::string& path) {
  // Those that a planned object was allocated from.
  std::vector<bool> named(plan.files.size());
  const auto note = [&](std::uint32_t site) {
    for (const auto& place : plan.sites[site]) named[place.file] = true;
  };
  for (const auto& phase : plan.phases) {
    for (const auto& object : phase.objects) note(object.site);
  }
  for (const auto& region : plan.regions) std::ranges::for_each(region.sites, note);
  for (std::size_t i = 1; i < plan.files.size(); ++i) {
    const profile::CodeFile& file = plan.files[i];
    if (!named[i] || file.build_id.empty()) continue;
    const std::string now = profile::build_id_of_file(file.path);
    if (now.empty() || now == file.build_id) continue;
    return fail(ErrorCode::kInvalidArgument, kCannotFollow, path,
                fmt::format("it was made with another build of {}", file.path),
                "record that program and plan it again");
  }
  return {};
}

Status check_plan(const std::string& path) {
  const auto bytes = plan::plan_bytes(path);
  if (!bytes) return fail(bytes.error());
  const auto plan = plan::read_plan(*bytes, path);
  if (!plan) return fail(plan.error());
  return check_build(*plan, path);
}

}  // namespace farheap::tool
