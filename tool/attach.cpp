// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap record --attach PID: records a program that runs already under `farheap run`, for a while
// (profile/attachment.hpp). It neither stops nor ends it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "pause.hpp"
#include "process_facts.hpp"
#include "profile/attachment.hpp"
#include "recording_folder.hpp"
#include "run_finder.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace farheap::tool {
namespace {

constexpr double kBetweenLooks = 0.5;

Result<FoundRun> find_run_of(pid_t process) {
  constexpr char kWhat[] = "cannot record a process";
  FoundRuns found = find_runs();
  for (FoundRun& run : found.runs) {
    if (run.has(process)) return std::move(run);
  }
  for (const UnreadableRun& run : found.unreadable) {
    if (run.tool == process) return fail(run.error);
  }
  return fail(ErrorCode::kNotFound, kWhat, fmt::format("{}", process),
              "it does not run under `farheap run`, or is not yours",
              "`farheap top` shows the runs; `farheap record -- PROGRAM` records a program from its start");
}

// Of a run all, by the number of its tool; or the one that was named.
std::vector<pid_t> processes_of(FoundRun& run, pid_t named) {
  if (named != run.tool) return {named};
  std::vector<pid_t> found;
  if (!run.view->refresh()) return found;
  const base::RunPage& page = run.view->page();
  for (const base::RunSlot& slot : page.slots) {
    const bool pages = slot.pid() > 0 && slot.watched.load() != 0;
    if (pages && page.is_in_own_namespace(slot) && !page.is_gone(slot)) found.push_back(slot.pid());
  }
  return found;
}

// The processes that record, each until its connection is closed.
class Recorded {
 public:
  Recorded(FoundRun run, pid_t named, std::string folder)
      : run_(std::move(run)), named_(named), folder_(std::move(folder)) {}
  ~Recorded() { end(); }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  // Those that are new. Why one is not recorded is said once.
  void ask_all() {
    for (const pid_t process : processes_of(run_, named_)) {
      if (std::ranges::find(asked_, process) != asked_.end()) continue;
      asked_.push_back(process);
      if (auto connection = profile::ask_to_record(process, folder_)) {
        connections_.push_back(*connection);
        ++count_;
      } else {
        why_not_ = std::move(connection.error());
        if (count_ != 0) say("WARNING: " + why_not_->message());
      }
    }
  }
  void forget_ended() {
    std::erase_if(connections_, [](int connection) {
      if (!profile::has_hung_up(connection)) return false;
      close(connection);
      return true;
    });
  }
  void end() {
    for (const int connection : connections_) profile::end_request(connection);
    connections_.clear();
  }

  [[nodiscard]] bool goes_on() const { return !connections_.empty(); }
  [[nodiscard]] const std::optional<Error>& why_not() const { return why_not_; }
  [[nodiscard]] std::string what() const {
    return named_ == run_.tool ? fmt::format("the run {} ({})", named_, printable(run_.command()))
                               : fmt::format("process {} ({})", named_, printable(name_of(named_)));
  }

 private:
  FoundRun run_;
  const pid_t named_;
  const std::string folder_;
  std::vector<pid_t> asked_;
  std::vector<int> connections_;
  std::size_t count_ = 0;
  std::optional<Error> why_not_;
};

Status check_seconds(std::optional<double> seconds) {
  constexpr double kLeast = 0.001, kMost = 1e6;
  if (!seconds || (*seconds >= kLeast && *seconds <= kMost)) return {};
  return fail(ErrorCode::kInvalidArgument, "so long cannot be recorded", fmt::format("--seconds {}", *seconds),
              fmt::format("it is from {} to {} seconds", kLeast, kMost), "without --seconds it lasts until Ctrl-C");
}

void record_on(Recorded& recorded, std::optional<double> seconds, const Pause& pause) {
  const auto begun = base::Clock::now();
  const auto is_enough = [&] {
    return seconds && base::Clock::now() - begun >= std::chrono::duration<double>(*seconds);
  };
  while (recorded.goes_on() && !is_enough() && pause.wait()) {
    recorded.ask_all();
    recorded.forget_ended();
  }
}

}  // namespace

int attach(const AttachArguments& arguments) {
  if (const auto possible = check_seconds(arguments.seconds); !possible) return wrong_usage(possible.error());
  const pid_t process = arguments.process.value_or(0);
  auto run = find_run_of(process);
  if (!run) return complain(run.error()), kFailed;
  const Pause pause(std::min(arguments.seconds.value_or(kBetweenLooks), kBetweenLooks));  // no thread gets the signals
  const auto folder = RecordingFolder::make(arguments.profile);
  if (!folder) return complain(folder.error()), kFailed;
  Recorded recorded(std::move(*run), process, (*folder)->path());
  recorded.ask_all();
  if (!recorded.goes_on()) {
    (*folder)->remove();
    complain(recorded.why_not().value_or(Error{ErrorCode::kNotFound, "cannot record a run", fmt::format("{}", process),
                                               "no process of it pages",
                                               "record the program from its start, as `farheap record -- PROGRAM`"}));
    return kFailed;
  }
  if (!arguments.quiet) {
    say(fmt::format("recording {}{}; Ctrl-C ends the recording, and the program goes on", recorded.what(),
                    arguments.seconds ? fmt::format(" for {} s", *arguments.seconds) : ""));
  }
  record_on(recorded, arguments.seconds, pause);
  recorded.end();
  return finish_profile(**folder, arguments.profile, kDone, arguments.quiet, {});
}

}  // namespace farheap::tool
