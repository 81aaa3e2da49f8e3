// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// encrypt+: XChaCha20-Poly1305 over each block. Its number is bound in, so that blocks cannot change places; the key
// belongs to one store, so that they cannot come from another. What is not found: that a block, with its seal, is an
// older one of the same number (docs/stores.md).
//
// Nonces are never used twice: each call of put() draws 192 random bits from the kernel and counts up from there. No
// state has to survive for that, in a reopened store or in a forked child. A machine that is resumed twice from one
// snapshot may draw the same bits twice (where the kernel is not told, it goes on with the random state of the
// snapshot): so a hash of the block is mixed in, and other bytes have another nonce even then.
//
// Thread-safety: any thread, and forked children.
#pragma once

#include <array>
#include <cstdint>
#include <farheap/store.hpp>
#include <memory>
#include <span>

#include "store/encrypt_key.hpp"

namespace farheap::store {

// What stands beside a block; neither is secret.
struct EncryptSeal {
  std::array<unsigned char, 24> nonce{};
  std::array<unsigned char, 16> tag{};
  bool operator==(const EncryptSeal&) const = default;
};

// A Sealer: see sealed_store.hpp.
class Encrypter {
 public:
  using Seal = EncryptSeal;
  static constexpr char kName[] = "encrypt";
  static constexpr char kWhy[] = "it was not written with this key, or was changed";
  static constexpr bool kRewrites = true;

  explicit Encrypter(EncryptKey key);

  class Session {
   public:
    explicit Session(const Encrypter& encrypter);
    // Requires: `into` is as long as `from`.
    [[nodiscard]] Seal seal(std::uint64_t block, std::span<const std::byte> from, std::span<std::byte> into);

   private:
    const Encrypter& encrypter_;
    std::array<unsigned char, 24> nonce_;
  };
  [[nodiscard]] Session start() const { return Session(*this); }
  [[nodiscard]] bool fits(std::uint64_t block, std::span<const std::byte> bytes, const Seal& seal) const;
  [[nodiscard]] bool open(std::uint64_t block, std::span<std::byte> bytes, const Seal& seal) const;

 private:
  EncryptKey key_;
  std::uint64_t nonce_seed_ = 0;  // of the hash, so that nobody without the key can tell it
};

// Requires: `inner` has counters. kPermission if its blocks were written with another key; kInvalidArgument if they
// were written without any.
[[nodiscard]] Result<std::unique_ptr<Store>> make_kept_encryption(std::unique_ptr<Store> inner, const EncryptKey& key);

}  // namespace farheap::store
