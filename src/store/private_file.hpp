// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files that hold a key or a password: their owner's alone.
//
// Thread-safety: pure functions.
#pragma once

#include <farheap/result.hpp>
#include <span>
#include <string>

namespace farheap::store {

// For error messages: "no key for encrypt+", and the option that names the file.
struct PrivateFileUse {
  const char* what;
  const char* option;
};

// Reads at most `into.size()` bytes; how many there were. kPermission if others than its owner may use the file,
// or if it belongs to another user than this one or root. Symbolic links are followed: the file itself is looked at.
[[nodiscard]] Result<std::size_t> read_private_file(const std::string& file, std::span<char> into, PrivateFileUse use);

}  // namespace farheap::store
