// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads of the tool beside its first one: no signal of the run goes to them.
#pragma once

#include <signal.h>

#include <system_error>
#include <thread>
#include <utility>

namespace farheap::tool {

// A thread with all signals blocked; none (not joinable) when the system gives no more.
template <class Body>
[[nodiscard]] std::thread start_quietly(Body body, std::error_code& why) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error& error) {
    why = error.code();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace farheap::tool
