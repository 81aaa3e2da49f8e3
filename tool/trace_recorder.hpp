// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Records a run: a thread that takes samples and writes each as a line at once, so that the file can be read up to the
// last sample whatever is killed. The format is in docs/formats.md, "A trace".
//
// A file that cannot be written on ends the recording with a warning, never the run.
// Thread-safety: one thread uses the object.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/condition.hpp"
#include "base/mutex.hpp"
#include "run_sample.hpp"

namespace farheap::tool {

inline constexpr int kTraceFormat = 1;
inline constexpr char kTraceKind[] = "farheap trace";

class TraceRecorder {
 public:
  // Creates `path` or empties it. `interval`: seconds between two samples; 0: chosen by the length of the run. The page
  // outlives the recorder.
  [[nodiscard]] static Result<std::unique_ptr<TraceRecorder>> open(const std::string& path, double interval,
                                                                   const base::RunPage& page);
  ~TraceRecorder();
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  // The first line, and the beginning of the samples.
  void start(const std::vector<std::string>& command, const std::string& store);
  // The last sample, and how the program ended.
  void finish(int exit_status, int signal);
  [[nodiscard]] std::size_t samples() const { return samples_; }

 private:
  TraceRecorder(std::string path, int file, double interval, const base::RunPage& page);
  void record();
  void write_sample();
  void write_line(const std::string& line);
  [[nodiscard]] double pause_after(double elapsed) const;
  void stop();

  const std::string path_;
  int file_;
  const double interval_;
  Sampler sampler_;
  double elapsed_ = 0;  // at the last sample
  std::size_t samples_ = 0;
  std::thread thread_;
  base::Mutex mutex_;
  base::Condition stopping_;
  bool stopped_ FARHEAP_GUARDED_BY(mutex_) = false;
};

}  // namespace farheap::tool
