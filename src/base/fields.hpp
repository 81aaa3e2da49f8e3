// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers and texts as bytes, one behind the other: a number is 8 bytes, the lowest first; a text is its length, a
// number, and its bytes.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace farheap::base {

class FieldWriter {
 public:
  void number(std::uint64_t value);
  void text(std::string_view value);
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Takes them out again. After what is not there, everything is 0 or empty and is_whole() is false.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : left_(bytes) {}
  [[nodiscard]] std::uint64_t number();
  [[nodiscard]] std::string text();
  [[nodiscard]] std::size_t left() const { return left_.size(); }
  [[nodiscard]] bool is_empty() const { return left_.empty(); }
  [[nodiscard]] bool is_whole() const { return whole_ && left_.empty(); }  // all was there, and nothing is over
  [[nodiscard]] bool is_good() const { return whole_; }

  // A count, and so many elements. Each takes eight bytes at least: a count that is larger than what is left, or than
  // `most`, is none.
  template <class Element, class Take>
  [[nodiscard]] bool list(std::vector<Element>& into, Take take_one, std::uint64_t most = ~std::uint64_t{0}) {
    const std::uint64_t count = number();
    if (count > most || count > left() / sizeof(std::uint64_t)) return false;
    for (std::uint64_t i = 0; i < count && is_good(); ++i) into.push_back(take_one());
    return is_good();
  }

 private:
  std::string_view left_;
  bool whole_ = true;
};

}  // namespace farheap::base
