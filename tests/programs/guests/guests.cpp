// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "guests.hpp"

#include <unistd.h>
#include <xxhash.h>

namespace guests {

std::size_t data_bytes() {
  CHECK(g_count >= 1);
  const std::size_t mebibytes = std::strtoull(g_arguments[0], nullptr, 10);
  CHECK(mebibytes > 0);
  return mebibytes * kMebibyte;
}

std::size_t Random::below(std::size_t bound) {
  state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
  return static_cast<std::size_t>((state_ * 0x2545f4914f6cdd1d) >> 11) % bound;
}

Pieces::Pieces(std::size_t bytes, std::uint64_t seed) : seed_(seed), pieces_(bytes / kPiece) {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    pieces_[i] = static_cast<std::uint64_t*>(std::malloc(kPiece));
    CHECK(pieces_[i] != nullptr);
    fill(pieces_[i], kPiece, seed_ + i);
  }
}

void Pieces::check(std::size_t number) const { CHECK_FILLED(pieces_[number], kPiece, seed_ + number); }

void Pieces::check_a_word(Random& random) const {
  const std::size_t number = random.below(count()), place = random.below(kPiece / 8);
  CHECK(pieces_[number][place] == word(seed_ + number, place));
}

void Pieces::check_all() const {
  for (std::size_t i = 0; i < count(); ++i) check(i);
}

std::uint64_t digest(const void* at, std::size_t bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(at, bytes, seed);
}

void print_digest(const char* what, std::uint64_t value) {
  std::printf("%s %016llx\n", what, static_cast<unsigned long long>(value));
}

int nameless_file() {
  char name[] = "guest-XXXXXX";
  const int file = mkstemp(name);
  CHECK(file >= 0 && unlink(name) == 0);
  return file;
}

}  // namespace guests
