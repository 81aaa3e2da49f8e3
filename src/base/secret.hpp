// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes that nobody is to find: a password, or a URI that has one. They stay out of core dumps and, as far as
// RLIMIT_MEMLOCK allows, out of swap, and are wiped when the last copy of the object goes. A forked child has them,
// too. What a function makes of them for a moment, an ordinary string or a buffer, is its own to keep short.
//
// Thread-safety: a plain value; copies share the bytes, which never change.
#pragma once

#include <farheap/result.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace farheap::base {

class Secret {
 public:
  Secret() = default;
  // kNoSpace: there is no memory of its own to be had.
  [[nodiscard]] static Result<Secret> make(std::string_view text);
  // The same, and the string's bytes are wiped.
  [[nodiscard]] static Result<Secret> take(std::string& text);

  [[nodiscard]] bool empty() const { return bytes_ == nullptr; }
  // As long as an object has it.
  [[nodiscard]] std::string_view view() const;

 private:
  class Bytes;
  std::shared_ptr<const Bytes> bytes_;
};

// Zeros, and then empty: also what is beyond its length. For strings in which a secret stood.
void wipe(std::string& text);

// A secret that other processes of this user can read through /proc/PID/fd, as long as the descriptor is open.
[[nodiscard]] Result<int> make_secret_file(const Secret& secret, int number_from);
// kPermission: it may not be opened, or another user made it.
[[nodiscard]] Result<Secret> read_secret_file(const std::string& path);

}  // namespace farheap::base
