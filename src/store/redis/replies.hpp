// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a server answers (RESP2), read as it comes: pages go straight into the caller's memory. Nothing of it is
// trusted: a length, a kind or a depth that cannot be ends the connection (ByteSource::give_up() says so).
//
// A server that lies about what it sends costs no memory beyond what was asked of it: who asks says how much the answer
// may take, that is looked at before memory is taken, and memory is taken as the bytes come, not as they are announced.
// How long an answer may take is the source's to say (Socket::set_deadline()).
// Source: https://redis.io/docs/reference/protocol-spec/
//
// Not hiredis' reader: it makes an object of every answer by malloc(), which a program that brings its own malloc()
// may have locked while its page is fetched, and copies a page three times. docs/stores.md has both measured.
//
// Thread-safety: one thread at a time.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace farheap::store::redis {

// Where the bytes come from: a connection, or a test's.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // At least one byte, into the first pieces. 0: the source is of no use any more.
  [[nodiscard]] virtual std::size_t receive(std::span<iovec> pieces) = 0;
  // As receive(), without waiting: 0 also if nothing is there.
  [[nodiscard]] virtual std::size_t receive_at_once(std::span<iovec> pieces) = 0;
  // Something else than the bytes is wrong with it: ends it.
  virtual void give_up(std::string why) = 0;
};

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

// What a reply may take in memory: its texts, and sizeof(Reply) for each element. An "OK", a number, a handful of
// words:
inline constexpr std::size_t kSmallReply = std::size_t{8} * 1024;
// An array of so many texts of so many bytes.
[[nodiscard]] constexpr std::size_t reply_bytes(std::size_t texts, std::size_t bytes_each) {
  return kSmallReply + texts * (sizeof(Reply) + bytes_each);
}

class Replies {
 public:
  explicit Replies(ByteSource& source) : source_(source), buffer_(std::make_unique_for_overwrite<char[]>(kBuffer)) {}

  // Each is false when the connection is of no use any more.
  [[nodiscard]] bool head(Head& head);
  // After the head of a bulk of just this size.
  [[nodiscard]] bool bulk(std::span<std::byte> into);
  // What a head announces, if it takes at most so many bytes.
  [[nodiscard]] bool rest(const Head& head, Reply& reply, std::size_t most = kSmallReply);
  [[nodiscard]] bool whole(Reply& reply, std::size_t most = kSmallReply);
  // What a head announces, whatever its length: keeps nothing of it.
  [[nodiscard]] bool skip(const Head& head);

  // True if something is there to be read, without waiting.
  [[nodiscard]] bool has_some();
  void forget() { at_ = end_ = 0, is_nonsense_ = false; }
  // What came was not Redis' protocol, or not an answer to what was asked. Always false.
  bool nonsense();
  [[nodiscard]] bool is_nonsense() const { return is_nonsense_; }

 private:
  static constexpr std::size_t kBuffer = std::size_t{64} * 1024;
  static constexpr std::size_t kLongestLine = 4096;
  static constexpr std::int64_t kLongestBulk = std::int64_t{512} << 20;  // a server's own limit
  static constexpr std::int64_t kMostElements = 1 << 20;
  static constexpr unsigned kDepth = 8;
  [[nodiscard]] bool fill();
  [[nodiscard]] bool line(std::string_view& text);
  [[nodiscard]] bool line_end();
  [[nodiscard]] bool bytes(std::span<std::byte> into);
  [[nodiscard]] bool text(std::size_t length, std::string& text);
  [[nodiscard]] bool rest_within(const Head& head, Reply& reply, std::size_t& left, unsigned depth);
  [[nodiscard]] bool skip_within(const Head& head, unsigned depth);
  [[nodiscard]] bool take(std::size_t wanted, std::size_t& left);
  bool give_up(const char* why);

  ByteSource& source_;
  std::unique_ptr<char[]> buffer_;
  std::size_t at_ = 0, end_ = 0;
  bool is_nonsense_ = false;
};

}  // namespace farheap::store::redis
