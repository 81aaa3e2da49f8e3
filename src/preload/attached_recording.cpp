// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "preload/attached_recording.hpp"

#include <poll.h>
#include <unistd.h>

#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "os/own_descriptors.hpp"
#include "preload/runtime.hpp"
#include "profile/attachment.hpp"

namespace farheap::preload {

namespace {

constexpr int kBetweenLooksMs = 1;
constexpr std::chrono::milliseconds kAfterNobody{10};  // there may be no descriptors left

const char* why_not(const Runtime& runtime) {
  if (runtime.recorder) return "`farheap record` has started it, and records it";
  if (runtime.plan) return "it follows a plan; run it without --plan to record it";
  if (!runtime.options.record_pages.empty()) return "all uses of its pages are recorded (record_pages)";
  return nullptr;
}

void send_away(int listening, const char* why) {
  const auto request = profile::next_request(listening, profile::Patience::kNone);
  if (!request) return;
  profile::answer_request(request->connection, why);
  profile::end_connection(request->connection);
}

}  // namespace

void AttachedRecording::begin() {
  const os::ForUsAlone ours;
  const auto made = profile::listen_for_recorders(getpid());
  if (!made) base::log(base::LogLevel::kInfo, "nobody can attach: {}", made.error().message());
  listening_ = made ? os::keep_descriptor(*made) : -1;
}

void AttachedRecording::run() {
  const os::ForUsAlone ours;
  while (listening_ >= 0) let_one_in();
  for (;;) base::sleep_for(std::chrono::hours(1));
}

void AttachedRecording::let_one_in() {
  const auto request = profile::next_request(listening_);
  if (!request) return base::sleep_for(kAfterNobody);
  // The recorder may have given up while the process was stopped.
  if (!profile::has_hung_up(request->connection)) record(request->connection, request->folder);
  profile::end_connection(request->connection);
}

void AttachedRecording::record(int connection, const std::string& folder) {
  if (const Status attached = attach(folder); !attached) {
    return profile::answer_request(connection, attached.error().message());
  }
  profile::answer_request(connection, {});
  while (!profile::has_hung_up(connection)) {
    runtime_.segment->take_sampled_out();
    pollfd next{listening_, POLLIN, 0};
    if (poll(&next, 1, kBetweenLooksMs) > 0) send_away(listening_, "another `farheap record --attach` records it");
  }
  detach();
}

Status AttachedRecording::attach(const std::string& folder) {
  constexpr char kWhat[] = "cannot begin to record";
  if (const char* const why = why_not(runtime_)) return fail(ErrorCode::kConflict, kWhat, "", why, "");
  segment::PagedSegment& segment = *runtime_.segment;
  if (!segment.is_paging()) return fail(ErrorCode::kUnavailable, kWhat, "", "it begins to page", "try again");
  if (!recorder_) {
    auto made = profile::Recorder::make(folder, {segment.base(), segment.capacity_bytes()});
    if (!made) return fail(std::move(made.error()));
    recorder_ = std::move(*made);
  }
  if (Status begun = recorder_->attach(folder); !begun) return begun;
  records_ = true;
  // Allocations first: what is new has a site when it is waited for.
  g_observer.store(recorder_.get(), std::memory_order_release);
  Status observed = segment.observe_for_a_while(*recorder_);
  if (!observed) detach();
  return observed;
}

void AttachedRecording::detach() {
  records_ = false;
  g_observer.store(nullptr);
  runtime_.segment->observe_no_more();
  recorder_->end();
}

// Another thread of the parent may have been in the middle of it.
void AttachedRecording::leave_to_parent() {
  if (recorder_) recorder_->begin_in_child();
  if (!std::exchange(records_, false)) return;
  g_observer.store(nullptr);
  runtime_.segment->leave_observer_to_parent();
}

}  // namespace farheap::preload
