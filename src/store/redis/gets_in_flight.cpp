// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/gets_in_flight.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>

#include "os/own_descriptors.hpp"

namespace farheap::store::redis {
namespace {

using base::Clock;

// The number a descriptor had, for another file: whoever waits for it need not be told.
bool put_in_place(int fresh, int& place) {
  if (fresh < 0) return false;
  if (place < 0) return place = os::keep_descriptor(fresh), true;
  const bool is_done = dup3(fresh, place, O_CLOEXEC) >= 0;
  os::release_descriptor(fresh);
  return is_done;
}

bool watch(int poll, int file) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = file}};
  return epoll_ctl(poll, EPOLL_CTL_ADD, file, &event) == 0;
}

}  // namespace

std::unique_ptr<RedisGetsInFlight> RedisGetsInFlight::make(RedisStore& store, unsigned most) {
  std::unique_ptr<RedisGetsInFlight> made(new RedisGetsInFlight(store, most));
  if (!made->set_up()) return nullptr;
  return made;
}

RedisGetsInFlight::~RedisGetsInFlight() {
  os::release_descriptor(poll_);
  os::release_descriptor(timer_);
}

bool RedisGetsInFlight::set_up() {
  mark_.set();
  lane_ = store_.lanes_.make();
  is_timer_set_ = false;
  return put_in_place(epoll_create1(EPOLL_CLOEXEC), poll_) &&
         put_in_place(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), timer_) && watch(poll_, timer_);
}

// What the parent asked is the parent's to take.
void RedisGetsInFlight::renew_in_child() {
  waiting_.clear();
  to_store_.clear();
  if (!set_up()) lane_.reset();
}

void RedisGetsInFlight::set_timer(std::chrono::nanoseconds from_now) {
  const auto ns = std::max<std::int64_t>(from_now.count(), 1);
  const itimerspec when{.it_interval = {}, .it_value = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000}};
  timerfd_settime(timer_, 0, &when, nullptr);
  is_timer_set_ = true;
  timer_end_ = Clock::now() + from_now;
}

// The one server that has all of it.
unsigned RedisGetsInFlight::destination(const Waiting& one) const {
  const auto& nodes = store_.shared_.nodes;
  const unsigned node = nodes.owner(one.commands.front().slot);
  const bool is_one =
      std::ranges::all_of(one.commands, [&](const auto& each) { return nodes.owner(each.slot) == node; });
  return is_one ? node : Nodes::kNobody;
}

bool RedisGetsInFlight::send(Waiting& one) {
  Line& line = lane_->line(one.node);
  const int before = line.connection.socket().descriptor();
  Exchange exchange(store_.shared_, *lane_);
  // A look at beats or at suspects would take the answers that are under way for its own.
  const bool is_idle = std::ranges::none_of(waiting_, [&](const auto& each) { return each.node == one.node; });
  if (before < 0 || (is_idle && line.looked_at_changes != store_.shared_.nodes.changes())) {
    if (exchange.ready(one.node) == nullptr) return false;
    if (line.connection.socket().descriptor() != before || before < 0) {
      if (!watch(poll_, line.connection.socket().descriptor())) return false;
    }
  } else if (line.looked_at_changes != store_.shared_.nodes.changes()) {
    return false;
  }
  // As long as the timer waits for it.
  line.connection.socket().set_deadline(Deadline::in(std::chrono::milliseconds(store_.shared_.place.timeout_ms)));
  lane_->pieces.clear();
  for (const auto& command : one.commands) lane_->requests.append(command.first, command.last, lane_->pieces);
  return line.connection.socket().send(lane_->pieces);
}

bool RedisGetsInFlight::begin(Get& entry) {
  if (mark_.is_gone()) renew_in_child();
  if (!lane_ || waiting_.size() + to_store_.size() >= most_ || entry.known != 0 || store_.shared_.is_lost())
    return false;
  const Outcome outcome = entry.outcome;
  entry.outcome = Outcome::kPending;
  Waiting one(entry, store_.limits_.block_bytes);
  lane_->requests.clear();
  one.batch.write(store_.shared_.keys, lane_->requests, one.commands);
  one.node = destination(one);
  if (one.node == Nodes::kNobody || !send(one)) {
    if (one.node != Nodes::kNobody && !lane_->line(one.node).connection.socket().is_open()) give_up(one.node);
    if (!to_store_.empty()) set_timer({});
    entry.outcome = outcome;
    return false;
  }
  waiting_.push_back(std::move(one));
  if (!is_timer_set_) set_timer(std::chrono::milliseconds(store_.shared_.place.timeout_ms));
  return true;
}

// Its connection is of no use: whoever waits there asks the store.
void RedisGetsInFlight::give_up(unsigned node) {
  lane_->line(node).connection.socket().close();
  std::erase_if(waiting_, [&](Waiting& one) {
    if (one.node != node) return false;
    to_store_.push_back(one.entry);
    return true;
  });
}

void RedisGetsInFlight::look_at_timer() {
  std::uint64_t times = 0;
  if (!is_timer_set_ || Clock::now() < timer_end_ || read(timer_, &times, sizeof times) != sizeof times) return;
  is_timer_set_ = false;
  const auto limit = std::chrono::milliseconds(store_.shared_.place.timeout_ms);
  while (!waiting_.empty() && Clock::now() - waiting_.front().since >= limit) give_up(waiting_.front().node);
  if (!waiting_.empty()) set_timer(limit - (Clock::now() - waiting_.front().since));
}

Get* RedisGetsInFlight::ask_store(Get& entry) {
  entry.outcome = Outcome::kPending;
  (void)store_.get({&entry, 1});  // its outcome says it
  return &entry;
}

bool RedisGetsInFlight::take_answer(Line& line, Waiting& one) {
  Replies& replies = line.connection.replies();
  Head head;
  if (!replies.head(head)) return false;
  if (head.kind == Kind::kError) {
    one.is_refused = true;
  } else if (!one.batch.take(replies, head, one.commands[one.answered].tag)) {
    return false;
  }
  ++one.answered;
  return true;
}

Get* RedisGetsInFlight::take() {
  if (mark_.is_gone()) renew_in_child();
  if (!lane_) return nullptr;
  look_at_timer();
  for (auto one = waiting_.begin(); one != waiting_.end() && to_store_.empty(); ++one) {
    // The first of each server's.
    if (std::any_of(waiting_.begin(), one, [&](const auto& each) { return each.node == one->node; })) continue;
    Line& line = lane_->line(one->node);
    bool is_there = true;
    while (is_there && one->answered < one->commands.size()) {
      is_there = line.connection.replies().has_some() && take_answer(line, *one);
    }
    if (!line.connection.socket().is_open()) {
      give_up(one->node);
      break;
    }
    if (!is_there) continue;
    Get* const entry = one->entry;
    const bool is_refused = one->is_refused;
    waiting_.erase(one);
    return is_refused ? ask_store(*entry) : entry;
  }
  if (to_store_.empty()) return nullptr;
  Get* const entry = to_store_.back();
  to_store_.pop_back();
  return ask_store(*entry);
}

}  // namespace farheap::store::redis
