// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Commands in Redis' protocol (RESP2), ready to be sent, and sent again. Long arguments stay where they are: a request
// is a list of pieces of text and of the caller's bytes. Source: https://redis.io/docs/reference/protocol-spec/
//
// Thread-safety: one thread at a time.
#pragma once

#include <sys/uio.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace farheap::store::redis {

class Requests {
 public:
  void clear() { text_.clear(), pieces_.clear(), open_ = 0; }

  // A command of so many arguments, its name included.
  void command(std::size_t arguments) { number('*', arguments); }
  void argument(std::string_view text) {
    number('$', text.size());
    text_.append(text).append("\r\n");
  }
  void argument(std::uint64_t value) {
    char digits[20];
    argument({digits, std::to_chars(digits, digits + sizeof digits, value).ptr});
  }
  // Requires: the bytes stay until clear().
  void argument(std::span<const std::byte> bytes) {
    number('$', bytes.size());
    close_text();
    pieces_.push_back({bytes.data(), 0, bytes.size()});
    text_.append("\r\n");
  }
  // Where the next command begins: commands from mark to mark are sent by pieces().
  [[nodiscard]] std::size_t mark() {
    close_text();
    return pieces_.size();
  }
  void append(std::size_t from, std::size_t to, std::vector<iovec>& out) const {
    for (std::size_t i = from; i < to; ++i) {
      const Piece& piece = pieces_[i];
      const void* const bytes =
          piece.bytes != nullptr ? static_cast<const void*>(piece.bytes) : text_.data() + piece.at;
      out.push_back({const_cast<void*>(bytes), piece.length});
    }
  }

 private:
  struct Piece {
    const std::byte* bytes;  // nullptr: of text_, which moves while it grows
    std::size_t at;
    std::size_t length;
  };
  void number(char sign, std::size_t value) {
    char line[24];
    line[0] = sign;
    char* end = std::to_chars(line + 1, line + sizeof line, value).ptr;
    *end++ = '\r', *end++ = '\n';
    text_.append(line, end);
  }
  void close_text() {
    if (text_.size() > open_) pieces_.push_back({nullptr, open_, text_.size() - open_});
    open_ = text_.size();
  }

  std::string text_;
  std::vector<Piece> pieces_;
  std::size_t open_ = 0;  // text from here on is in no piece yet
};

}  // namespace farheap::store::redis
