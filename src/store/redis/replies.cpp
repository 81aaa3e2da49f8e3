// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/replies.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace farheap::store::redis {

bool Replies::nonsense() {
  is_nonsense_ = true;
  socket_.give_up("what it answered is no answer of Redis");
  return false;
}

// More behind what is there. Requires: room for it.
bool Replies::fill() {
  if (at_ == end_) at_ = end_ = 0;
  if (end_ == kBuffer) {
    std::memmove(buffer_.get(), buffer_.get() + at_, end_ - at_);
    end_ -= at_, at_ = 0;
  }
  iovec piece{buffer_.get() + end_, kBuffer - end_};
  const std::size_t got = socket_.receive({&piece, 1});
  end_ += got;
  return got != 0;
}

bool Replies::has_some() {
  if (at_ < end_) return true;
  at_ = end_ = 0;
  iovec piece{buffer_.get(), kBuffer};
  end_ = socket_.receive_at_once({&piece, 1});
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
    const std::size_t got = socket_.receive(pieces);
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

bool Replies::rest(const Head& head, Reply& reply, unsigned depth) {
  reply.kind = head.kind;
  reply.number = head.number;
  reply.text = head.text;
  reply.elements.clear();
  if (head.kind == Kind::kBulk) return text(static_cast<std::size_t>(head.number), reply.text);
  if (head.kind != Kind::kArray) return true;
  if (depth >= kDepth) return nonsense();
  for (std::int64_t i = 0; i < head.number; ++i) {
    Head next;
    if (!this->head(next) || !rest(next, reply.elements.emplace_back(), depth + 1)) return false;
  }
  return true;
}

bool Replies::skip(const Head& head) {
  Reply unused;
  return rest(head, unused);
}

bool Replies::whole(Reply& reply) {
  Head first;
  return head(first) && rest(first, reply);
}

}  // namespace farheap::store::redis
