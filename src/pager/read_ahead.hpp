// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What will be touched soon, told from what was: streams that were noticed, loops that said that they come, WILL_NEED
// hints. It decides which pages are read ahead, and holds the requests until a reader takes them. It moves no page.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "base/condition.hpp"
#include "base/run_page.hpp"
#include "pager/earlier.hpp"
#include "pager/evictors.hpp"
#include "pager/expected_order.hpp"
#include "pager/loops.hpp"
#include "pager/order_choice.hpp"
#include "pager/page_table.hpp"
#include "pager/policy.hpp"
#include "pager/room.hpp"
#include "pager/streams.hpp"

namespace farheap::pager {

struct ReadAheadOptions {
  std::uint64_t pages = 0;  // how far ahead of a stream; 0: never
  std::uint32_t block_max_pages = 0;
  std::uint32_t readers = 1;
};

class ReadAhead {
 public:
  struct Request {
    PageRun run;
    bool stream = false;            // hold one page out of view as a marker
    bool backward = false;          // ... the last one instead of the first
    bool goes_on = false;           // of a stream, with the marker in an earlier piece or none
    std::uint32_t order = 0;        // number of the expected order that it is of; 0: of none
    ExpectedOrder::Next next = {};  // ... which says it so; its marker is out of view
  };

  // All of them must outlive it. Evictors are woken to make room for what is asked for.
  ReadAhead(PageTable& table, Earlier& earlier, Policy& policy, Room& room, Evictors& evictors,
            base::RunCounters& counters, ReadAheadOptions options);

  // Which orders are known; what of them is expected, expect() is told.
  [[nodiscard]] OrderChoice& orders() { return orders_known_; }
  // From now on the program is followed along this order, as long as it keeps to it. If that is a plan's, and was one
  // before, the program is taken to be in the round if it was before; what it says itself it begins with now. nullptr:
  // nobody knows the order any more. After a plan's order that was given up no other of it is followed.
  //
  // The tables are made before the pager's mutex is taken, with what is_in_round() said then, and the order that was
  // followed until now is given back, to be freed after it. nullopt: nobody knows the order.
  [[nodiscard]] std::unique_ptr<ExpectedOrder> expect(std::optional<ExpectedOrder::Tables> tables,
                                                      OrderFrom from = OrderFrom::kPlan);
  // All of it at once, for who has nobody waiting.
  void expect(std::shared_ptr<const PageOrder> order, OrderFrom from = OrderFrom::kPlan);
  // Of the plan's round.
  [[nodiscard]] bool is_in_round() const {
    return in_round_ || (order_ && from_ == OrderFrom::kPlan && !is_round_left_ && order_->is_in_round());
  }
  // The plan tells of another part of the program from now on, which has a round of its own.
  void leave_round() {
    in_round_ = false;
    is_round_left_ = true;
  }
  // Of the plan's order. While the program follows one that it has said, nothing is known of that.
  [[nodiscard]] OrderState order_state() const {
    if (orders_known_.is_given_up(OrderFrom::kPlan)) return OrderState::kGivenUp;
    if (order_ && from_ == OrderFrom::kPlan) return order_->state();
    return orders_known_.has(OrderFrom::kPlan) ? OrderState::kKept : OrderState::kNone;
  }
  // What the program has said is over.
  [[nodiscard]] bool is_said_order_over() const {
    return order_ && from_ == OrderFrom::kProgram && (order_->is_given_up() || order_->is_over());
  }
  [[nodiscard]] const PageOrder* order() const { return order_ ? order_->order() : nullptr; }
  // The order, if its expected reads are not known for as much memory as there is now.
  [[nodiscard]] std::shared_ptr<const PageOrder> order_to_weigh() const {
    return order_ && !order_->is_given_up() && !order_->is_weighed() ? order_->shared_order() : nullptr;
  }
  // Takes the expected reads of that order. `reads` gets those before: the caller frees them without the mutex.
  void weigh(const PageOrder& order, OrderReads& reads) {
    if (order_ && order_->order() == &order) order_->weigh(reads);
  }
  // None, where there is none or the program is not where it is expected to be.
  [[nodiscard]] ExpectedOrder* followed() { return order_ && order_->is_followed() ? order_.get() : nullptr; }
  // Pages are read, around this one.
  void reads(PageNumber page, std::uint32_t pages);
  // A marker was touched, or has left.
  void marker_went(bool used);
  // A page was touched that was never there.
  void touched_fresh(PageNumber page) {
    if (order_) (void)touched_in_order(page);
  }
  // Pages have come into view; fresh ones were never there.
  void came(PageRun run, bool fresh) {
    if (order_) order_->came(run, fresh);
  }

  // A page was touched that was not in view. Tells the policy, too.
  [[nodiscard]] Streams::Advice notice(PageNumber page);
  // A stream was noticed; `from` is the next page it will touch that was not fetched at once.
  void plan(PageNumber from, std::uint32_t pages, bool backward);
  // What was touched last is no stream: it goes on at `page`, if it is one after all.
  void continues_at(PageNumber page) { streams_.continues_at(page); }
  // A loop will come by: what it begins with is on its way before it is touched, and what leaves meanwhile is what it
  // needs last.
  void loop_begins(PageNumber first, PageNumber end, bool backward);
  // The part of a stream's window around `page` that its loop will still touch.
  [[nodiscard]] PageRun before_the_loops_end(PageNumber page, PageRun window, bool backward) const;

  // The oldest request is given up where there are many: it is no longer ahead of anything.
  void request(const Request& wanted);
  // These pages will be needed, after those of which that was said before. They are brought in that order, a piece at a
  // time, while nothing else is asked for; room is made for a few pieces ahead. At most three quarters of memory
  // wait for their turn: what is more is left out.
  void need(PageNumber first, PageNumber end);
  [[nodiscard]] std::uint64_t needed_pages() const { return needed_pages_; }
  [[nodiscard]] std::size_t requests() const { return requests_.size(); }
  // There is a request, and one more reader is of use.
  [[nodiscard]] bool has_work() {
    return reading_ < useful_readers() &&
           (!requests_.empty() || needed_pages_ != 0 || (order_ && order_->next().run.count != 0));
  }
  template <class Predicate>
  void wait(base::Mutex& mutex, base::Clock::duration at_most, Predicate is_so) FARHEAP_REQUIRES(mutex) {
    there_.wait_for(mutex, at_most, is_so);
  }
  // Its pages stay announced to Room. Requires: has_work(). end() when it is carried out, with how many of them came.
  [[nodiscard]] Request begin();
  void end(const Request& request, std::uint32_t pages);
  // How long so many pages took: to read, and to put into view.
  void learn(std::uint32_t pages, base::Clock::duration reading, base::Clock::duration showing);

  // In a forked child: the readers are not there.
  void forget_requests();

 private:
  [[nodiscard]] std::uint64_t stream_window() const;
  void announce_order();
  void announce_needed();
  // For so many pages room is made ahead.
  [[nodiscard]] std::uint64_t needed_window() const;
  [[nodiscard]] Request begin_needed();
  // Requires: order_.
  void note_if_given_up();
  // Whether it was expected about now. Requires: order_.
  bool touched_in_order(PageNumber page);
  [[nodiscard]] PageNumber first_to_request(PageNumber from, PageNumber end) const;
  void foresee_loop(PageNumber first, PageNumber end, bool backward, std::uint32_t gap);
  // Where reading is waiting, one reader waits while another one puts pages into view. Where it is copying, a second
  // one only takes the processor from the first, and from who makes room.
  [[nodiscard]] std::uint32_t useful_readers() const { return reading_ns_ > showing_ns_ ? options_.readers : 1; }

  PageTable& table_;
  Earlier& earlier_;
  Policy& policy_;
  Room& room_;
  Evictors& evictors_;
  base::RunCounters& counters_;
  const ReadAheadOptions options_;
  Streams streams_;
  Loops loops_;
  std::deque<Request> requests_;
  std::deque<std::pair<PageNumber, PageNumber>> needed_;  // first page and end of each range, in their order
  std::uint64_t needed_pages_ = 0;                        // in them
  std::uint64_t announced_for_needed_ = 0;                // pages
  OrderChoice orders_known_;
  std::unique_ptr<ExpectedOrder> order_;
  bool plan_is_trusted_ = false;           // the plan's latest order was, before the one that there is now
  OrderFrom from_ = OrderFrom::kPlan;      // order_ is
  std::uint32_t orders_ = 0;               // there were; the last one's number
  std::uint32_t given_up_ = 0;             // the number of the last one that was
  bool in_round_ = false;                  // with the plan's orders before it
  bool is_round_left_ = false;             // order_'s; another one comes
  std::uint64_t announced_for_order_ = 0;  // pages
  base::Condition there_;
  std::uint32_t reading_ = 0;                     // readers that are at work
  std::int64_t reading_ns_ = 0, showing_ns_ = 0;  // of a page, lately
};

}  // namespace farheap::pager
