// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whole programs of our own, a case each (cases.hpp): each does one thing that real programs do, to more data than its
// budget holds, checks what it reads and prints digests that are the same in every run.
//     program_guests CASE MEBIBYTES [ARGUMENTS ...]
// Thread-safety: all may be called by several threads; a Random belongs to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cases.hpp"

namespace guests {

using namespace cases;

// How much data the driver wants: its first argument. Whole MiB.
[[nodiscard]] std::size_t data_bytes();

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2 + 1) {}
  [[nodiscard]] std::size_t below(std::size_t bound);

 private:
  std::uint64_t state_;
};

// Data in pieces of the heap: piece i is filled from seed + i. Frees nothing: most programs end so, too.
class Pieces {
 public:
  static constexpr std::size_t kPiece = 256 << 10;
  Pieces(std::size_t bytes, std::uint64_t seed);
  [[nodiscard]] std::size_t count() const { return pieces_.size(); }
  [[nodiscard]] std::uint64_t* piece(std::size_t number) const { return pieces_[number]; }
  void check(std::size_t number) const;
  // One word of any piece: most have left.
  void check_a_word(Random& random) const;
  void check_all() const;

 private:
  std::uint64_t seed_;
  std::vector<std::uint64_t*> pieces_;
};

[[nodiscard]] std::uint64_t digest(const void* at, std::size_t bytes, std::uint64_t seed = 0);
void print_digest(const char* what, std::uint64_t value);

// An empty file in the working folder, without a name.
[[nodiscard]] int nameless_file();

}  // namespace guests
