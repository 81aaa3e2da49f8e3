// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/expected_order.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace farheap::pager {

namespace {
constexpr std::uint64_t kLead = 8;      // a part of memory: what is used so soon is brought in
constexpr std::uint64_t kMarkers = 16;  // so many are within that, about; each costs a fault
constexpr std::uint64_t kLeastLead = std::uint64_t{4} * PageOrder::kBlockPages, kMostLead = 1 << 24;
constexpr std::uint64_t kLate = 8;          // a part of the lead: visits may go on for so long unseen
constexpr std::uint64_t kOneJump = 2;       // so part of what is brought in one touch tells to have been passed
constexpr unsigned kAgree = 3;              // touches tell that the program is elsewhere in the order
constexpr unsigned kTrust = 12;             // touches come as expected, one behind the other, before it is acted on
constexpr unsigned kGood = 1, kBad = 3;     // more than a quarter of touches that are not as expected
constexpr unsigned kJump = 128;             // ... for one jump behind another: against the order each block is one
constexpr unsigned kMostDoubt = 1024;       // ... for a while: the order is given up
constexpr std::uint64_t kFar = 4;           // leads, that nobody passes unseen
constexpr std::uint64_t kMostPassed = 320;  // visits, unseen: each is looked at
constexpr double kMostReads = 2;            // times what could be expected
constexpr std::uint64_t kOtherMemory = 8;   // a part of memory, by which it is another budget
constexpr std::uint64_t kMostRead = 2;      // pages ahead for each that was passed
constexpr unsigned kMostUnused = 128;       // the same of markers
constexpr unsigned kStrange = 512;          // ... that it has left it
constexpr unsigned kOfLater = 16;           // one of what is expected much later counts so often
constexpr std::size_t kMostBusy = 64;       // blocks that are passed by for one that may leave
constexpr double kGolden = 0.61803398875;   // multiples of it, less their whole parts, are spread evenly
}  // namespace

ExpectedOrder::Tables::Tables(std::shared_ptr<const PageOrder> wanted, bool in_round, std::uint64_t memory_pages)
    : order(std::move(wanted)), reads(*order, memory_pages) {
  if (in_round && order->has_round()) now = order->visit(order->round()).first;
  const auto is_over = [&](const PageOrder::Visit& visit) { return visit.last + order->gap() < now; };
  const auto visits = order->visits();
  for (std::size_t i = visits.size(); i-- > 0;) {
    Place& place = places[visits[i].block];
    if (!is_over(visits[i])) {
      place.visit = i;
      place.ended = PageOrder::kNever;
    } else if (place.ended == PageOrder::kNever) {
      place.ended = visits[i].last;
    }
  }
  while (ended < visits.size() && is_over(visits[order->by_end(ended)])) ++ended;
  begun = static_cast<PageOrder::Number>(std::ranges::upper_bound(visits, now, {}, &PageOrder::Visit::first) -
                                         visits.begin());
  by_need.reserve(places.size());
  for (const auto& [block, place] : places) by_need.emplace_back(needed(place), block);
  std::ranges::sort(by_need);
}

ExpectedOrder::ExpectedOrder(Tables tables, PageTable& table, Policy& policy, const Room& room)
    : order_(std::move(tables.order)),
      expected_reads_(std::move(tables.reads)),
      table_(table),
      policy_(policy),
      room_(room),
      places_(std::move(tables.places)),
      now_(tables.now),
      gap_(order_->gap()),
      begun_(tables.begun),
      ended_(tables.ended) {
  for (const auto& [moment, block] : tables.by_need) {
    if (!is_in_view(block)) continue;
    places_[block].ranked = true;
    ranked_.emplace_hint(ranked_.end(), moment, block);
  }
  expected_until_ = expected_reads_.until(*order_, begun_);
}

// Fresh pages have pushed out others while memory filled. No more than memory holds is still to leave for them.
void ExpectedOrder::trust() {
  is_trusted_ = true;
  to_spread_ = std::min(to_spread_, room_.limit());
}

void ExpectedOrder::skip_to_round() {
  if (order_->has_round()) go_to(order_->visit(order_->round()).first);
}

// Memory is full of what was used before. Were the blocks to leave that are needed last, those of one stretch would
// stay, round after round: nobody would see the program pass them, and the device would rest meanwhile. So what leaves
// for those that are missing is spread over the round, as while memory fills.
void ExpectedOrder::begin_here() {
  followed_ = was_followed_ = is_trusted_ = true;
  if (!order_->has_round()) return;
  for (const auto& [block, place] : places_) {
    const PageNumber first = PageNumber{block} * PageOrder::kBlockPages;
    if (place.ranked || first + PageOrder::kBlockPages > table_.capacity_pages()) continue;
    to_spread_ += table_.next_run(first, first + PageOrder::kBlockPages, PageState::kStored).count;
  }
}

ExpectedOrder::Moment ExpectedOrder::lead() const {
  return static_cast<Moment>(std::clamp<std::uint64_t>(room_.limit() / kLead, kLeastLead, kMostLead));
}

bool ExpectedOrder::touched(PageNumber page) {
  passed_unseen_ = false;
  if (is_given_up_) return false;
  const auto found = places_.find(PageOrder::block_of(page));
  const Moment expected = found == places_.end() ? PageOrder::kNever : needed(found->second);
  if (const Moment late = followed_ && found != places_.end() ? lateness(found->second) : 0; late != 0) {
    strange_ = agree_ = 0;
    // Others will be as late.
    gap_ = std::max(gap_, std::min(late + late / 4, lead() / kLate));
    judge(late <= lead() / kLate || is_in_view(found->first));
    return true;
  }
  // One touch may be of what is used at another time than was said; several that agree are where the program is.
  const bool is_near = expected <= now_ || expected - now_ <= lead() / kOneJump;
  passed_unseen_ = !is_near && followed_ && is_there_until(expected);
  if (!followed_ || expected == PageOrder::kNever || (!is_near && (is_trusted_ || !passed_unseen_))) {
    if (followed_ && !passed_unseen_ && expected != PageOrder::kNever && expected - now_ > 2 * lead()) judge(false);
    note_strange(expected, found != places_.end());
    return followed_ && strange_ == 0;
  }
  strange_ = agree_ = 0;
  const bool begins = expected + lead() >= now_;
  judge(begins || is_in_view(found->first));
  if (expected > now_) {
    go_to(expected);
    if (++in_a_row_ >= kTrust) trust();
  }
  note_expected_reads();
  return true;
}

void ExpectedOrder::reads(PageNumber page, std::uint32_t pages) {
  if (!is_followed() || !is_weighed() || !expected_reads_.is_known()) return;
  const auto found = places_.find(PageOrder::block_of(page));
  if (found == places_.end()) return;
  // OrderReads counts no block's first visit. Its pages may have been in the store before the order was told.
  if (found->second.ended == PageOrder::kNever && !is_in_round()) return;
  compared_.happened += pages;
  untold_.happened += pages;
  compare_reads();
}

void ExpectedOrder::note_expected_reads() {
  const std::uint64_t until = expected_reads_.until(*order_, begun_);
  if (is_followed() && is_weighed()) {
    compared_.expected += until - expected_until_;
    untold_.expected += until - expected_until_;
  }
  expected_until_ = until;
}

bool ExpectedOrder::is_weighed() const {
  const std::uint64_t memory = expected_reads_.memory_pages(), now = room_.limit();
  return now > memory - memory / kOtherMemory && now < memory + memory / kOtherMemory;
}

void ExpectedOrder::weigh(OrderReads& reads) {
  std::swap(expected_reads_, reads);
  expected_until_ = expected_reads_.until(*order_, begun_);
  compared_ = {};
}

// Each time that as much was read as memory holds.
void ExpectedOrder::compare_reads() {
  if (compared_.happened < room_.limit()) return;
  if (is_weighed() && compared_.happened > kMostReads * static_cast<double>(compared_.expected)) {
    if (++dear_ >= kDear) give_up();
  } else if (dear_ != 0) {
    --dear_;
  }
  compared_ = {};
}

void ExpectedOrder::note_marker(bool used) {
  if (!is_followed()) return;
  unused_ = used ? unused_ - std::min(unused_, kGood) : unused_ + kBad;
  if (unused_ >= kMostUnused) give_up();
}

void ExpectedOrder::judge(bool good) { good ? void(doubt_ -= std::min(doubt_, kGood)) : doubt(kBad); }

// An order that is only looked at costs little, and may come to be right.
void ExpectedOrder::doubt(unsigned by) {
  if (!is_trusted_) return;
  doubt_ += by;
  if (doubt_ >= kMostDoubt) give_up();
}

OrderState ExpectedOrder::state() const {
  if (is_given_up_) return OrderState::kGivenUp;
  if (followed_ || strange_ < kStrange) return OrderState::kKept;
  return was_followed_ ? OrderState::kLeft : OrderState::kNeverKept;
}

void ExpectedOrder::give_up() {
  is_given_up_ = true;
  followed_ = false;
}

// Arrays that are used side by side go at speeds of their own. Taken for the next visit, a late touch would be a jump
// by a whole round, and all that lies between would leave.
ExpectedOrder::Moment ExpectedOrder::lateness(const Place& place) const {
  if (place.ended == PageOrder::kNever || place.ended >= now_) return 0;
  const Moment late = now_ - place.ended, next = needed(place);
  return late <= lead() && next > now_ && next - now_ > lead() ? late : 0;
}

bool ExpectedOrder::is_in_vain(Moment needed) const {
  return !ranked_.empty() && std::prev(ranked_.end())->first <= needed && room_.lacks_announced();
}

void ExpectedOrder::note_strange(Moment expected, bool is_known) {
  strange_ += is_known ? kOfLater : 1;
  if (is_known && !passed_unseen_) in_a_row_ = 0;
  if (strange_ >= kStrange) followed_ = false;
  if (expected == PageOrder::kNever) return;
  const bool agrees = expected >= elsewhere_ && expected - elsewhere_ <= lead();
  agree_ = agrees ? agree_ + 1 : 1;
  elsewhere_ = expected;
  if (agree_ < kAgree) return;
  agree_ = strange_ = 0;
  if (!followed_) {
    read_ahead_ = 0;
    followed_since_ = expected;
  }
  const bool was_followed = std::exchange(followed_, true);
  was_followed_ = true;
  const bool is_far = expected - std::min(expected, now_) > kFar * lead();
  if (is_far && was_followed && !passed_unseen_ && now_ - std::min(now_, jumped_to_) <= lead()) doubt(kJump);
  if (is_given_up_) return;
  if (is_far) jumped_to_ = expected;
  go_to(expected);
  // A program passes a little unseen. It skips what is more: that was not to be read.
  is_far ? void(expected_until_ = expected_reads_.until(*order_, begun_)) : note_expected_reads();
}

void ExpectedOrder::go_to(Moment moment) {
  now_ = std::max(now_, moment);
  while (order_->has(begun_) && order_->visit(begun_).first <= now_) ++begun_;
  for (; order_->has(ended_); ++ended_) {
    const PageOrder::Number number = order_->by_end(ended_);
    const PageOrder::Visit visit = order_->visit(number);
    if (visit.last + gap_ >= now_) break;
    Place& place = places_[visit.block];
    if (place.visit != number) continue;
    if (place.ranked) ranked_.erase({visit.first, visit.block});
    place.visit = visit.next;
    place.ended = visit.last;
    // One that began later may have ended before it.
    while (place.visit != PageOrder::kNone && order_->visit(place.visit).last + gap_ < now_) {
      place.ended = order_->visit(place.visit).last;
      place.visit = order_->visit(place.visit).next;
    }
    if (place.ranked) ranked_.emplace(needed(place), visit.block);
  }
}

void ExpectedOrder::came(PageRun run, bool fresh) {
  if (is_followed() && knows(run.first)) {
    const PageRun there = table_.next_run(run.first, run.first + run.count, PageState::kPresent);
    if (there.count != 0 && policy_.may_take(table_.tag(there.first))) policy_.leave_to_order(table_.tag(there.first));
  }
  for (std::uint32_t block = PageOrder::block_of(run.first); block <= PageOrder::block_of(run.first + run.count - 1);
       ++block) {
    const auto found = places_.find(block);
    if (found == places_.end() || found->second.ranked) continue;
    found->second.ranked = true;
    ranked_.emplace(needed(found->second), block);
  }
  if (fresh && room_.lacks_announced()) to_spread_ += run.count;
}

ExpectedOrder::Ranked::iterator ExpectedOrder::next_to_leave() {
  const auto last = std::prev(ranked_.end());
  if (to_spread_ == 0 || last->first == PageOrder::kNever) return last;
  const Moment from = now_ + std::min(2 * lead(), PageOrder::kNever - now_);
  if (last->first <= from) return last;
  // In large pieces, which are written, and read again, faster.
  if ((spread_ + 1) % (kExtentPages / PageOrder::kBlockPages) != 0) {
    const auto beside = places_.find(++spread_);
    if (beside != places_.end() && beside->second.ranked && needed(beside->second) > from) {
      return ranked_.find({needed(beside->second), spread_});
    }
  }
  turn_ += kGolden;
  turn_ -= std::floor(turn_);
  const auto moment = static_cast<Moment>(from + turn_ * (last->first - from));
  const auto chosen = ranked_.lower_bound({moment, 0});
  spread_ = chosen->second;
  return chosen;
}

bool ExpectedOrder::is_in_view(std::uint32_t block) const {
  const PageNumber first = PageNumber{block} * PageOrder::kBlockPages, end = first + PageOrder::kBlockPages;
  if (end > table_.capacity_pages()) return false;  // it is another heap's
  return table_.next_run(first, end, PageState::kPresent).count != 0;
}

bool ExpectedOrder::is_there_until(Moment moment) const {
  if (moment == PageOrder::kNever) return false;
  for (PageOrder::Number i = begun_; order_->has(i); ++i) {
    const PageOrder::Visit visit = order_->visit(i);
    if (visit.first >= moment) return true;
    if (i - begun_ == kMostPassed || !is_in_view(visit.block)) return false;
  }
  return true;
}

ExpectedOrder::InView ExpectedOrder::blocks_in_view(std::uint32_t block) {
  InView found;
  const PageNumber first = PageNumber{block} * PageOrder::kBlockPages, end = first + PageOrder::kBlockPages;
  for (PageRun run = table_.next_run(first, end, PageState::kPresent); run.count != 0;
       run = table_.next_run(run.first + run.count, end, PageState::kPresent)) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const BlockId id = table_.tag(run.first + i);
      if (table_.block(id).busy) {
        found.is_busy = true;
      } else if (policy_.may_take(id)) {
        found.id = id;
        return found;
      }
    }
  }
  return found;
}

BlockId ExpectedOrder::take_victim() {
  BlockId found = 0;
  std::vector<Ranked::node_type> busy;  // they stay on the list, for the next time
  while (is_followed() && !ranked_.empty() && busy.size() < kMostBusy) {
    const auto chosen = next_to_leave();
    const auto [moment, block] = *chosen;
    if (moment <= now_) break;  // all is in use
    const InView in_view = blocks_in_view(block);
    if (in_view.id != 0) {
      found = in_view.id;
      // The rest of it leaves with it (a marker was a block of its own).
      const PageNumber first = PageNumber{block} * PageOrder::kBlockPages;
      table_.for_each_run(first, first + PageOrder::kBlockPages, PageState::kPresent, 0,
                          [&](PageRun run) { to_spread_ -= std::min<std::uint64_t>(to_spread_, run.count); });
      policy_.remove(found);
      if (moment != PageOrder::kNever) ahead_ = std::min(ahead_, places_[block].visit);
      break;
    }
    places_[block].ranked = false;
    auto taken_off = ranked_.extract(chosen);
    if (in_view.is_busy) busy.push_back(std::move(taken_off));
  }
  for (auto& one : busy) {
    places_[one.value().second].ranked = true;
    ranked_.insert(std::move(one));
  }
  return found;
}

bool ExpectedOrder::holds(const Block& block) const {
  if (!block.marker || !is_followed()) return false;
  const auto found = places_.find(PageOrder::block_of(block.first));
  if (found == places_.end()) return false;
  const Moment moment = needed(found->second);
  return moment <= now_ || moment - now_ <= 2 * lead();
}

ExpectedOrder::Next ExpectedOrder::next() {
  if (!is_followed()) return {};
  // One that has begun is brought by who touches it.
  while (order_->has(ahead_) && order_->visit(ahead_).first < now_) ++ahead_;
  for (; order_->has(ahead_); ++ahead_) {
    const PageOrder::Visit visit = order_->visit(ahead_);
    if (visit.first - now_ > lead()) return {};
    const PageNumber first = PageNumber{visit.block} * PageOrder::kBlockPages;
    if (first + PageOrder::kBlockPages > table_.capacity_pages()) continue;  // it is another heap's
    const PageRun run = table_.next_run(first, first + PageOrder::kBlockPages, PageState::kStored);
    if (run.count == 0) continue;
    if (is_in_vain(visit.first)) return {};
    if (visit.first <= marked_ || visit.first - marked_ < lead() / kMarkers) return {run, {}};
    const PageNumber marker = first + visit.first_page;
    return {run, {marker >= run.first && marker < run.first + run.count ? marker : run.first, 1}};
  }
  return {};
}

ExpectedOrder::Next ExpectedOrder::take_next() {
  Next taken = next();
  if (taken.marker.count != 0) {
    taken.marked_before = marked_;
    taken.marked = marked_ = order_->visit(ahead_).first;
  }
  return taken;
}

void ExpectedOrder::brought(const Next& taken, std::uint32_t pages) {
  if (pages == 0 && taken.marker.count != 0 && marked_ == taken.marked) marked_ = taken.marked_before;
  read_ahead_ += pages;
  if (is_followed() && read_ahead_ > kMostRead * (now_ - std::min(now_, followed_since_)) + room_.limit()) give_up();
}

}  // namespace farheap::pager
