// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run_finder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

#include "process_facts.hpp"

namespace farheap::tool {
namespace {

namespace fs = std::filesystem;

struct Holder {
  pid_t process = 0;
  std::string configuration, counters;  // what opens them
};

std::optional<pid_t> process_number(const std::string& text) {
  pid_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

// What this process has open of runs, by name and number: any program can have opened anything under these names.
struct OpenFiles {
  std::map<ino_t, std::string> configurations, counters;
};

std::string link_of(const char* name) { return fmt::format("/memfd:{} (deleted)", name); }

OpenFiles open_files_of(pid_t process) {
  OpenFiles files;
  std::error_code error;
  for (fs::directory_iterator at(fmt::format("/proc/{}/fd", process), error), end; !error && at != end;
       at.increment(error)) {
    std::error_code no_link;
    struct stat status{};
    const std::string path = at->path().string(), link = fs::read_symlink(at->path(), no_link).string();
    const bool is_configuration = link == link_of(base::kRunPageName);
    if (!is_configuration && link != link_of(base::kRunCountersName)) continue;
    if (stat(path.c_str(), &status) == 0)
      (is_configuration ? files.configurations : files.counters)[status.st_ino] = path;
  }
  return files;
}

// By the number of the configuration. Nothing of a process that is gone or another user's.
void add_runs_of(pid_t process, std::map<ino_t, std::vector<Holder>>& holders) {
  const OpenFiles files = open_files_of(process);
  for (const auto& [number, path] : files.configurations) {
    const auto its_own = base::counters_of(path);
    const auto counters = files.counters.find(its_own.value_or(0));
    holders[number].push_back({process, path, counters == files.counters.end() ? "" : counters->second});
  }
}

unsigned owner_of(pid_t process) {
  struct stat status{};
  return stat(fmt::format("/proc/{}", process).c_str(), &status) == 0 ? status.st_uid : 0;
}

// The tool, not the guardian that it forked.
const Holder& eldest(const std::vector<Holder>& holders) {
  const auto is_child = [&](const Holder& one) {
    const pid_t parent = parent_of(one.process);
    return std::any_of(holders.begin(), holders.end(), [&](const Holder& other) { return other.process == parent; });
  };
  const auto found = std::find_if_not(holders.begin(), holders.end(), is_child);
  return found == holders.end() ? holders.front() : *found;
}

bool numbers_processes_as_we_do(pid_t process) {
  std::error_code gone;
  return fs::read_symlink(fmt::format("/proc/{}/ns/pid", process), gone) == fs::read_symlink("/proc/self/ns/pid", gone);
}

Error unreadable(pid_t process, const char* why, const char* remedy) {
  return {ErrorCode::kUnavailable, "cannot look at a run", fmt::format("process {}", process), why, remedy};
}

}  // namespace

std::string FoundRun::command() const { return view->page().command_text(); }

bool FoundRun::has(pid_t process) const {
  if (process == tool) return true;
  const base::RunPage& page = view->page();
  return std::any_of(std::begin(page.slots), std::end(page.slots), [&](const base::RunSlot& slot) {
    return slot.pid() == process && page.is_in_own_namespace(slot) && !page.is_gone(slot);
  });
}

FoundRuns find_runs() {
  std::map<ino_t, std::vector<Holder>> holders;
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    if (const auto process = process_number(at->path().filename().string())) add_runs_of(*process, holders);
  }
  FoundRuns found;
  for (const auto& [number, pages] : holders) {
    const Holder& holder = eldest(pages);
    if (!numbers_processes_as_we_do(holder.process)) {
      found.unreadable.push_back(
          {holder.process, unreadable(holder.process, "it is in a container", "look from inside")});
      continue;
    }
    auto view = base::RunView::open(holder.configuration, holder.counters, owner_of(holder.process));
    if (view) {
      found.runs.push_back({holder.process, number, std::move(*view)});
    } else if (holder.counters.empty() || view.error().code == ErrorCode::kCorrupt) {
      std::error_code gone;
      if (!fs::exists(holder.configuration, gone)) continue;  // it has just ended
      found.unreadable.push_back({holder.process, unreadable(holder.process, "it is none of this version of farheap",
                                                             "use that version's `farheap top`")});
    }
  }
  std::sort(found.runs.begin(), found.runs.end(), [](auto& a, auto& b) { return a.tool < b.tool; });
  return found;
}

}  // namespace farheap::tool
