// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: a process's part is in its recording, or in the profile of those that ended, which names the recordings
// that went into it. So one that could not be emptied any more is not counted twice.
#include "recording_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <thread>

#include "base/condition.hpp"
#include "base/mutex.hpp"
#include "output_file.hpp"
#include "plan/plan.hpp"
#include "profile/harvest.hpp"
#include "profile/recording.hpp"
#include "terminal.hpp"
#include "verbs.hpp"
#include "whole_file.hpp"

namespace farheap::tool {

namespace {

namespace files = std::filesystem;

constexpr char kEnded[] = "ended.profile";
constexpr char kTraceInside[] = "/trace";
constexpr char kRecording[] = ".recording";
constexpr std::size_t kMostWaiting = 32;  // recordings of processes that ended
constexpr std::chrono::milliseconds kBetweenLooksForEnd{500};

std::string parts_of(const std::string& profile_path) {
  std::error_code unknown;
  const files::path whole = files::absolute(profile_path, unknown);
  return (unknown ? files::path(profile_path) : whole).string() + ".parts";
}

// The file that a symbolic link leads to: that one is replaced, not the link.
std::string behind_links(const std::string& path) {
  std::error_code unknown;
  const files::path found = files::weakly_canonical(path, unknown);
  return unknown ? path : found.string();
}

std::vector<files::path> recordings_in(const std::string& folder) {
  std::vector<files::path> found;
  std::error_code failed;
  for (files::directory_iterator one(folder, failed), end; !failed && one != end; one.increment(failed)) {
    if (one->path().extension() == kRecording) found.push_back(one->path());
  }
  std::ranges::sort(found);
  return found;
}

// By its name, PID.recording or PID.N.recording.
bool has_ended(const files::path& recording) {
  const std::string name = recording.filename().string();
  const int process = std::atoi(name.c_str());
  return process > 0 && kill(process, 0) != 0 && errno == ESRCH;
}

class BuildIds {
 public:
  std::string operator()(const std::string& path) {
    const auto [found, is_new] = known_.try_emplace(path);
    if (is_new) found->second = profile::build_id_of_file(path);
    return found->second;
  }

 private:
  std::map<std::string, std::string> known_;
};

// Of one process. A recording that was not begun when its process was killed, or was collected, says nothing. One that
// the program has written over is left out: it is not worth those of the others.
void add_recording(const files::path& path, const profile::BuildIdOf& build_id_of, profile::Profile& to) {
  const auto bytes = whole_file(path.string(), "cannot read a recording", "");
  if (!bytes || bytes->empty() || bytes->front() == '\0') return;
  if (!profile::add_recording(std::as_bytes(std::span(*bytes)), path.string(), build_id_of, to)) {
    ++to.processes_left_out;
    return;
  }
  const std::string beside = path.string() + profile::kTouches;
  if (const auto touches = whole_file(beside, "cannot read a recording", "")) {
    (void)profile::add_touches(std::as_bytes(std::span(*touches)), beside, to.processes.back());
  }
  keep_most_important(to);
}

void add_recordings(const std::vector<files::path>& recordings, profile::Profile& to) {
  BuildIds ids;
  const profile::BuildIdOf build_id_of = [&ids](const std::string& path) { return ids(path); };
  for (const files::path& path : recordings) add_recording(path, build_id_of, to);
}

// In one piece, by way of `draft`, which is in the same file system. A file that is there already becomes `earlier`;
// without that name it is replaced.
Status write_whole(const std::string& path, const std::string& draft, const profile::Profile& profile,
                   const std::string& earlier = {}) {
  if (Status written = write_output(draft, encode(profile), "cannot write the profile"); !written) {
    unlink(draft.c_str());
    return written;
  }
  if ((earlier.empty() || rename(path.c_str(), earlier.c_str()) == 0) && rename(draft.c_str(), path.c_str()) == 0) {
    return {};
  }
  Status failed = fail(errno_error(errno, "cannot write the profile", path));
  unlink(draft.c_str());
  return failed;
}

// Those that ended, if some were collected. Instead of a trace it has the names of their recordings, a line each.
Result<profile::Profile> load_ended(const std::string& folder) {
  const std::string path = folder + "/" + kEnded;
  if (access(path.c_str(), F_OK) != 0) return profile::Profile{};
  const auto bytes = whole_file(path, "cannot read the profile", "");
  if (!bytes) return fail(bytes.error());
  return profile::read_profile(*bytes, path);
}

std::string line_of(const files::path& recording) { return recording.filename().string() + "\n"; }

bool is_collected(const files::path& recording, const profile::Profile& ended) {
  return ("\n" + ended.trace).find("\n" + line_of(recording)) != std::string::npos;
}

Result<profile::Profile> load_parts(const std::string& folder) {
  std::vector<files::path> recordings = recordings_in(folder);  // first: what is collected meanwhile is in the other
  auto profile = load_ended(folder);
  if (!profile) return profile;
  std::erase_if(recordings, [&](const files::path& path) { return is_collected(path, *profile); });
  add_recordings(recordings, *profile);
  profile->trace.clear();
  if (auto trace = whole_file(folder + kTraceInside, "cannot read the trace", "")) profile->trace = std::move(*trace);
  return profile;
}

bool is_folder(const std::string& path) {
  std::error_code unknown;
  return files::is_directory(path, unknown);
}

}  // namespace

struct RecordingFolder::Collector {
  explicit Collector(std::string its_folder) : folder(std::move(its_folder)), thread([this] { look_after(); }) {}
  ~Collector() {
    {
      base::LockGuard lock(mutex);
      stopped = true;
      stopping.notify_all();
    }
    thread.join();
  }

  void look_after() {
    base::LockGuard lock(mutex);
    while (!stopping.wait_for(mutex, kBetweenLooksForEnd, [this]() FARHEAP_REQUIRES(mutex) { return stopped; }))
      collect();
  }

  // What is collected is emptied, not removed: its name stays taken, whoever gets the number of its process.
  void collect() const {
    auto profile = load_ended(folder);
    if (!profile) return;
    std::vector<files::path> ended = recordings_in(folder);
    std::erase_if(ended, [&](const files::path& path) { return !has_ended(path) || is_collected(path, *profile); });
    if (ended.size() < kMostWaiting) return;
    add_recordings(ended, *profile);
    for (const files::path& path : ended) profile->trace += line_of(path);
    if (!write_whole(folder + "/" + kEnded, folder + "/draft", *profile)) return;
    for (const files::path& path : ended) {
      truncate(path.c_str(), 0);
      unlink((path.string() + profile::kTouches).c_str());
    }
  }

  const std::string folder;
  base::Mutex mutex;
  base::Condition stopping;
  bool stopped FARHEAP_GUARDED_BY(mutex) = false;
  std::thread thread;
};

RecordingFolder::RecordingFolder(std::string profile_path)
    : profile_path_(std::move(profile_path)), path_(parts_of(profile_path_)) {}

RecordingFolder::~RecordingFolder() = default;

std::string RecordingFolder::trace_path() const { return path_ + kTraceInside; }

Result<std::unique_ptr<RecordingFolder>> RecordingFolder::make(const std::string& profile_path) {
  constexpr char kWhat[] = "cannot record";
  std::unique_ptr<RecordingFolder> folder(new RecordingFolder(behind_links(profile_path)));
  std::error_code unknown;
  const auto there = files::status(profile_path, unknown);
  if (files::exists(there) && !files::is_regular_file(there)) {
    return fail(ErrorCode::kInvalidArgument, kWhat, profile_path,
                files::is_directory(there) ? "it is a folder" : "it is no ordinary file",
                "name a file, as -o app.profile");
  }
  if (mkdir(folder->path_.c_str(), 0700) != 0) {
    if (errno != EEXIST) return fail(errno_error(errno, kWhat, folder->path_, "choose a folder that you may write"));
    return fail(ErrorCode::kConflict, kWhat, profile_path,
                "parts of another recording are in " + folder->path_ + ": it goes on, or it was cut off",
                fmt::format("`farheap report {0}` shows them; remove the folder, or choose another -o",
                            shell_word(folder->path_)));
  }
  folder->collector_ = std::make_unique<Collector>(folder->path_);
  return folder;
}

Result<profile::Profile> RecordingFolder::finish(std::vector<profile::StoreSpeed> store) {
  collector_.reset();
  auto profile = load_parts(path_);
  if (!profile) {
    profile.error().remedy = "its parts are in " + path_;
    return profile;
  }
  profile->store = std::move(store);
  if (is_profile(profile_path_)) earlier_ = profile_path_ + ".old";
  if (Status written = write_whole(profile_path_, path_ + "/draft", *profile, earlier_); !written) {
    Error error = std::move(written.error());
    error.remedy = fmt::format("its parts are in {}; `farheap report` reads them, too", path_);
    return fail(std::move(error));
  }
  remove();
  return profile;
}

void RecordingFolder::remove() {
  collector_.reset();
  std::error_code failed;
  files::remove_all(path_, failed);
  if (failed) say(fmt::format("WARNING: cannot remove {}: {}", path_, failed.message()));
}

int finish_profile(RecordingFolder& folder, const std::string& path, int status, bool quiet,
                   std::vector<profile::StoreSpeed> store) {
  const auto profile = folder.finish(std::move(store));
  if (!profile) {
    complain(profile.error());
    return status != kDone ? status : kFailed;
  }
  if (!quiet) {
    const std::size_t count = profile->processes.size();
    say(fmt::format("profile: {} in {}; `farheap report {}` shows which lines waited",
                    count == 1 ? "1 process" : fmt::format("{} processes", count), path, shell_word(path)));
    if (!folder.earlier().empty()) say(fmt::format("what {} was before is in {} now", path, folder.earlier()));
  }
  return status;
}

// Of what is no regular file nothing is read: what has been read is gone.
static bool begins_with(const std::string& path, std::string_view magic) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return false;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::string start(magic.size(), '\0');
  const ssize_t bytes = read(file, start.data(), start.size());
  close(file);
  return bytes == static_cast<ssize_t>(start.size()) && start == magic;
}

Status check_no_plan(const std::string& path) {
  if (!begins_with(path, plan::kPlanMagic)) return {};
  return fail(ErrorCode::kInvalidArgument, "cannot read the profile", path, "it is a plan",
              "give the profile that it was made of; `farheap plan PROFILE --explain` says in words what a plan holds");
}

Result<profile::Profile> load_profile(const std::string& path) {
  if (is_folder(path)) {
    auto parts = load_parts(path);
    if (parts && parts->processes.empty() && parts->trace.empty()) {
      return fail(ErrorCode::kCorrupt, "cannot read the profile", path, "nothing of a recording is in the folder",
                  "`farheap record -o FILE -- PROGRAM` makes one");
    }
    return parts;
  }
  if (Status is_none = check_no_plan(path); !is_none) return fail(std::move(is_none.error()));
  const auto bytes = whole_file(path, "cannot read the profile", "`farheap record -o FILE -- PROGRAM` makes one");
  if (!bytes) return fail(bytes.error());
  return profile::read_profile(*bytes, path);
}

bool is_profile(const std::string& path) {
  if (is_folder(path)) {
    return !recordings_in(path).empty() || access((path + "/" + kEnded).c_str(), F_OK) == 0 ||
           access((path + kTraceInside).c_str(), F_OK) == 0;
  }
  return begins_with(path, profile::kProfileMagic);
}

}  // namespace farheap::tool
