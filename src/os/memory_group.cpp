// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/memory_group.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <vector>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "os/kernel_features.hpp"
#include "os/small_file.hpp"

namespace farheap::os {
namespace {

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(by);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool lists(std::string_view names, std::string_view one) {
  const auto all = split(names, ',');
  return std::find(all.begin(), all.end(), one) != all.end();
}

std::string_view trimmed(std::string_view text) {
  const auto end = text.find_last_not_of(" \n");
  return text.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || at != text.data() + text.size()) return std::nullopt;
  return value;
}

// mountinfo writes blanks and backslashes as \040.
std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

struct Mount {
  std::string root;   // the group that is mounted there
  std::string place;  // where
};

// One line: "35 31 0:32 ROOT PLACE OPTIONS [TAGS...] - TYPE SOURCE SUPER_OPTIONS".
std::optional<Mount> parse_group_mount(std::string_view line, int version) {
  const auto dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  const auto before = split(line.substr(0, dash), ' ');
  const auto after = split(line.substr(dash + 3), ' ');
  if (before.size() < 6 || after.size() < 3) return std::nullopt;
  const bool fits = version == 2 ? after[0] == "cgroup2" : after[0] == "cgroup" && lists(after[2], "memory");
  if (!fits) return std::nullopt;
  return Mount{unescaped(before[3]), unescaped(before[4])};
}

std::optional<Mount> find_mount(std::string_view mountinfo, int version) {
  for (const auto line : split(mountinfo, '\n')) {
    if (auto mount = parse_group_mount(line, version)) return mount;
  }
  return std::nullopt;
}

// The group's name: "4:memory:/a/b" for version 1, "0::/a/b" for version 2.
std::optional<std::string> find_group_name(std::string_view cgroup, int version) {
  for (const auto line : split(cgroup, '\n')) {
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const bool fits = version == 2 ? controllers.empty() && line.starts_with("0:") : lists(controllers, "memory");
    if (fits) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

// A container may see only its own group, mounted from somewhere inside the tree: what is above is cut off.
std::string folder_of(const Mount& mount, const std::string& name) {
  if (mount.root == "/") return name == "/" ? mount.place : mount.place + name;
  if (name == mount.root) return mount.place;
  if (name.starts_with(mount.root + "/")) return mount.place + name.substr(mount.root.size());
  return mount.place;
}

// A limit that is none is written "max" (version 2), or as a number near 2^63 (version 1).
std::optional<std::uint64_t> parse_limit(std::string_view text) {
  const auto value = whole_number(trimmed(text));
  if (!value || *value >= std::uint64_t{1} << 60) return std::nullopt;
  return value;
}

std::string parent_of(const std::string& folder) { return folder.substr(0, folder.rfind('/')); }

}  // namespace

std::optional<GroupPlace> find_memory_group(std::string_view mountinfo, std::string_view cgroup) {
  for (const int version : {1, 2}) {
    const auto mount = find_mount(mountinfo, version);
    const auto name = find_group_name(cgroup, version);
    if (mount && name) return GroupPlace{version, mount->place, folder_of(*mount, *name)};
  }
  return std::nullopt;
}

std::optional<std::uint64_t> find_counter(std::string_view text, std::string_view key) {
  for (const auto line : split(text, '\n')) {
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      return whole_number(trimmed(line.substr(key.size() + 1)));
    }
  }
  return std::nullopt;
}

Result<MemoryGroup> MemoryGroup::of_this_process() {
  const auto mountinfo = read_small_file("/proc/self/mountinfo");
  if (!mountinfo) return fail(mountinfo.error());
  const auto cgroup = read_small_file("/proc/self/cgroup");
  if (!cgroup) return fail(cgroup.error());
  auto place = find_memory_group(*mountinfo, *cgroup);
  if (!place) {
    return fail(ErrorCode::kUnavailable, "no memory control group", "/proc/self/mountinfo",
                "the memory controller is not mounted");
  }
  return MemoryGroup(std::move(*place));
}

Result<MemoryGroup> MemoryGroup::create(const std::string& name) {
  auto own = of_this_process();
  if (!own) return own;
  GroupPlace place = own->place();
  std::string above = place.folder;
  if (place.version == 2) {
    auto enabled = write_small_file(above + "/cgroup.subtree_control", "+memory");
    if (!enabled) {
      above = place.mount;
      enabled = write_small_file(above + "/cgroup.subtree_control", "+memory");
    }
    if (!enabled) return fail(enabled.error());
  }
  place.folder = above + "/" + name;
  if (mkdir(place.folder.c_str(), 0755) != 0) {
    return fail(errno_error(errno, "cannot make a control group", place.folder, "run as root"));
  }
  return MemoryGroup(std::move(place));
}

std::string MemoryGroup::file(std::string_view version_1, std::string_view version_2) const {
  return place_.folder + "/" + std::string(place_.version == 1 ? version_1 : version_2);
}

Result<std::uint64_t> MemoryGroup::number(const std::string& path) const {
  const auto text = read_small_file(path);
  if (!text) return fail(text.error());
  const auto value = whole_number(trimmed(*text));
  if (!value) return fail(ErrorCode::kCorrupt, "not a number", path, std::string(trimmed(*text)));
  return *value;
}

std::optional<std::uint64_t> MemoryGroup::limit_bytes() const {
  const std::string name = place_.version == 1 ? "/memory.limit_in_bytes" : "/memory.max";
  std::optional<std::uint64_t> lowest;
  for (std::string at = place_.folder; at.size() >= place_.mount.size() && !at.empty(); at = parent_of(at)) {
    // A group without the file (the root of version 2) limits nothing.
    const auto text = read_small_file(at + name);
    const auto limit = text ? parse_limit(*text) : std::nullopt;
    if (limit) lowest = lowest ? std::min(*lowest, *limit) : limit;
  }
  return lowest;
}

Result<std::uint64_t> MemoryGroup::anonymous_bytes() const {
  const std::string path = file("memory.stat", "memory.stat");
  const auto text = read_small_file(path);
  if (!text) return fail(text.error());
  const std::string_view key = place_.version == 1 ? "total_rss" : "anon";
  const auto value = find_counter(*text, key);
  if (!value) return fail(ErrorCode::kCorrupt, "no such counter", path, std::string(key) + " is missing");
  return *value;
}

Result<std::uint64_t> MemoryGroup::charged_bytes() const {
  return number(file("memory.usage_in_bytes", "memory.current"));
}

Result<std::uint64_t> MemoryGroup::peak_bytes() const {
  return number(file("memory.max_usage_in_bytes", "memory.peak"));
}

Result<std::uint64_t> MemoryGroup::oom_kills() const {
  const std::string path = file("memory.oom_control", "memory.events");
  const auto text = read_small_file(path);
  if (!text) return fail(text.error());
  const auto value = find_counter(*text, "oom_kill");
  if (!value) return fail(ErrorCode::kUnavailable, "no such counter", path, "this kernel does not count kills");
  return *value;
}

Status MemoryGroup::set_limit(std::uint64_t bytes) const {
  return write_small_file(file("memory.limit_in_bytes", "memory.max"), std::to_string(bytes));
}

Status MemoryGroup::add_process(pid_t pid) const {
  return write_small_file(place_.folder + "/cgroup.procs", std::to_string(pid));
}

Status MemoryGroup::remove() const {
  constexpr int kAttempts = 100;
  for (int attempt = 0; rmdir(place_.folder.c_str()) != 0; ++attempt) {
    if (errno != EBUSY || attempt == kAttempts) {
      return fail(errno_error(errno, "cannot remove the control group", place_.folder));
    }
    base::sleep_for(std::chrono::milliseconds(10));
  }
  return {};
}

std::uint64_t budget_below(std::uint64_t limit_bytes) {
  const std::uint64_t slack = std::clamp<std::uint64_t>(limit_bytes / 16, 16 * base::kMiB, base::kGiB);
  return limit_bytes - std::min(slack, limit_bytes / 2);
}

std::uint64_t automatic_budget() {
  std::uint64_t limit = detect_machine_limits().memory_bytes;
  if (const auto group = MemoryGroup::of_this_process()) limit = std::min(limit, group->limit_bytes().value_or(limit));
  return budget_below(limit);
}

}  // namespace farheap::os
