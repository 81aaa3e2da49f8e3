// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap plan PROFILE: what `farheap run --plan` follows.
#include <fmt/format.h>

#include "output_file.hpp"
#include "plan/memory_curve.hpp"
#include "plan/planner.hpp"
#include "plan_for_run.hpp"
#include "plan_text.hpp"
#include "profile/harvest.hpp"
#include "recording_folder.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace farheap::tool {

static constexpr char kCannotFollow[] = "cannot follow the plan";

int plan(const PlanArguments& arguments) {
  const auto profile = load_profile(arguments.file);
  if (!profile) {
    complain(profile.error());
    return kFailed;
  }
  const auto planned = plan::make_plan(*profile, arguments.file);
  if (!planned) {
    complain(planned.error());
    return kFailed;
  }
  const plan::Plan* const made = &planned->plan;
  if (const auto written = write_output(arguments.output, encode(*made), "cannot write the plan"); !written) {
    complain(written.error());
    return kFailed;
  }
  if (arguments.explain) {
    CodeNames names(made->files);
    const auto curve = plan::memory_curve(plan::process_to_plan(*profile)->touches);
    print_out("{}\n{}", plan_text(*made, names), savings_text(curve));
  }
  say(fmt::format("plan: {} of {} in {}; `farheap run --memory SIZE --plan {} -- ...` follows it",
                  made->objects.size() == 1 ? "1 object" : fmt::format("{} objects", made->objects.size()),
                  made->program, arguments.output, shell_word(arguments.output)));
  return kDone;
}

Status check_build(const plan::Plan& plan, const std::string& path) {
  // Those that a planned object was allocated from.
  std::vector<bool> named(plan.files.size());
  for (const auto& object : plan.objects) {
    for (const auto& place : plan.sites[object.site]) named[place.file] = true;
  }
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
