// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/fault_loop.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <new>

#include "base/inside_runtime.hpp"
#include "base/log.hpp"
#include "os/io_ring.hpp"

namespace farheap::pager {

using Clock = std::chrono::steady_clock;

FaultLoop::FaultLoop(Pager& pager, KernelView& view, base::RunPage& run_page, FaultLoopOptions options)
    : pager_(pager), view_(view), run_page_(run_page), options_(options) {}

Status FaultLoop::start_thread(void* (*body)(void*)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 256 * base::kKiB);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, body, this);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error == 0) return {};
  return fail(
      errno_error(error, "cannot start a thread of the runtime", "pthread_create", "raise `ulimit -u` if it is set"));
}

Status FaultLoop::start() {
  // All handlers now, though most of them wait: later, pthread_create() could want a lock that the program's thread
  // holds whose fault it is that we should serve.
  handlers_ = 1;
  handlers_made_ = 0;
  for (unsigned i = 0; i < options_.most_handlers; ++i) {
    if (Status started = start_thread(&FaultLoop::handler); !started) return started;
  }
  for (auto body : {&FaultLoop::evictor, &FaultLoop::reader}) {
    if (Status started = start_thread(body); !started) return started;
  }
  return {};
}

Status FaultLoop::start_in_child() {
  new (&turn_) std::mutex;
  first_thread_ = last_thread_ = 0;
  serving_ = 0;
  return start();
}

void* FaultLoop::handler(void* loop) {
  base::t_inside_runtime = true;
  static_cast<FaultLoop*>(loop)->handle();
  return nullptr;
}

void* FaultLoop::evictor(void* loop) {
  base::t_inside_runtime = true;
  Pager& pager = static_cast<FaultLoop*>(loop)->pager_;
  for (;;) {
    switch (pager.evict_once()) {
      case Pager::Evicted::kWorked: break;
      case Pager::Evicted::kIdle: pager.wait_for_eviction_work(10); break;
      case Pager::Evicted::kStoreFull: poll(nullptr, 0, 500); break;
    }
  }
}

static std::byte* make_buffer(std::uint32_t pages) {
  auto mapping = os::Mapping::reserve(pages * base::kPageBytes, os::Access::kReadWrite);
  if (!mapping) base::stop(mapping.error().message());
  return (new os::Mapping(std::move(*mapping)))->data();  // as long as the thread, which is as long as the process
}

void* FaultLoop::reader(void* loop) {
  base::t_inside_runtime = true;
  auto& self = *static_cast<FaultLoop*>(loop);
  std::byte* buffer = make_buffer(self.options_.buffer_pages);
  for (;;) self.pager_.read_ahead_once(buffer, 1000);
}

bool FaultLoop::next_event(os::FaultEvent& event) {
  const auto until = Clock::now() + std::chrono::microseconds(serving_.load() == 0 ? options_.spin_us : 0);
  do {
    if (view_.userfault().read_event(event)) return true;
  } while (Clock::now() < until);
  pollfd waiting{view_.userfault().descriptor(), POLLIN, 0};
  poll(&waiting, 1, -1);
  return view_.userfault().read_event(event);
}

void FaultLoop::note_thread(std::uint32_t thread) {
  if (first_thread_ == 0) first_thread_ = thread;
  if (thread == first_thread_ || thread == last_thread_ || handlers_ >= options_.most_handlers) return;
  last_thread_ = thread;
  ++handlers_;
  handlers_.notify_all();
}

void FaultLoop::handle() {
  const unsigned number = handlers_made_++;
  for (unsigned awake; (awake = handlers_.load()) <= number;) handlers_.wait(awake);
  std::byte* buffer = make_buffer(options_.buffer_pages);
  for (;;) {
    os::FaultEvent event;
    {
      std::lock_guard turn(turn_);
      if (!next_event(event)) continue;
      note_thread(event.thread);
    }
    const auto since = Clock::now();
    run_page_.pulse.beat(std::chrono::nanoseconds(since.time_since_epoch()).count());
    os::look_out_for_answers(serving_.fetch_add(1) == 0);
    const PageNumber page = view_.page_of(event.address);
    pager_.fault(page, event.write, buffer);
    serving_.fetch_sub(1);
    const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - since).count();
    run_page_.counters.stall_ns.fetch_add(static_cast<std::uint64_t>(took), std::memory_order_relaxed);
    pager_.heat(page, base::Heat::kStallNs, static_cast<std::uint64_t>(took));
  }
}

}  // namespace farheap::pager
