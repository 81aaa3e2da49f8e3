// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A recorder may attach to a process that pages (profile/attachment.hpp): the thread that lets it in, and takes the
// sampled pages out of view while it is there. Of what was allocated before, nothing is known.
//
// Thread-safety: one thread of the runtime, and the one that forks.
#pragma once

#include <memory>
#include <string>

#include "profile/recorder.hpp"
#include "segment/paging.hpp"

namespace farheap::preload {

struct Runtime;

class AttachedRecording final : public segment::Companion {
 public:
  explicit AttachedRecording(Runtime& runtime) : runtime_(runtime) {}
  void begin() override;
  void run() override;
  // In a forked child, while it has no other threads and before it pages: who records the parent does not record it.
  void leave_to_parent();

 private:
  void let_one_in();
  void record(int connection, const std::string& folder);
  [[nodiscard]] Status attach(const std::string& folder);
  void detach();

  Runtime& runtime_;
  int listening_ = -1;  // -1: nobody can attach
  bool records_ = false;
  std::unique_ptr<profile::Recorder> recorder_;  // made for the first one, and never destroyed: threads may be in it
};

}  // namespace farheap::preload
