// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the runtime's threads do (os/runtime_threads.hpp): handlers that take faults from the kernel, evictors, readers.
//
// Handlers take turns. The one whose turn it is leads: it waits for faults and serves those that are quick, and keeps
// several small reads in flight where the store can answer later. A fault that may take long it serves itself, after it
// has handed the lead on, because waking another thread to serve it would cost more than the fault. A second handler is
// woken only when a second thread of the program faults.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.hpp"
#include "os/mapping.hpp"
#include "os/runtime_threads.hpp"
#include "os/userfault.hpp"
#include "pager/kernel_view.hpp"
#include "pager/pager.hpp"
#include "pager/polling.hpp"
#include "pager/read_buffers.hpp"

namespace farheap::pager {

struct FaultLoopOptions {
  unsigned most_handlers = 4;
  // After a fault, unless another handler is at work: another fault usually follows, and waking a blocked thread is
  // dear; but when several threads fault at once, or all processors are wanted (polling.hpp), a processor that spins is
  // missed elsewhere.
  unsigned spin_us = 20;
  std::uint32_t buffer_pages = 512;
  unsigned readers = 1;   // as PagerOptions::readers
  unsigned evictors = 1;  // as PagerOptions::evictors
  bool can_stop = false;  // a heap that is closed; a program's never is
};

class FaultLoop {
 public:
  // All outlive the loop.
  FaultLoop(Pager& pager, Backing& backing, KernelView& view, base::RunPage& run_page, FaultLoopOptions options);
  static constexpr unsigned threads(const FaultLoopOptions& options) {
    return options.most_handlers + options.evictors + options.readers;
  }
  // kUnavailable if a thread cannot be made.
  [[nodiscard]] Status start();
  // In a forked child, where the threads are not.
  [[nodiscard]] Status start_in_child();
  // Returns when all its threads have ended. Requires: nobody faults any more, and no other call is under way.
  void stop();

 private:
  static void* handler(void* loop);
  static void* evictor(void* loop);
  static void* reader(void* loop);
  void handle();

  using Clock = Pager::Clock;
  // What the leader cannot serve without waiting. Nothing is in flight.
  struct Long {
    PageNumber page = 0;
    bool write = false;
    bool guarded = false;  // the page is there, and guarded
    bool stop = false;     // there is no fault: the loop is being stopped
    bool begun = false;    // it is `started` and only has to be read
    Pager::Started started;
    Clock::time_point since;
  };
  [[nodiscard]] Long lead(std::byte* buffer) FARHEAP_REQUIRES(turn_);
  [[nodiscard]] bool next_event(os::FaultEvent& event) FARHEAP_REQUIRES(turn_);
  void note_thread(std::uint32_t thread) FARHEAP_REQUIRES(turn_);
  [[nodiscard]] std::byte* flight_buffer(unsigned number) const;
  [[nodiscard]] bool read_later(const Pager::Started& started, Clock::time_point since) FARHEAP_REQUIRES(turn_);
  [[nodiscard]] bool land_one() FARHEAP_REQUIRES(turn_);
  void land_all() FARHEAP_REQUIRES(turn_);
  [[nodiscard]] Status start_thread(os::ThreadBody body);

  Pager& pager_;
  Backing& backing_;
  KernelView& view_;
  base::RunPage& run_page_;
  const FaultLoopOptions options_;
  ReadBuffers buffers_;  // one for each handler, then the readers', then one for all reads in flight
  std::atomic<unsigned> readers_made_ = 0;
  std::atomic<unsigned> evictors_made_ = 0;
  base::Mutex turn_;                                          // held by who leads, sleeping included
  Polling polling_;                                           // pays() is for all
  std::uint32_t first_thread_ FARHEAP_GUARDED_BY(turn_) = 0;  // the first that faulted
  std::uint32_t last_thread_ FARHEAP_GUARDED_BY(turn_) = 0;
  std::unique_ptr<Backing::Reads> reads_ FARHEAP_GUARDED_BY(turn_);  // null: this store's answers have to be waited for
  struct Flight {
    Pager::Started started;
    Clock::time_point since;
  };
  std::vector<Flight> flights_ FARHEAP_GUARDED_BY(turn_);  // by number
  std::vector<unsigned> free_numbers_ FARHEAP_GUARDED_BY(turn_);
  std::atomic<unsigned> handlers_ = 0;  // that are awake
  std::atomic<unsigned> handlers_made_ = 0;
  std::atomic<bool> stopping_ = false;
  std::vector<pthread_t> threads_;     // to be joined; none where they live as long as the process
  int wake_up_ = -1;                   // an eventfd: readable when it is to stop
  std::atomic<unsigned> serving_ = 0;  // handlers that have a fault in hand
};

}  // namespace farheap::pager
