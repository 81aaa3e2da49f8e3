// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// checksum+: a 128-bit XXH3 for each block; bytes that do not fit it are kCorrupt and never handed out as good.
// Where the sums live is the difference between a scratch store (checksum_store.cpp) and a kept one
// (kept_checksum_store.cpp).
//
// Invariant: who writes holds the stripes of his blocks; readers hold nothing, and take the stripe only to make sure
// that what looks corrupt is not just being written.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "store/decorator.hpp"
#include "store/stripes.hpp"

namespace farheap::store {

// 0, 0 is no sum: a block whose sum would be that is given 1, 0.
struct Sum {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const Sum&) const = default;
};
[[nodiscard]] Sum sum_of(std::span<const std::byte> block);

// Readers look at it while it is written; a mix of two sums fits no block, and then the stripe decides.
struct SumRecord {
  std::atomic<std::uint64_t> low, high;
  void set(Sum sum) {
    low.store(sum.low, std::memory_order_relaxed);
    high.store(sum.high, std::memory_order_release);
  }
  [[nodiscard]] Sum get() const {
    const auto upper = high.load(std::memory_order_acquire);
    return {low.load(std::memory_order_relaxed), upper};
  }
};

class ChecksumStore : public Decorator {
 public:
  explicit ChecksumStore(std::unique_ptr<Store> inner);
  Status get(std::span<Get> batch) final;
  Status put(std::span<Put> batch) final;

 protected:
  [[nodiscard]] std::size_t blocks_in(std::size_t bytes) const { return bytes / block_bytes_; }

  // Reads as the store below has it; every entry gets its outcome.
  virtual void get_inner(std::span<Get> batch) = 0;
  // Requires: the stripes are held. False if there is no room for the sums of these blocks.
  [[nodiscard]] virtual bool prepare(std::uint64_t first, std::size_t count) = 0;
  // Requires: the stripes are held; all are prepared; `sums` has one for each block of `entries`, in order.
  virtual void put_inner(std::span<Put> entries, std::span<const Sum> sums) = 0;
  [[nodiscard]] virtual bool fits(std::uint64_t block, const Sum& sum) const = 0;

  std::size_t block_bytes_;
  Stripes stripes_;

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  [[nodiscard]] std::uint64_t first_misfit(const Get& entry) const;
  void get_alone(Get& entry);
};

[[nodiscard]] std::unique_ptr<Store> make_scratch_checksums(std::unique_ptr<Store> inner);
[[nodiscard]] std::unique_ptr<Store> make_kept_checksums(std::unique_ptr<Store> inner);

}  // namespace farheap::store
