// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run_finder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "process_facts.hpp"

namespace farheap::tool {
namespace {

namespace fs = std::filesystem;

struct Holder {
  pid_t process = 0;
  std::string path;  // opens the page
};

std::optional<pid_t> process_number(const std::string& text) {
  pid_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

// The run pages that this process has open, by their number. Nothing of a process that is gone or another user's.
void add_pages_of(pid_t process, std::map<ino_t, std::vector<Holder>>& holders) {
  const std::string wanted = std::string("/memfd:") + base::kRunPageName + " (deleted)";
  std::error_code error;
  for (fs::directory_iterator at(fmt::format("/proc/{}/fd", process), error), end; !error && at != end;
       at.increment(error)) {
    std::error_code no_link;
    struct stat status{};
    const std::string path = at->path().string();
    if (fs::read_symlink(at->path(), no_link).string() != wanted || stat(path.c_str(), &status) != 0) continue;
    holders[status.st_ino].push_back({process, path});
  }
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

std::string FoundRun::command() const {
  return std::string(page->command, strnlen(page->command, base::RunPage::kCommandBytes));
}

bool FoundRun::has(pid_t process) const {
  if (process == tool) return true;
  return std::any_of(std::begin(page->slots), std::end(page->slots),
                     [&](const base::RunSlot& slot) { return slot.pid.load() == process; });
}

FoundRuns find_runs() {
  std::map<ino_t, std::vector<Holder>> holders;
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    if (const auto process = process_number(at->path().filename().string())) add_pages_of(*process, holders);
  }
  FoundRuns found;
  for (const auto& [number, pages] : holders) {
    const Holder& holder = eldest(pages);
    if (!numbers_processes_as_we_do(holder.process)) {
      found.unreadable.push_back(
          {holder.process, unreadable(holder.process, "it is in a container", "look from inside")});
      continue;
    }
    auto page = base::look_at_run_page(holder.path);
    if (page) {
      found.runs.push_back({holder.process, number, std::move(*page)});
    } else if (page.error().code == ErrorCode::kCorrupt) {  // others have just ended
      found.unreadable.push_back({holder.process, unreadable(holder.process, "it is one of another version of farheap",
                                                             "use that version's `farheap top`")});
    }
  }
  std::sort(found.runs.begin(), found.runs.end(), [](auto& a, auto& b) { return a.tool < b.tool; });
  return found;
}

}  // namespace farheap::tool
