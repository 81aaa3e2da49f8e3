// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows a program along the order in which it is expected to use its pages (page_order.hpp), and says what to bring
// in next and what to let go of.
//
// Where the program is. It is seen only when it touches a page that is out of view: then it is in the visit of that
// block that comes next, if that is near. Of what is brought in ahead a page is left out of view as a marker now and
// then, the one that is used first. Whoever touches pages that are expected much later, or not at all, may have left
// the order. If some such touches follow each other in it, the program goes on there; after many that do not, nothing
// is said until some do again.
//
// The blocks that leave are those used last (Belady 1966). What comes in is what is used next and not there, but only a
// little ahead: each page brought in early makes another one leave early, which then has to be read once more. By that
// rule what is missing lies together, and the device would rest while the program passes what is there. So while memory
// fills for the first time, what leaves is spread over the order evenly. From then on what comes in at one place and
// what leaves behind the program keep it so.
//
// Never worse than without: until a program has kept to an order for a while it is only looked at. Later, where touches
// come at other times than was said, or to blocks that the order has let go of in the midst of their use, or where more
// is read ahead than the program can have passed, or where much more is read than the order itself lets expect
// (order_reads.hpp), it is given up, for good.
//
// All of it is advice: whatever the order says, the contents stay right.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pager/order_reads.hpp"
#include "pager/order_source.hpp"
#include "pager/page_order.hpp"
#include "pager/page_table.hpp"
#include "pager/policy.hpp"
#include "pager/room.hpp"

namespace farheap::pager {

class ExpectedOrder {
 public:
  using Moment = PageOrder::Moment;

  struct Place {
    PageOrder::Number visit = PageOrder::kNone;  // the one that is going on or comes next
    Moment ended = PageOrder::kNever;            // when the one before it did, as the order says
    bool ranked = false;
  };
  // What is known of an order before the pager is asked. With many visits it takes a while, so it is made, and given
  // back, without the pager's mutex. Thread-safety: plain data.
  struct Tables {
    // Requires: an order. `in_round`: what comes before its round is over, if there is one. `memory_pages`: there are
    // so many.
    Tables(std::shared_ptr<const PageOrder> order, bool in_round, std::uint64_t memory_pages);
    [[nodiscard]] Moment needed(const Place& place) const {
      return place.visit == PageOrder::kNone ? PageOrder::kNever : order->visit(place.visit).first;
    }
    std::shared_ptr<const PageOrder> order;
    std::unordered_map<std::uint32_t, Place> places;        // by block of the order
    std::vector<std::pair<Moment, std::uint32_t>> by_need;  // when a block is needed, and which
    Moment now = 0;
    PageOrder::Number begun = 0, ended = 0;
    OrderReads reads;
  };

  // All outlive it. What is in view already is taken into account.
  ExpectedOrder(Tables tables, PageTable& table, Policy& policy, const Room& room);

  // A page was touched that was not in view. Whether its block was expected to be in use about now.
  bool touched(PageNumber page);
  // The blocks of all visits before the latest touch were in view: nobody could see the program pass them.
  [[nodiscard]] bool passed_unseen() const { return passed_unseen_; }
  // The program is where it is expected to be, and the order is trusted: what is said below holds.
  [[nodiscard]] bool is_followed() const { return followed_ && is_trusted_; }
  // So many touches of its pages have come as expected, one behind the other, that it is acted on; or somebody says so.
  [[nodiscard]] bool is_trusted() const { return is_trusted_; }
  void trust();
  [[nodiscard]] Moment now() const { return now_; }
  // It has come to the order's round.
  [[nodiscard]] bool is_in_round() const { return order_->has_round() && now_ >= order_->visit(order_->round()).first; }
  // What comes before the round is over, if there is one.
  void skip_to_round();
  // The program is about to begin with it.
  void begin_here();
  // The program has been through it, and uses other pages now.
  [[nodiscard]] bool is_over() const {
    return !followed_ && !order_->has_round() && order_->visits().back().first <= now_ + lead();
  }

  [[nodiscard]] bool is_given_up() const { return is_given_up_; }
  [[nodiscard]] OrderState state() const;
  [[nodiscard]] const PageOrder* order() const { return order_.get(); }
  [[nodiscard]] std::shared_ptr<const PageOrder> shared_order() const { return order_; }
  // Whether the page is in the order.
  [[nodiscard]] bool knows(PageNumber page) const { return places_.contains(PageOrder::block_of(page)); }
  // Pages in view of the blocks that the order has, about.
  [[nodiscard]] std::uint64_t pages_in_view() const { return ranked_.size() * PageOrder::kBlockPages; }

  // Its expected reads are known for about as much memory as there is.
  [[nodiscard]] bool is_weighed() const;
  // Takes these as its expected reads, and gives back those before.
  void weigh(OrderReads& reads);
  // Pages are read, around this one.
  void reads(PageNumber page, std::uint32_t pages);
  struct Reads {
    std::uint64_t happened = 0, expected = 0;  // pages
  };
  // Since this was asked before, while the program was followed.
  [[nodiscard]] Reads take_reads() { return std::exchange(untold_, {}); }
  [[nodiscard]] bool has_read_too_much() const { return dear_ >= kDear; }
  // Pages have come into view. Fresh ones make more memory needed, and something leave.
  void came(PageRun run, bool fresh);
  // The next to leave, taken off its list; 0: it has nothing to say. All of its order's block should leave with it.
  [[nodiscard]] BlockId take_victim();
  // A page that is out of view as a marker, and still of use as such.
  [[nodiscard]] bool holds(const Block& block) const;
  // A marker was touched, or has left: what was read with it was used, or was not.
  void note_marker(bool used);
  // At most so many are.
  [[nodiscard]] std::uint64_t most_markers() const { return 2 * lead() / PageOrder::kBlockPages + 1; }

  struct Next {
    PageRun run;                           // in the store, and in one block; empty: nothing is to come
    PageRun marker = {};                   // one page of it, or none
    Moment marked = 0, marked_before = 0;  // of take_next() with a marker: the latest visit that has one now, and had
  };
  // The run to bring in next.
  [[nodiscard]] Next next();
  // The same, for who does it. Until the pages are on their way, it is what is next.
  [[nodiscard]] Next take_next();
  // So many pages of what was taken have come. None, where there was no room or the store did not answer: that says
  // nothing of the order.
  void brought(const Next& taken, std::uint32_t pages);

 private:
  // The blocks that have pages in view; the last is needed last.
  using Ranked = std::set<std::pair<Moment, std::uint32_t>>;
  struct InView {
    BlockId id = 0;        // the first that may leave now
    bool is_busy = false;  // there are others, which may soon
  };
  [[nodiscard]] Moment lead() const;
  [[nodiscard]] Moment needed(const Place& place) const {
    return place.visit == PageOrder::kNone ? PageOrder::kNever : order_->visit(place.visit).first;
  }
  void go_to(Moment moment);
  // How long after its visit it is touched, if that is a little; otherwise 0.
  [[nodiscard]] Moment lateness(const Place& place) const;
  // `is_known`: the page is in the order. Others may be used at any time beside it.
  void note_strange(Moment expected, bool is_known);
  void judge(bool good);
  void doubt(unsigned by);
  void give_up();
  // The pages would push out others that are needed before them.
  [[nodiscard]] bool is_in_vain(Moment needed) const;
  [[nodiscard]] Ranked::iterator next_to_leave();
  [[nodiscard]] bool is_in_view(std::uint32_t block) const;  // a page of it
  // The blocks of all visits between now and then are in view: a program passes them unseen.
  [[nodiscard]] bool is_there_until(Moment moment) const;
  [[nodiscard]] InView blocks_in_view(std::uint32_t block);

  static constexpr unsigned kDear = 3;  // comparisons: the order is given up
  void note_expected_reads();
  void compare_reads();

  const std::shared_ptr<const PageOrder> order_;
  OrderReads expected_reads_;
  PageTable& table_;
  Policy& policy_;
  const Room& room_;
  std::unordered_map<std::uint32_t, Place> places_;  // by block of the order
  Ranked ranked_;
  Moment now_ = 0;
  Moment gap_ = 0;               // after a visit's last moment it may still go on for so long
  PageOrder::Number begun_ = 0;  // so many visits have begun
  PageOrder::Number ended_ = 0;  // so many visits of by_end() are over
  PageOrder::Number ahead_ = 0;  // the visits before it were asked for
  Moment marked_ = 0;            // the latest visit that has a marker
  bool followed_ = false, was_followed_ = false;
  bool is_trusted_ = false;
  unsigned in_a_row_ = 0;  // touches that came as expected
  bool passed_unseen_ = false;
  Moment jumped_to_ = 0;
  Moment elsewhere_ = PageOrder::kNever;  // where the latest strange touch would be
  std::uint64_t read_ahead_ = 0;          // pages that came, since it follows
  Moment followed_since_ = 0;
  std::uint64_t expected_until_ = 0;  // OrderReads::until(), for begun_
  Reads compared_, untold_;           // since they were compared, or told
  unsigned dear_ = 0;                 // comparisons in which too much was read, more than others
  unsigned unused_ = 0;               // grows with each marker that nobody touched
  unsigned doubt_ = 0;                // grows with each touch that was not as expected
  bool is_given_up_ = false;
  unsigned agree_ = 0;                        // touches that agree with that, one after the other
  unsigned strange_ = 0;                      // strange ones, weighed
  std::uint64_t to_spread_ = 0;               // pages that are to leave because fresh ones came
  double turn_ = 0;                           // 0 to 1: where the next of them leaves
  std::uint32_t spread_ = ~std::uint32_t{0};  // the latest block that left so; with those behind it, up to 2 MiB
};

}  // namespace farheap::pager
