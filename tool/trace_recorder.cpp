// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "trace_recorder.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/mutex.hpp"
#include "os/named_file.hpp"
#include "quiet_thread.hpp"
#include "terminal.hpp"

namespace farheap::tool {
namespace {

// Arguments need not be UTF-8.
std::string line_of(const nlohmann::ordered_json& object) {
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<std::unique_ptr<TraceRecorder>> TraceRecorder::open(const std::string& path, double interval,
                                                           const base::RunPage& page) {
  const auto file = os::open_output_file(path, 0600, "cannot write the trace");
  if (!file) return fail(file.error());
  return std::unique_ptr<TraceRecorder>(new TraceRecorder(path, *file, interval, page));
}

TraceRecorder::TraceRecorder(std::string path, int file, double interval, const base::RunPage& page)
    : path_(std::move(path)), file_(file), interval_(interval), sampler_(page) {}

TraceRecorder::~TraceRecorder() {
  stop();
  if (file_ >= 0) close(file_);
}

void TraceRecorder::start(const std::vector<std::string>& command, const std::string& store) {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  write_line(line_of({{"format", kTraceFormat},
                      {"kind", kTraceKind},
                      {"command", command},
                      {"store", store},
                      {"pid", getpid()},
                      {"started", static_cast<std::int64_t>(now)}}));
  std::error_code why;
  thread_ = start_quietly([this] { record(); }, why);
  if (why) say("WARNING: the trace has only its end: no thread to take samples: " + why.message());
}

// So that a run of any length has some thousand samples.
double TraceRecorder::pause_after(double elapsed) const {
  constexpr double kLeast = 0.1;
  return interval_ != 0 ? interval_ : std::max(kLeast, elapsed / 1000);
}

void TraceRecorder::record() {
  base::LockGuard lock(mutex_);
  while (!stopped_) {
    write_sample();
    const auto pause =
        std::chrono::duration_cast<base::Clock::duration>(std::chrono::duration<double>(pause_after(elapsed_)));
    (void)stopping_.wait_for(mutex_, pause, [this]() FARHEAP_REQUIRES(mutex_) { return stopped_; });
  }
}

void TraceRecorder::write_sample() {
  const Sample sample = sampler_.take();
  elapsed_ = sample.seconds;
  ++samples_;
  write_line(line_of(sample_json(sample)));
}

void TraceRecorder::write_line(const std::string& line) {
  for (std::size_t done = 0; file_ >= 0 && done < line.size();) {
    const ssize_t size = write(file_, line.data() + done, line.size() - done);
    if (size < 0 && errno == EINTR) continue;
    if (size > 0) {
      done += static_cast<std::size_t>(size);
      continue;
    }
    say("WARNING: the trace ends here: cannot write " + path_ + ": " + std::strerror(errno));
    close(std::exchange(file_, -1));
  }
}

void TraceRecorder::stop() {
  {
    base::LockGuard lock(mutex_);
    stopped_ = true;
    stopping_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void TraceRecorder::finish(int exit_status, int signal) {
  stop();
  write_sample();
  write_line(line_of({{"end", true}, {"seconds", elapsed_}, {"exit_status", exit_status}, {"signal", signal}}));
}

}  // namespace farheap::tool
