// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a recorded run keeps its parts until it ends: FILE.parts, beside the profile that it becomes. Each process
// writes a recording into it (profile/recording.hpp), the tool the trace of the run. What is there can be read at any
// time, also after everything was killed.
//
// Thread-safety: one thread uses the object; a thread of its own looks after processes that ended.
#pragma once

#include <farheap/result.hpp>
#include <memory>
#include <string>

#include "profile/profile.hpp"

namespace farheap::tool {

class RecordingFolder {
 public:
  // Makes the folder. kConflict where an earlier recording was cut off, and its parts are still there.
  [[nodiscard]] static Result<std::unique_ptr<RecordingFolder>> make(const std::string& profile_path);
  ~RecordingFolder();
  RecordingFolder(const RecordingFolder&) = delete;
  RecordingFolder& operator=(const RecordingFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }  // absolute
  [[nodiscard]] std::string trace_path() const;
  // After the last process: writes the profile and removes the folder. What cannot be written stays in the parts. A
  // profile that is there already is renamed: its recording may have taken hours. `store`: what it can do; empty if
  // nobody asked.
  [[nodiscard]] Result<profile::Profile> finish(std::vector<profile::StoreSpeed> store);
  // Its name then; empty where there was none.
  [[nodiscard]] const std::string& earlier() const { return earlier_; }
  // Nothing was recorded, because the program was not started.
  void remove();

 private:
  explicit RecordingFolder(std::string profile_path);
  struct Collector;  // collects processes that ended, so that the disk holds few recordings at a time

  const std::string profile_path_, path_;
  std::string earlier_;
  std::unique_ptr<Collector> collector_;
};

// Finishes it, and tells where the profile is: `path`, as the user named it. An exit status: `status`, but for a
// failure after success.
[[nodiscard]] int finish_profile(RecordingFolder& folder, const std::string& path, int status, bool quiet,
                                 std::vector<profile::StoreSpeed> store);
// A profile, or the parts of one (a folder).
[[nodiscard]] Result<profile::Profile> load_profile(const std::string& path);
// Whether the file begins as one, or is a folder of parts.
[[nodiscard]] bool is_profile(const std::string& path);
// kInvalidArgument for a plan, which is easily taken for the profile that it was made of.
[[nodiscard]] Status check_no_plan(const std::string& path);

}  // namespace farheap::tool
