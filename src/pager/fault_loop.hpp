// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's threads (os/runtime_threads.hpp) at work: handlers take faults from the kernel, evictors make room,
// readers read ahead.
//
// Handlers take turns. The one whose turn it is leads: it waits for faults and serves those that are quick, and keeps
// several small reads in flight where the store can answer later. A fault that may take long it serves itself, after it
// has handed the lead on, because waking another thread to serve it would cost more than the fault. A second handler is
// woken only when a second thread of the program faults.
//
// Where the view has several queues of faults, there are as many desks, each with a lead of its own. One is open at
// first, and serves all queues; with four handlers awake two are, with eight four: desk d serves the queues, and has
// the handlers, whose numbers leave d when divided by the number of open desks. That is a power of two. So whoever
// sleeps at a desk and does not know yet that more were opened looks after all that he will be for then, and a queue is
// never without one who looks after it.
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
#include "pager/fault_observer.hpp"
#include "pager/kernel_view.hpp"
#include "pager/lead.hpp"
#include "pager/pager.hpp"
#include "pager/polling.hpp"
#include "pager/read_buffers.hpp"

namespace farheap::pager {

struct FaultLoopOptions {
  unsigned most_handlers = 4;
  unsigned queues = 1;  // of the view
  // After a fault, unless another handler is at work: another fault usually follows, and waking a blocked thread is
  // dear; but when several threads fault at once, or all processors are wanted (polling.hpp), a processor that spins is
  // missed elsewhere.
  unsigned spin_us = 20;
  std::uint32_t buffer_pages = 512;
  unsigned readers = 1;               // as PagerOptions::readers
  unsigned evictors = 1;              // as PagerOptions::evictors
  bool can_stop = false;              // a heap that is closed; a program's never is
  bool weighs_orders = true;          // nobody else calls Pager::weigh_order()
  FaultObserver* observer = nullptr;  // from the start on; outlives the loop
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
  // From now on this one sees the faults, or nobody (nullptr). Who did before may be called a moment longer: it
  // outlives the loop, too.
  void observe(FaultObserver* observer) { observer_.store(observer, std::memory_order_release); }
  // Returns when all its threads have ended. Requires: nobody faults any more, and no other call is under way.
  void stop();

 private:
  static void* handler(void* loop);
  static void* evictor(void* loop);
  static void* reader(void* loop);
  void handle();

  using Clock = Pager::Clock;
  // A thread of the program waits.
  struct Waiting {
    PageNumber page = 0;
    Clock::time_point since;
    std::uint32_t place = 0;  // where it does, as the observer names it
  };
  // What the leader cannot serve without waiting. Nothing is in flight.
  struct Long {
    Waiting waiting;
    bool write = false;
    bool guarded = false;    // the page is there, and guarded
    bool stop = false;       // there is no fault: the loop is being stopped
    bool elsewhere = false;  // ... the handler is wanted at another desk
    bool begun = false;      // it is `started` and only has to be read
    Pager::Started started;
  };
  struct Flight {
    Pager::Started started;
    Waiting waiting;
  };
  // Held by who leads here, sleeping included: the lead.
  struct Desk {
    Desk(unsigned its_number, Backing& backing);
    const unsigned number;
    Lead lead;
    Polling polling;                                          // pays() is for all
    std::uint32_t first_thread FARHEAP_GUARDED_BY(lead) = 0;  // the first that faulted
    std::uint32_t last_thread FARHEAP_GUARDED_BY(lead) = 0;
    unsigned next_queue FARHEAP_GUARDED_BY(lead) = 0;                // to be asked first
    std::unique_ptr<Backing::Reads> reads FARHEAP_GUARDED_BY(lead);  // null: this store's answers have to be waited for
    std::vector<Flight> flights FARHEAP_GUARDED_BY(lead);            // by number
    std::vector<unsigned> free_numbers FARHEAP_GUARDED_BY(lead);
    [[nodiscard]] bool in_flight() const FARHEAP_REQUIRES(lead) { return free_numbers.size() < flights.size(); }
  };
  [[nodiscard]] unsigned open_desks() const { return desks_for(handlers_.load()); }
  [[nodiscard]] unsigned desks_for(unsigned handlers) const;
  [[nodiscard]] Desk& desk_of(unsigned handler) { return *desks_[handler % open_desks()]; }
  [[nodiscard]] Long lead(Desk& desk, unsigned handler, std::byte* buffer) FARHEAP_REQUIRES(desk.lead);
  [[nodiscard]] bool next_event(Desk& desk, unsigned desks, os::FaultEvent& event) FARHEAP_REQUIRES(desk.lead);
  [[nodiscard]] bool read_event(Desk& desk, unsigned desks, os::FaultEvent& event) FARHEAP_REQUIRES(desk.lead);
  void note_thread(Desk& desk, std::uint32_t thread) FARHEAP_REQUIRES(desk.lead);
  void goes_on(const Waiting& waiting, std::uint32_t pages_read);
  void wake_handler();
  [[nodiscard]] std::byte* flight_buffer(const Desk& desk, unsigned number) const;
  [[nodiscard]] bool read_later(Desk& desk, const Pager::Started& started, const Waiting& waiting)
      FARHEAP_REQUIRES(desk.lead);
  [[nodiscard]] bool land_one(Desk& desk) FARHEAP_REQUIRES(desk.lead);
  void land_all(Desk& desk) FARHEAP_REQUIRES(desk.lead);
  [[nodiscard]] Status start_thread(os::ThreadBody body);

  Pager& pager_;
  Backing& backing_;
  KernelView& view_;
  base::RunPage& run_page_;
  const FaultLoopOptions options_;
  std::atomic<FaultObserver*> observer_;
  ReadBuffers buffers_;  // one for each handler, then the readers', then for each desk one for its reads in flight
  std::atomic<unsigned> readers_made_ = 0;
  std::atomic<unsigned> evictors_made_ = 0;
  std::vector<std::unique_ptr<Desk>> desks_;  // one for each queue
  std::atomic<unsigned> handlers_ = 0;        // that are awake: it only grows
  std::atomic<unsigned> handlers_made_ = 0;
  std::atomic<bool> stopping_ = false;
  std::vector<pthread_t> threads_;     // to be joined; none where they live as long as the process
  int wake_up_ = -1;                   // an eventfd: readable when it is to stop
  std::atomic<unsigned> serving_ = 0;  // handlers that have a fault in hand
};

}  // namespace farheap::pager
