// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages that tell which page and which value they are.
#pragma once

#include <cstdlib>
#include <cstring>

#include "base/units.hpp"
#include "pager/view.hpp"
#include "tests/words.hpp"

namespace farheap::segment {

using base::kPageBytes;
using pager::PageNumber;

inline constexpr std::uint32_t kMostPages = 64;

// Pages whose first and last words tell the page and its value.
class Pages {
 public:
  Pages() : at_(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kMostPages * kPageBytes))) {}
  ~Pages() { std::free(at_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  void set(std::uint32_t index, PageNumber page, std::uint64_t value) {
    test::count_words(at_ + index * kPageBytes, kPageBytes, first_word(page, value));
  }
  [[nodiscard]] bool has(std::uint32_t index, PageNumber page, std::uint64_t value) const {
    return test::counts_words(at_ + index * kPageBytes, kPageBytes, first_word(page, value));
  }
  [[nodiscard]] bool is_zero(std::uint32_t index) const {
    static constexpr std::byte kZeros[kPageBytes] = {};
    return std::memcmp(at_ + index * kPageBytes, kZeros, kPageBytes) == 0;
  }
  [[nodiscard]] std::byte* data() { return at_; }

 private:
  static std::uint64_t first_word(PageNumber page, std::uint64_t value) { return value * 1'000'003 + page * 512; }
  std::byte* at_;
};

}  // namespace farheap::segment
