// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/beside/gets.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "os/own_descriptors.hpp"
#include "store/beside/slots.hpp"

namespace farheap::store::beside {

BesideGets::BesideGets(BesideStore& store, unsigned most)
    : store_(store), owner_(getpid()), number_(store.take_notified_number()), most_(most) {
  flying_.reserve(most);
}

std::unique_ptr<BesideGets> BesideGets::make(BesideStore& store, unsigned most) {
  std::unique_ptr<BesideGets> gets(new BesideGets(store, most));
  if (gets->number_ == kMostNotified) return nullptr;
  const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (event >= 0) gets->event_ = os::keep_descriptor(event);
  if (epoll >= 0) gets->epoll_ = os::keep_descriptor(epoll);
  epoll_event readable{.events = EPOLLIN, .data = {.u64 = 0}};
  if (event < 0 || epoll < 0 || epoll_ctl(gets->epoll_, EPOLL_CTL_ADD, gets->event_, &readable) != 0) return nullptr;
  return gets;
}

BesideGets::~BesideGets() {
  // What is in flight writes into slots that are given to others next.
  for (const Flying& one : flying_) {
    if (is_mine() && one.connection->wait(one.slot)) one.connection->give_back(one.slot);
  }
  os::release_descriptor(epoll_);
  os::release_descriptor(event_);
}

// A forked child has a copy of this, and neither the slots nor the epoll: that one is its parent's.
bool BesideGets::is_mine() const { return owner_ == getpid(); }

bool BesideGets::watch(Connection& connection) {
  if (watched_ == &connection) return true;
  if (watched_ != nullptr) (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, watched_->socket(), nullptr);
  watched_ = nullptr;
  Writer message(Message::kNotify);
  message.number(number_);
  if (!connection.ask(message.bytes(), event_)) return false;
  epoll_event hung_up{.events = EPOLLRDHUP, .data = {.u64 = 1}};
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.socket(), &hung_up) != 0) return false;
  watched_ = &connection;
  return true;
}

bool BesideGets::begin(Get& entry) {
  const auto limits = store_.limits();
  if (!is_mine() || flying_.size() >= most_ || entry.into.size() > limits.largest_value_bytes) return false;
  // Those of an ended process are taken first: the descriptor watches one process at a time.
  if (watched_ != nullptr && watched_->has_ended() && !flying_.empty()) return false;
  const auto connection = store_.connection();
  if (!connection || !watch(**connection)) return false;
  const auto index = (*connection)->take_spare_slot();
  if (!index) return false;
  write_batch(**connection, *index, Operation::kGet, std::span(&entry, 1));
  (*connection)->slot(*index).notify = number_ + 1;
  entry.outcome = Outcome::kPending;
  flying_.push_back({*connection, *index, &entry});
  (*connection)->submit(*index);
  return true;
}

Get* BesideGets::take() {
  if (flying_.empty() || !is_mine()) return nullptr;
  if (Get* const answered = take_answered()) return answered;
  // Emptied before the last look, so that no answer comes between the two unheard.
  std::uint64_t rung = 0;
  if (read(event_, &rung, sizeof rung) == sizeof rung) {
    if (Get* const answered = take_answered()) return answered;
  }
  return take_abandoned();
}

Get* BesideGets::take_answered() {
  for (std::size_t i = 0; i < flying_.size(); ++i) {
    const Flying one = flying_[i];
    if (!one.connection->is_answered(one.slot)) continue;
    (void)read_batch(*one.connection, one.slot, std::span(one.entry, 1));
    one.connection->give_back(one.slot);
    return remove(i);
  }
  return nullptr;
}

Get* BesideGets::take_abandoned() {
  if (!flying_.back().connection->check_ended()) return nullptr;
  (void)store_.get({flying_.back().entry, 1});
  return remove(flying_.size() - 1);
}

Get* BesideGets::remove(std::size_t index) {
  Get* const entry = flying_[index].entry;
  flying_[index] = flying_.back();
  flying_.pop_back();
  return entry;
}

}  // namespace farheap::store::beside
