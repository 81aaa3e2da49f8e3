// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A recorder may attach to a process that pages (profile/attachment.hpp): the thread that lets it in, and takes the
// sampled pages out of view while it is there. Of what was allocated before, nothing is known.
//
// Thread-safety: one thread of the runtime, and the one that forks.
#pragma once

#include <memory>

#include "profile/recorder.hpp"

namespace farheap::preload {

struct Runtime;

class AttachedRecording {
 public:
  // The body of that thread (PagedSegment::accompany). `runtime` is whole when the process pages.
  static void* let_recorders_in(void* runtime);
  // In a forked child, while it has no other threads and before it pages: who records the parent does not record it.
  void leave_to_parent(Runtime& runtime);

 private:
  void let_in(Runtime& runtime);
  void record(Runtime& runtime, int listening, int connection, const std::string& folder);
  [[nodiscard]] Status begin(Runtime& runtime, const std::string& folder);
  void end(Runtime& runtime);

  std::unique_ptr<profile::Recorder> recorder_;  // while it records
};

}  // namespace farheap::preload
