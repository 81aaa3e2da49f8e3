// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "hinted_run.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "child.hpp"
#include "environment.hpp"
#include "os/memory_group.hpp"
#include "os/small_file.hpp"
#include "plan/hint_file.hpp"
#include "plan/planner.hpp"
#include "plan_for_run.hpp"
#include "recording_folder.hpp"
#include "store/secrets.hpp"
#include "terminal.hpp"
#include "whole_file.hpp"

namespace farheap::tool {
namespace {

using plan::HintKind;

constexpr char kCannotHint[] = "cannot run with kernel hints";

std::optional<HintKind> kind_of(std::string_view text) {
  if (text == "kernel" || text == "kernel:mlock") return HintKind::kLock;
  if (text == "kernel:madvise") return HintKind::kAdvise;
  return std::nullopt;
}

Status check_swap() {
  const auto areas = os::read_small_file("/proc/swaps");
  if (areas && areas->find("\n/") != std::string::npos) return {};
  return fail(ErrorCode::kUnavailable, kCannotHint, "/proc/swaps", "this machine has no swap",
              "switch some on: mkswap FILE && swapon FILE");
}

// CAP_IPC_LOCK locks without a limit.
bool may_lock_all() {
  constexpr unsigned kIpcLock = 14;
  const auto status = os::read_small_file("/proc/self/status");
  const auto at = status ? status->find("CapEff:\t") : std::string::npos;
  if (at == std::string::npos) return false;
  const std::uint64_t bits = std::strtoull(status->c_str() + at + std::string_view("CapEff:\t").size(), nullptr, 16);
  return (bits >> kIpcLock & 1) != 0;
}

Status check_may_lock(std::uint64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur >= bytes || may_lock_all()) return {};
  return fail(ErrorCode::kPermission, kCannotHint, fmt::format("{} to lock", base::format_size(bytes)),
              fmt::format("RLIMIT_MEMLOCK allows {}", base::format_size(limit.rlim_cur)),
              fmt::format("ulimit -l {} (in KiB; an administrator may have to), or --hints=kernel:madvise",
                          (bytes + base::kKiB - 1) / base::kKiB));
}

// A control group does that, and whoever starts the tool is in it already.
void warn_without_limit(std::uint64_t memory) {
  const auto group = os::MemoryGroup::of_this_process();
  const auto limit = group ? group->limit_bytes() : std::nullopt;
  if (limit && *limit <= memory + memory / 2 + 32 * base::kMiB) return;
  say(coloured(Colour::kYellow,
               fmt::format("WARNING: nothing limits the program to {}: start this in a control group, for example with "
                           "systemd-run --scope -p MemoryMax={}",
                           base::format_size(memory), memory),
               true));
}

Result<plan::HintPlan> read_hints(const std::string& path) {
  if (is_profile(path)) {
    const auto profile = load_profile(path);
    if (!profile) return fail(profile.error());
    auto hints = plan::plan_hints(*profile, path);
    if (hints) {
      if (const Status fits = check_build(hints->plan, path); !fits) return fail(fits.error());
    }
    return hints;
  }
  if (const Status fits = check_plan(path); !fits) return fail(fits.error());
  const auto bytes = whole_file(path, kCannotHint, "`farheap record` makes a profile");
  if (!bytes) return fail(bytes.error());
  auto plan = plan::read_plan(*bytes, path);
  if (!plan) return fail(plan.error());
  return plan::hints_of(std::move(*plan));
}

Result<plan::HintPlan> load_hints(const std::string& path) {
  auto hints = read_hints(path);
  if (!hints || !hints->phase().objects.empty()) return hints;
  return fail(ErrorCode::kUnavailable, kCannotHint, path, "it tells of no large object (256 KiB or more) that was used",
              "run it without hints");
}

struct HintedEnd {
  ChildEnd end;
  double seconds = 0;
  std::size_t objects = 0;
};

void report(const plan::HintPage& page, const HintedEnd& how, const base::Options& options) {
  const bool locks = page.kind == HintKind::kLock;
  if (options.stats == base::StatsForm::kJson) {
    const nlohmann::json line = {{"format", kJsonFormat},
                                 {"hints", locks ? "kernel:mlock" : "kernel:madvise"},
                                 {"exit_status", how.end.exit_status},
                                 {"signal", how.end.signal},
                                 {"seconds", how.seconds},
                                 {"budget_bytes", options.memory},
                                 {"planned_objects", how.objects},
                                 {"recognised_objects", page.recognised.load()},
                                 {"most_locked_bytes", page.most_locked_bytes.load()},
                                 {"advised_bytes", page.advised_bytes.load()},
                                 {"refusals", page.refusals.load()}};
    put_error(line.dump() + "\n");
    return;
  }
  if (page.recognised.load() == 0) {
    say(coloured(Colour::kRed, "hints: none of the planned objects was allocated", true));
  } else if (!options.quiet) {
    say(fmt::format("hints: {} planned objects were allocated; {} {}, {} refusals", page.recognised.load(),
                    base::format_size(locks ? page.most_locked_bytes.load() : page.advised_bytes.load()),
                    locks ? "locked at the most" : "asked for ahead", page.refusals.load()));
  }
}

Variables hinted_environment(const std::string& library, const plan::HintFile& file) {
  Variables variables = own_environment();
  for (auto& line : variables) {
    if (line.starts_with("FARHEAP_")) line = store::without_secrets(line);
  }
  set_variable(variables, plan::kHintsVariable, file.path());
  load_before_others(variables, library);
  return variables;
}

Result<int> start_hinted(const std::string& path, const RunArguments& arguments, const base::Options& options) {
  const HintKind kind = *kind_of(arguments.hints);
  const std::uint64_t room = options.memory / 100 * arguments.hints_share;
  if (const Status swap = check_swap(); !swap) return fail(swap.error());
  if (kind == HintKind::kLock) {
    if (const Status allowed = check_may_lock(room); !allowed) return fail(allowed.error());
  }
  const auto library = find_hints_library(options);
  if (!library) return fail(library.error());
  const auto hints = load_hints(options.plan);
  if (!hints) return fail(hints.error());
  const auto file = plan::HintFile::make(*hints, kind, room);
  if (!file) return fail(file.error());
  if (!options.quiet) warn_without_limit(options.memory);
  const auto start = base::Clock::now();
  const auto end = run_child(path, arguments.command, hinted_environment(*library, *file), {});
  if (!end) {
    complain(end.error());
    return shell_status(end.error());
  }
  const double seconds = std::chrono::duration<double>(base::Clock::now() - start).count();
  report(file->page(), {*end, seconds, hints->accesses.size()}, options);
  return end->exit_status;
}

}  // namespace

Status check_hints(const RunArguments& arguments) {
  if (arguments.hints.empty()) return {};
  if (!kind_of(arguments.hints)) {
    return fail(ErrorCode::kInvalidArgument, "unknown hints", arguments.hints, "",
                "--hints=kernel:mlock or --hints=kernel:madvise; kernel alone is the former");
  }
  if (arguments.plain || !arguments.trace.empty() || !arguments.profile.empty()) {
    return fail(ErrorCode::kInvalidArgument, kCannotHint, arguments.hints, "Farheap is not in such a run",
                "leave out --plain and --trace");
  }
  if (arguments.hints_share < 1 || arguments.hints_share > 95) {
    return fail(ErrorCode::kInvalidArgument, kCannotHint, fmt::format("--hints-share {}", arguments.hints_share), "",
                "1 to 95: without any memory to page in the kernel would kill the program");
  }
  return {};
}

int run_hinted(const std::string& path, const RunArguments& arguments, base::Options& options) {
  if (options.plan.empty()) {
    return wrong_usage(Error{ErrorCode::kInvalidArgument, kCannotHint, arguments.hints, "no plan is named",
                             "--plan PROFILE, which `farheap record` writes"});
  }
  if (options.memory == 0) options.memory = os::automatic_budget();
  const auto status = start_hinted(path, arguments, options);
  if (status) return *status;
  complain(status.error());
  return kFailed;
}

}  // namespace farheap::tool
