// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The key of encrypt+: 32 bytes that stand nowhere but in memory of their own, which is locked (as far as
// RLIMIT_MEMLOCK allows), guarded on both sides, left out of core dumps, and overwritten when it goes.
//
// Thread-safety: plain values; a key may be read by any thread.
#pragma once

#include <farheap/result.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace farheap::store {

// 64 hexadecimal digits. `farheap run` takes it out of the environment of what it runs.
inline constexpr char kEncryptKeyVariable[] = "FARHEAP_ENCRYPT_KEY";

class EncryptKey {
 public:
  static constexpr std::size_t kBytes = 32;

  [[nodiscard]] static Result<EncryptKey> random();
  // What `file` holds, or, if none is named, the variable; nothing if that is not set either. kPermission if others
  // than its owner may read the file or write to it.
  [[nodiscard]] static Result<std::optional<EncryptKey>> find(const std::string& file);
  // 64 hexadecimal digits and perhaps a line's end, or 32 bytes as they are.
  [[nodiscard]] static Result<EncryptKey> parse(std::span<const char> text, std::string_view from);

  // A key for one purpose in one store, from which neither this key nor another of its kind can be told.
  [[nodiscard]] Result<EncryptKey> derive(std::string_view purpose, std::uint64_t store) const;

  [[nodiscard]] const unsigned char* data() const { return bytes_.get(); }

 private:
  struct Free {
    void operator()(unsigned char* bytes) const;
  };
  EncryptKey() = default;
  [[nodiscard]] static Result<EncryptKey> make();
  std::unique_ptr<unsigned char, Free> bytes_;
};

}  // namespace farheap::store
