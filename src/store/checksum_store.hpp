// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// checksum+: a 128-bit XXH3 for each block; bytes that do not fit it are kCorrupt and never handed out as good.
//
// Thread-safety: any thread.
#pragma once

#include <farheap/store.hpp>
#include <memory>
#include <span>

namespace farheap::store {

// 0, 0 is no sum: a block whose sum would be that is given 1, 0.
struct Sum {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const Sum&) const = default;
};
[[nodiscard]] Sum sum_of(std::span<const std::byte> block);

// A Sealer: see sealed_store.hpp.
class Checksummer {
 public:
  using Seal = Sum;
  static constexpr char kName[] = "checksum";
  static constexpr char kWhy[] = "its checksum does not fit";
  static constexpr bool kRewrites = false;

  [[nodiscard]] const Checksummer& start() const { return *this; }
  [[nodiscard]] Sum seal(std::uint64_t, std::span<const std::byte> from, std::span<std::byte>) const {
    return sum_of(from);
  }
  [[nodiscard]] bool fits(std::uint64_t, std::span<const std::byte> bytes, const Sum& sum) const {
    return sum_of(bytes) == sum;
  }
  [[nodiscard]] bool open(std::uint64_t block, std::span<std::byte> bytes, const Sum& sum) const {
    return fits(block, bytes, sum);
  }
};

[[nodiscard]] std::unique_ptr<Store> make_kept_checksums(std::unique_ptr<Store> inner);

}  // namespace farheap::store
