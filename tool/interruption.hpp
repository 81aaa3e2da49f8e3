// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ctrl-C, SIGTERM and a terminal that goes away, for verbs that must not leave what they have made by half: while one
// of these lives, the first signal is noted, and the verb ends its work and removes that. A second one ends the process
// at once. main() then ends as the signal would have ended it, so that a shell sees it.
//
// Thread-safety: one at a time, in the tool's one thread.
#pragma once

#include <csignal>

namespace farheap::tool {

class Interruption {
 public:
  // Whoever started the tool may have had these signals ignored (nohup): then they are.
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // The signal's number; 0: none came.
  [[nodiscard]] static int noted() { return noted_; }
  [[nodiscard]] static const volatile std::sig_atomic_t& word() { return noted_; }
  // Ends the process by that signal. Requires: noted().
  [[noreturn]] static void end();

 private:
  static volatile std::sig_atomic_t noted_;
};

}  // namespace farheap::tool
