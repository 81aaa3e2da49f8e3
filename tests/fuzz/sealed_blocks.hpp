// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whatever bytes a kept store below checksum+ or encrypt+ holds, side blocks included: a block is handed out only if
// its bytes fit its seal, and nothing crashes. The input says which bytes of a good store are changed.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "store/decorator.hpp"

namespace farheap::test {

constexpr std::size_t kBlock = 512;
constexpr std::uint64_t kBlocks = 40;  // several groups

inline std::vector<std::byte> contents() {
  std::vector<std::byte> bytes(kBlocks * kBlock);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / kBlock);
  return bytes;
}

// Passes everything on to a store that outlives it.
class Shared final : public store::Decorator {
 public:
  explicit Shared(Store& below) : Decorator("shared", std::unique_ptr<farheap::Store>(&below)) {}
  ~Shared() override { (void)inner_.release(); }
};

// `seal_over(inner)` makes the decorator, each time over the same blocks.
template <class SealOver>
int change_and_read(const std::uint8_t* data, std::size_t bytes, SealOver seal_over) {
  auto below = open_store("mem:", {.block_bytes = kBlock});
  if (!below) std::abort();
  const auto wanted = contents();
  {
    auto store = seal_over(std::make_unique<Shared>(**below));
    Put put{.block = 0, .from = wanted};
    if (!store->put({&put, 1}) || !store->sync()) std::abort();
  }
  for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
    std::vector<std::byte> block(kBlock);
    Get get{.block = data[i] % (kBlocks + 3), .into = block};
    if (!(*below)->get({&get, 1}) || get.outcome != Outcome::kOk) continue;
    block[(data[i + 1] | data[i + 2] << 8) % kBlock] = static_cast<std::byte>(data[i + 3]);
    Put put{.block = get.block, .from = block};
    if (!(*below)->put({&put, 1})) std::abort();
  }
  auto store = seal_over(std::make_unique<Shared>(**below));
  for (std::uint64_t number = 0; number < kBlocks; ++number) {
    std::vector<std::byte> block(kBlock);
    Get get{.block = number, .into = block};
    (void)store->get({&get, 1}).has_value();
    if (get.outcome != Outcome::kOk && get.outcome != Outcome::kCorrupt) std::abort();
    const bool same = std::memcmp(block.data(), wanted.data() + number * kBlock, kBlock) == 0;
    if (get.outcome == Outcome::kOk && !same) std::abort();
  }
  return 0;
}

}  // namespace farheap::test
