// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/replies.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace farheap::store::redis {

bool Replies::give_up(const char* why) {
  is_nonsense_ = true;
  source_.give_up(why);
  return false;
}

bool Replies::nonsense() { return give_up("what it answered is no answer of Redis"); }

bool Replies::take(std::size_t wanted, std::size_t& left) {
  if (wanted > left) return give_up("what it answered is longer than what it was asked for");
  left -= wanted;
  return true;
}

// More behind what is there. Requires: room for it.
bool Replies::fill() {
  if (at_ == end_) at_ = end_ = 0;
  if (end_ == kBuffer) {
    std::memmove(buffer_.get(), buffer_.get() + at_, end_ - at_);
    end_ -= at_, at_ = 0;
  }
  iovec piece{buffer_.get() + end_, kBuffer - end_};
  const std::size_t got = source_.receive({&piece, 1});
  end_ += got;
  return got != 0;
}

bool Replies::has_some() {
  if (at_ < end_) return true;
  at_ = end_ = 0;
  iovec piece{buffer_.get(), kBuffer};
  end_ = source_.receive_at_once({&piece, 1});
  return end_ != 0;
}

// Without its end; until the next call.
bool Replies::line(std::string_view& text) {
  for (std::size_t looked = 0;;) {
    const char* const start = buffer_.get() + at_;
    const std::size_t there = end_ - at_;
    const void* const found = std::memchr(start + looked, '\n', there - looked);
    if (found != nullptr) {
      const auto length = static_cast<std::size_t>(static_cast<const char*>(found) - start);
      if (length == 0 || start[length - 1] != '\r') return nonsense();
      text = {start, length - 1};
      at_ += length + 1;
      return true;
    }
    if (there > kLongestLine) return nonsense();
    looked = there;
    if (!fill()) return false;
  }
}

bool Replies::line_end() {
  while (end_ - at_ < 2) {
    if (!fill()) return false;
  }
  if (buffer_[at_] != '\r' || buffer_[at_ + 1] != '\n') return nonsense();
  at_ += 2;
  return true;
}

bool Replies::head(Head& head) {
  std::string_view text;
  if (!line(text)) return false;
  if (text.empty()) return nonsense();
  head.kind = static_cast<Kind>(text.front());
  head.number = 0;
  head.text = text.substr(1);
  if (head.kind == Kind::kStatus || head.kind == Kind::kError) return true;
  if (head.kind != Kind::kInteger && head.kind != Kind::kBulk && head.kind != Kind::kArray) return nonsense();
  const auto [end, error] = std::from_chars(head.text.data(), head.text.data() + head.text.size(), head.number);
  if (error != std::errc() || end != head.text.data() + head.text.size()) return nonsense();
  head.text = {};
  if (head.kind == Kind::kInteger) return true;
  if (head.number == -1) head.kind = Kind::kNil;
  const auto most = head.kind == Kind::kArray ? kMostElements : kLongestBulk;
  return head.number >= -1 && head.number <= most ? true : nonsense();
}

// What the buffer has is copied; the rest goes where it belongs, and what follows into the buffer.
bool Replies::bytes(std::span<std::byte> into) {
  const std::size_t there = std::min(into.size(), end_ - at_);
  if (there != 0) std::memcpy(into.data(), buffer_.get() + at_, there);  // `into` may be nothing at all
  at_ += there;
  into = into.subspan(there);
  while (!into.empty()) {
    at_ = end_ = 0;
    iovec pieces[] = {{into.data(), into.size()}, {buffer_.get(), kBuffer}};
    const std::size_t got = source_.receive(pieces);
    if (got == 0) return false;
    const std::size_t here = std::min(got, into.size());
    end_ = got - here;
    into = into.subspan(here);
  }
  return true;
}

bool Replies::bulk(std::span<std::byte> into) { return bytes(into) && line_end(); }

// Grows with what comes, not with what is announced.
bool Replies::text(std::size_t length, std::string& text) {
  constexpr std::size_t kStep = std::size_t{64} * 1024;
  while (text.size() < length) {
    const std::size_t before = text.size();
    text.resize(std::min(length, before + kStep));
    if (!bytes(std::as_writable_bytes(std::span(text)).subspan(before))) return false;
  }
  return line_end();
}

bool Replies::rest_within(const Head& head, Reply& reply, std::size_t& left, unsigned depth) {
  reply.kind = head.kind;
  reply.number = head.number;
  reply.elements.clear();
  reply.text.clear();
  const auto announced = static_cast<std::size_t>(std::max<std::int64_t>(head.number, 0));
  if (head.kind == Kind::kBulk) return take(announced, left) && text(announced, reply.text);
  if (!take(head.text.size(), left)) return false;
  reply.text = head.text;
  if (head.kind != Kind::kArray) return true;
  if (depth >= kDepth) return nonsense();
  if (!take(announced * sizeof(Reply), left)) return false;
  for (std::size_t i = 0; i < announced; ++i) {
    Head next;
    if (!this->head(next) || !rest_within(next, reply.elements.emplace_back(), left, depth + 1)) return false;
  }
  return true;
}

bool Replies::rest(const Head& head, Reply& reply, std::size_t most) { return rest_within(head, reply, most, 0); }

bool Replies::whole(Reply& reply, std::size_t most) {
  Head first;
  return head(first) && rest(first, reply, most);
}

bool Replies::skip_within(const Head& head, unsigned depth) {
  if (head.kind == Kind::kBulk) {
    for (auto left = static_cast<std::size_t>(head.number); left > 0;) {
      if (at_ == end_ && !fill()) return false;
      const std::size_t here = std::min(left, end_ - at_);
      at_ += here, left -= here;
    }
    return line_end();
  }
  if (head.kind != Kind::kArray) return true;
  if (depth >= kDepth) return nonsense();
  for (std::int64_t i = 0; i < head.number; ++i) {
    Head next;
    if (!this->head(next) || !skip_within(next, depth + 1)) return false;
  }
  return true;
}

bool Replies::skip(const Head& head) { return skip_within(head, 0); }

}  // namespace farheap::store::redis
