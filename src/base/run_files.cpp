// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the run page gets into a process, and how it is looked at from outside.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/run_page.hpp"
#include "base/sealed_file.hpp"
#include "base/system_call.hpp"

namespace farheap::base {
namespace {

constexpr char kCannotOpenRunPage[] = "cannot open the run page";
constexpr char kOneVersion[] = "use the runtime and the tool of one version";
constexpr char kOtherFormat[] = "it has another format";
constexpr std::size_t kConfigurationAt = sizeof(RunOwn), kSharedAt = sizeof(RunOwn) + sizeof(RunConfiguration);
static_assert(sizeof(RunPage) == kSharedAt + sizeof(RunShared));

// The system call: inside a program that runs on Farheap, mmap() is Farheap's own. nullptr if it failed.
void* map(void* at, std::size_t bytes, int access, int flags, int file) {
  const long mapped = syscall(SYS_mmap, at, bytes, access, flags, file, 0L);
  return mapped == -1 ? nullptr : reinterpret_cast<void*>(mapped);
}

std::byte* map_private() {
  return static_cast<std::byte*>(
      map(nullptr, sizeof(RunPage), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1));
}

RunPage* begin_page(std::byte* at) {
  new (at) RunOwn;
  return reinterpret_cast<RunPage*>(at);
}

// Its own part, the configuration and what is shared, one behind the other. Not in a core dump: that would give every
// table of the page memory. A private mapping of the configuration, because a file that nobody may write cannot be
// mapped as shared by a descriptor that could have written it (before Linux 6.7).
RunPage* map_files(const RunFiles& files) {
  std::byte* const at = map_private();
  if (at == nullptr) return nullptr;
  constexpr int kThere = MAP_FIXED;
  if (map(at + kConfigurationAt, sizeof(RunConfiguration), PROT_READ, MAP_PRIVATE | kThere, files.configuration) ==
          nullptr ||
      map(at + kSharedAt, sizeof(RunShared), PROT_READ | PROT_WRITE, MAP_SHARED | kThere, files.counters) == nullptr) {
    const int why = errno;
    syscall(SYS_munmap, at, sizeof(RunPage));
    errno = why;
    return nullptr;
  }
  syscall(SYS_madvise, at, sizeof(RunPage), MADV_DONTDUMP);
  return begin_page(at);
}

std::uint64_t number_of_file(int file) {
  struct stat status{};
  return fstat(file, &status) == 0 ? status.st_ino : 0;
}

// What the head of a configuration says; every format begins with its number.
const char* read_configuration(int file, RunConfiguration& into) {
  if (pread(file, static_cast<void*>(&into), sizeof into, 0) != static_cast<ssize_t>(sizeof into)) return kOtherFormat;
  return into.format.load() == kRunPageFormat ? nullptr : kOtherFormat;
}

const char* distrust_together(const RunFiles& files) {
  RunConfiguration configuration;
  if (const char* const why = read_configuration(files.configuration, configuration)) return why;
  return configuration.counters_file.load() == number_of_file(files.counters) ? nullptr
                                                                              : "its counters are another run's";
}

const char* distrust_of_files(const RunFiles& files) {
  if (const char* const why = distrust_of(files.configuration, sizeof(RunConfiguration), Sealed::kContent)) return why;
  if (const char* const why = distrust_of(files.counters, sizeof(RunShared), Sealed::kLength)) return why;
  return distrust_together(files);
}

// Allocates nothing. nullptr, and why; null for an errno value.
RunPage* find(const RunPlace& place, const char*& why) {
  const RunFiles inherited = place.inherited();
  if (inherited.configuration >= 0 && inherited.counters >= 0) return map_files(inherited);
  RunFiles files;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", place.tool, place.files.configuration);
  files.configuration = open_plain_file(path, O_RDONLY);
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", place.tool, place.files.counters);
  if (files.configuration >= 0) files.counters = open_plain_file(path, O_RDWR);
  RunPage* page = nullptr;
  if (files.counters >= 0) {
    why = distrust_of_files(files);
    if (why == nullptr) page = map_files(files);
  }
  const int error = errno;
  close_now(files.configuration);
  close_now(files.counters);
  errno = error;
  return page;
}

bool take_number(std::string_view& text, int& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  if (error != std::errc{} || into < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_colon(std::string_view& text) {
  if (!text.starts_with(':')) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string RunConfiguration::command_text() const { return {command, strnlen(command, kCommandBytes)}; }

Result<RunFiles> make_run_files(std::uint64_t budget_bytes, std::string_view command, int number_from) {
  auto counters = make_sealed_file(kRunCountersName, nullptr, sizeof(RunShared), Sealed::kLength, number_from);
  if (!counters) return fail(std::move(counters.error()));
  RunConfiguration configuration;
  configuration.budget_bytes.store(budget_bytes);
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  configuration.started_ns.store(now.tv_sec * 1'000'000'000LL + now.tv_nsec);
  configuration.counters_file.store(number_of_file(*counters));
  command.copy(configuration.command, RunConfiguration::kCommandBytes - 1);
  auto made = make_sealed_file(kRunPageName, &configuration, sizeof configuration, Sealed::kContent, number_from);
  if (made) return RunFiles{*made, *counters};
  close_now(*counters);
  return fail(std::move(made.error()));
}

Result<RunPage*> map_run_page(const RunFiles& files) {
  if (const char* const why = distrust_of_files(files)) {
    return fail(ErrorCode::kCorrupt, kCannotOpenRunPage, "memfd", why, kOneVersion);
  }
  RunPage* const page = map_files(files);
  if (page == nullptr) return fail(errno_error(errno, "cannot map the run page", "memfd"));
  return page;
}

std::optional<RunPlace> RunPlace::parse(std::string_view text) {
  RunPlace place;
  if (!take_number(text, place.tool) || !take_colon(text) || !take_number(text, place.files.configuration) ||
      !take_colon(text) || !take_number(text, place.files.counters)) {
    return std::nullopt;
  }
  if (text.empty()) return place;
  if (!take_colon(text) || !take_number(text, place.password) || !text.empty()) return std::nullopt;
  return place;
}

std::string RunPlace::text() const {
  std::string all =
      std::to_string(tool) + ":" + std::to_string(files.configuration) + ":" + std::to_string(files.counters);
  return password < 0 ? all : all + ":" + std::to_string(password);
}

RunFiles RunPlace::inherited() const { return distrust_of_files(files) == nullptr ? files : RunFiles{}; }

std::string RunPlace::password_path() const {
  return "/proc/" + std::to_string(tool) + "/fd/" + std::to_string(password);
}

Result<RunPage*> open_run_page(const RunPlace& place) {
  const char* why = nullptr;
  RunPage* const page = find(place, why);
  if (page != nullptr) return page;
  if (why != nullptr) return fail(ErrorCode::kCorrupt, kCannotOpenRunPage, place.text(), why, kOneVersion);
  return fail(errno_error(errno, kCannotOpenRunPage, place.text()));
}

RunPage* find_run_page(const char* text) {
  const auto place = text != nullptr ? RunPlace::parse(text) : std::nullopt;
  const char* why = nullptr;
  return place ? find(*place, why) : nullptr;
}

void open_locks(RunPage& page, int counters) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/thread-self/fd/%d", counters);
  page.locks = open_plain_file(path, O_RDWR);
}

void open_locks(RunPage& page, const RunPlace& place) {
  if (const RunFiles inherited = place.inherited(); inherited.counters >= 0)
    return open_locks(page, inherited.counters);
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", place.tool, place.files.counters);
  page.locks = open_plain_file(path, O_RDWR);
}

// ---- from outside

namespace {

Error foreign(const std::string& path, const char* why) {
  return {ErrorCode::kCorrupt, "cannot look at a run", path, why, kOneVersion};
}

// The owner is `expected` or root.
const char* distrust_of_strangers(const RunFiles& files, unsigned expected) {
  unsigned one = 0, other = 0;
  const char* why = distrust_of_stranger(files.configuration, sizeof(RunConfiguration), Sealed::kContent, one);
  if (why == nullptr) why = distrust_of_stranger(files.counters, sizeof(RunShared), Sealed::kLength, other);
  if (why == nullptr && (one != other || (one != 0 && one != expected))) why = "another user made it";
  return why != nullptr ? why : distrust_together(files);
}

bool read_at(int file, void* into, std::size_t bytes, std::size_t at) {
  return pread(file, into, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
}

}  // namespace

Result<std::unique_ptr<RunView>> RunView::open(const std::string& configuration, const std::string& counters,
                                               unsigned owner) {
  const RunFiles files{open_plain_file(configuration.c_str(), O_RDONLY), open_plain_file(counters.c_str(), O_RDONLY)};
  if (files.configuration < 0 || files.counters < 0) {
    const int error = errno;
    close_now(files.configuration);
    close_now(files.counters);
    return fail(errno_error(error, "cannot look at a run", configuration));
  }
  const char* why = distrust_of_strangers(files, owner);
  std::byte* const at = why == nullptr ? map_private() : nullptr;
  RunPage* const page = at != nullptr ? begin_page(at) : nullptr;
  if (page != nullptr) why = read_configuration(files.configuration, *page);
  close_now(files.configuration);
  if (page == nullptr) {
    close_now(files.counters);
    return fail(why != nullptr ? foreign(configuration, why) : errno_error(errno, "cannot look at a run", "memory"));
  }
  struct stat space{};
  page->pid_namespace = stat("/proc/self/ns/pid", &space) == 0 ? static_cast<std::uint32_t>(space.st_ino) : 0;
  page->locks = files.counters;  // to ask for locks, it need not be open for writing
  std::unique_ptr<RunView> view(new RunView(page, files.counters));
  if (why != nullptr || !view->refresh()) return fail(foreign(configuration, why != nullptr ? why : kOtherFormat));
  return view;
}

RunView::~RunView() {
  syscall(SYS_munmap, page_, sizeof *page_);
  close_now(counters_);
}

// Again where its ranges doubled meanwhile; the table of a process that was killed then stays as it is.
bool RunView::read_table(std::size_t slot, std::size_t at) {
  constexpr int kTries = 10;
  const HeatTable& table = page_->heat(slot);
  for (int i = 0; i < kTries; ++i) {
    std::uint32_t after = 0;
    if (!read_at(counters_, page_->heat_tables[slot], sizeof(HeatTable), at)) return false;
    if (!read_at(counters_, &after, sizeof after, at)) return false;  // a table begins with its version
    if (table.is_whole() && table.version() == after) break;
  }
  return true;
}

bool RunView::refresh() {
  auto* const shared = reinterpret_cast<std::byte*>(page_) + kSharedAt;
  const auto tables_at = static_cast<std::size_t>(&page_->heat_tables[0][0] - shared);
  if (!read_at(counters_, shared, tables_at, 0)) return false;
  for (std::size_t i = 0; i < RunShared::kSlots; ++i) {
    if (page_->slots[i].heats.load() != 0 && !read_table(i, tables_at + i * sizeof(HeatTable))) return false;
  }
  return true;
}

std::optional<std::uint64_t> counters_of(const std::string& path) {
  const int file = open_plain_file(path.c_str(), O_RDONLY);
  RunConfiguration configuration;
  unsigned owner = 0;
  const bool known = file >= 0 &&
                     distrust_of_stranger(file, sizeof configuration, Sealed::kContent, owner) == nullptr &&
                     read_configuration(file, configuration) == nullptr;
  close_now(file);
  if (!known) return std::nullopt;
  return configuration.counters_file.load();
}

}  // namespace farheap::base
