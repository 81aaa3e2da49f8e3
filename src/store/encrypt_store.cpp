// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kept store has two counters of its own: "encrypt.id", drawn at random when it is made, from which, with the user's
// key, the key of its blocks is derived; and "encrypt.check", by which the right key is known from a wrong one.
#include "store/encrypt_store.hpp"

#include <sodium.h>
#include <xxhash.h>

#include <cstring>

#include "store/kept_seals.hpp"
#include "store/kinds.hpp"
#include "store/scratch_seals.hpp"

namespace farheap::store {
namespace {

constexpr char kCannotOpenEncrypted[] = "cannot open the store";
constexpr char kId[] = "encrypt.id";
constexpr char kCheck[] = "encrypt.check";

static_assert(sizeof(EncryptSeal::nonce) == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES);
static_assert(sizeof(EncryptSeal::tag) == crypto_aead_xchacha20poly1305_ietf_ABYTES);
static_assert(EncryptKey::kBytes == crypto_aead_xchacha20poly1305_ietf_KEYBYTES);

using Associated = std::array<unsigned char, 8>;
Associated associated_with(std::uint64_t block) {
  Associated bytes;
  std::memcpy(bytes.data(), &block, bytes.size());
  return bytes;
}

// Writes what `bytes` hold in plain to `into`; only looks whether they are genuine where that is null.
bool decrypt(const EncryptKey& key, std::uint64_t block, std::span<const std::byte> bytes, const EncryptSeal& seal,
             unsigned char* into) {
  const auto associated = associated_with(block);
  return crypto_aead_xchacha20poly1305_ietf_decrypt_detached(
             into, nullptr, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), seal.tag.data(),
             associated.data(), associated.size(), seal.nonce.data(), key.data()) == 0;
}

// A positive number that a counter can hold.
std::int64_t positive(const void* bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes, sizeof number);
  number >>= 1;
  return number == 0 ? 1 : static_cast<std::int64_t>(number);
}

Result<std::int64_t> check_of(const EncryptKey& key, std::int64_t id) {
  const auto check = key.derive("farheap: is it the right key", static_cast<std::uint64_t>(id));
  if (!check) return fail(check.error());
  return positive(check->data());
}

Result<EncryptKey> block_key(const EncryptKey& key, std::int64_t id) {
  return key.derive("farheap: blocks of a store", static_cast<std::uint64_t>(id));
}

std::int64_t random_id() {
  std::uint64_t bits = 0;
  randombytes_buf(&bits, sizeof bits);
  return positive(&bits);
}

// The id of the store; a new one if it is empty.
Result<std::int64_t> claim(Store& inner, const EncryptKey& key) {
  auto id = inner.add(kId, 0);
  auto check = id ? inner.add(kCheck, 0) : id;
  if (!check) return check;
  if (*id == 0 || *check == 0) {  // new, or its maker was killed before it had written anything
    const auto usage = inner.usage();
    if (!usage) return fail(usage.error());
    if (usage->blocks != 0) {
      return fail(ErrorCode::kInvalidArgument, kCannotOpenEncrypted, "encrypt+" + inner.describe(),
                  "it holds blocks that are not encrypted", "open it without encrypt+, or name a new one");
    }
    if (*id == 0) id = inner.add(kId, random_id());
  }
  if (!id) return id;
  auto wanted = check_of(key, *id);
  if (!wanted) return wanted;
  if (*check == 0) check = inner.add(kCheck, *wanted);
  if (!check) return check;
  if (*check == *wanted) return id;
  return fail(ErrorCode::kPermission, kCannotOpenEncrypted, "encrypt+" + inner.describe(),
              "its blocks were written with another key",
              std::string("give that key, in the file encrypt_key_file or the variable ") + kEncryptKeyVariable);
}

}  // namespace

Encrypter::Encrypter(EncryptKey key) : key_(std::move(key)) {
  if (const auto seed = key_.derive("farheap: nonces", 0)) std::memcpy(&nonce_seed_, seed->data(), sizeof nonce_seed_);
}

Encrypter::Session::Session(const Encrypter& encrypter) : encrypter_(encrypter) {
  randombytes_buf(nonce_.data(), nonce_.size());
}

EncryptSeal Encrypter::Session::seal(std::uint64_t block, std::span<const std::byte> from, std::span<std::byte> into) {
  EncryptSeal seal;
  seal.nonce = nonce_;
  sodium_increment(nonce_.data(), nonce_.size());
  // Not in the lowest bytes: these keep the blocks of one call apart whatever their hashes are.
  const XXH128_hash_t hash = XXH3_128bits_withSeed(from.data(), from.size(), encrypter_.nonce_seed_);
  unsigned char mixed_in[sizeof hash];
  std::memcpy(mixed_in, &hash, sizeof hash);
  for (std::size_t i = 0; i < sizeof hash; ++i) seal.nonce[seal.nonce.size() - sizeof hash + i] ^= mixed_in[i];
  const auto associated = associated_with(block);
  crypto_aead_xchacha20poly1305_ietf_encrypt_detached(reinterpret_cast<unsigned char*>(into.data()), seal.tag.data(),
                                                      nullptr, reinterpret_cast<const unsigned char*>(from.data()),
                                                      from.size(), associated.data(), associated.size(), nullptr,
                                                      seal.nonce.data(), encrypter_.key_.data());
  return seal;
}

bool Encrypter::fits(std::uint64_t block, std::span<const std::byte> bytes, const EncryptSeal& seal) const {
  return decrypt(key_, block, bytes, seal, nullptr);
}

bool Encrypter::open(std::uint64_t block, std::span<std::byte> bytes, const EncryptSeal& seal) const {
  return decrypt(key_, block, bytes, seal, reinterpret_cast<unsigned char*>(bytes.data()));
}

Result<std::unique_ptr<Store>> make_kept_encryption(std::unique_ptr<Store> inner, const EncryptKey& key) {
  const auto id = claim(*inner, key);
  if (!id) return fail(id.error());
  auto blocks = block_key(key, *id);
  if (!blocks) return fail(std::move(blocks.error()));
  return std::make_unique<KeptSeals<Encrypter>>(std::move(inner), Encrypter(std::move(*blocks)));
}

StoreResult open_encrypt(const OpenInner& open_inner, const Parameters&, const StoreOptions& options) {
  auto key = EncryptKey::find(options.encrypt_key_file);
  if (!key) return fail(std::move(key.error()));
  const bool kept = options.lifetime == Lifetime::kKeep;
  const std::optional<EncryptKey> given = std::move(*key);
  if (kept && !given) {
    return fail(ErrorCode::kInvalidArgument, kCannotOpenEncrypted, "encrypt+", "a store that is to be kept needs a key",
                std::string("name a file of 64 hexadecimal digits as encrypt_key_file, or set ") + kEncryptKeyVariable);
  }
  auto inner = open_inner(options);
  if (!inner) return inner;
  if (kept && !has((*inner)->capabilities(), Capability::kCounters)) {
    return fail(ErrorCode::kUnavailable, kCannotOpenEncrypted, "encrypt+" + (*inner)->describe(),
                "encrypt+ over a kept store needs counters", "put it over file: or lmdb:");
  }
  if (kept) return make_kept_encryption(std::move(*inner), *given);
  auto blocks = given ? block_key(*given, random_id()) : EncryptKey::random();
  if (!blocks) return fail(std::move(blocks.error()));
  return std::make_unique<ScratchSeals<Encrypter>>(std::move(*inner), Encrypter(std::move(*blocks)));
}

}  // namespace farheap::store
