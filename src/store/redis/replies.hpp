// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a server answers (RESP2), read as it comes: pages go straight into the caller's memory. Nothing of it is
// trusted: a length, a kind or a depth that cannot be ends the connection (Socket::why() says so).
// Source: https://redis.io/docs/reference/protocol-spec/
//
// Not hiredis' reader: it makes an object of every answer by malloc(), which a program that brings its own malloc()
// may have locked while its page is fetched, and copies a page three times. docs/stores.md has both measured.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/socket.hpp"

namespace farheap::store::redis {

enum class Kind : char { kStatus = '+', kError = '-', kInteger = ':', kBulk = '$', kArray = '*', kNil = '0' };

// The first line of a reply. A bulk's bytes, an array's elements are still to be read.
struct Head {
  Kind kind = Kind::kNil;
  std::int64_t number = 0;  // the integer, the length, the number of elements
  std::string_view text;    // of a status or an error; until the next call
};

// A whole one, for what is small.
struct Reply {
  Kind kind = Kind::kNil;
  std::int64_t number = 0;
  std::string text;  // of a status, an error or a bulk
  std::vector<Reply> elements;
  [[nodiscard]] bool is_error() const { return kind == Kind::kError; }
};

class Replies {
 public:
  explicit Replies(Socket& socket) : socket_(socket), buffer_(std::make_unique_for_overwrite<char[]>(kBuffer)) {}

  // Each is false when the connection is of no use any more.
  [[nodiscard]] bool head(Head& head);
  // After the head of a bulk of just this size.
  [[nodiscard]] bool bulk(std::span<std::byte> into);
  // What a head announces.
  [[nodiscard]] bool rest(const Head& head, Reply& reply, unsigned depth = 0);
  [[nodiscard]] bool skip(const Head& head);
  [[nodiscard]] bool whole(Reply& reply);

  // True if something is there to be read, without waiting.
  [[nodiscard]] bool has_some();
  void forget() { at_ = end_ = 0, is_nonsense_ = false; }
  // What came was not Redis' protocol, or not an answer to what was asked. Always false.
  bool nonsense();
  [[nodiscard]] bool is_nonsense() const { return is_nonsense_; }

 private:
  static constexpr std::size_t kBuffer = std::size_t{64} * 1024;
  static constexpr std::size_t kLongestLine = 4096;
  static constexpr std::int64_t kLongestBulk = 64 << 20;  // of those that are read whole
  static constexpr std::int64_t kMostElements = 1 << 20;
  static constexpr unsigned kDepth = 8;
  [[nodiscard]] bool fill();
  [[nodiscard]] bool line(std::string_view& text);
  [[nodiscard]] bool line_end();
  [[nodiscard]] bool bytes(std::span<std::byte> into);
  [[nodiscard]] bool text(std::size_t length, std::string& text);

  Socket& socket_;
  std::unique_ptr<char[]> buffer_;
  std::size_t at_ = 0, end_ = 0;
  bool is_nonsense_ = false;
};

}  // namespace farheap::store::redis
