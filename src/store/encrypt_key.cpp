// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/encrypt_key.hpp"

#include <sodium.h>

#include <cerrno>
#include <cstring>

#include "base/environment.hpp"
#include "store/private_file.hpp"

namespace farheap::store {
namespace {

constexpr char kNoKey[] = "no key for encrypt+";
constexpr char kKeyForm[] = "a key is 64 hexadecimal digits (openssl rand -hex 32), or 32 bytes";

bool is_line_end(char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; }

// The text of a key while it is looked at.
struct KeyText {
  char text[256];
  ~KeyText() { sodium_memzero(text, sizeof text); }
};

}  // namespace

void EncryptKey::Free::operator()(unsigned char* bytes) const { sodium_free(bytes); }

Result<EncryptKey> EncryptKey::make() {
  EncryptKey key;
  if (sodium_init() < 0) return fail(ErrorCode::kUnavailable, kNoKey, "libsodium", "it does not start");
  key.bytes_.reset(static_cast<unsigned char*>(sodium_malloc(kBytes)));
  if (!key.bytes_) return fail(errno_error(errno, kNoKey, "guarded memory"));
  return key;
}

Result<EncryptKey> EncryptKey::random() {
  auto key = make();
  if (key) randombytes_buf(key->bytes_.get(), kBytes);
  return key;
}

Result<EncryptKey> EncryptKey::parse(std::span<const char> text, std::string_view from) {
  auto key = make();
  if (!key) return key;
  if (text.size() == kBytes) {
    std::memcpy(key->bytes_.get(), text.data(), kBytes);
    return key;
  }
  while (!text.empty() && is_line_end(text.back())) text = text.first(text.size() - 1);
  std::size_t got = 0;
  const bool whole = text.size() == 2 * kBytes &&
                     sodium_hex2bin(key->bytes_.get(), kBytes, text.data(), text.size(), nullptr, &got, nullptr) == 0;
  if (whole && got == kBytes) return key;
  return fail(ErrorCode::kInvalidArgument, kNoKey, std::string(from), "what it holds is no key", kKeyForm);
}

Result<std::optional<EncryptKey>> EncryptKey::find(const std::string& file) {
  KeyText read;
  std::span<const char> text;
  if (!file.empty()) {
    const auto bytes = read_private_file(file, read.text, {kNoKey, "encrypt_key_file"});
    if (!bytes) return fail(bytes.error());
    text = {read.text, *bytes};
  } else if (const char* const variable = base::environment(kEncryptKeyVariable)) {
    text = {variable, std::strlen(variable)};
  } else {
    return std::optional<EncryptKey>();
  }
  auto key = parse(text, file.empty() ? kEncryptKeyVariable : file);
  if (!key) return fail(std::move(key.error()));
  return std::optional<EncryptKey>(std::move(*key));
}

Result<EncryptKey> EncryptKey::derive(std::string_view purpose, std::uint64_t store) const {
  auto key = make();
  if (!key) return key;
  crypto_generichash_state state;
  crypto_generichash_init(&state, data(), kBytes, kBytes);
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(&store), sizeof store);
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(purpose.data()), purpose.size());
  crypto_generichash_final(&state, key->bytes_.get(), kBytes);
  sodium_memzero(&state, sizeof state);
  return key;
}

}  // namespace farheap::store
