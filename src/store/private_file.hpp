// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files that hold a key or a password, which are their owner's alone, and those that decide whom to trust.
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

// Files of certificates and their keys, read whole. kPublic: this user's or root's, and not everybody may write to it,
// for it decides whom to trust. kKey: as kPublic, and only its owner may use it; one of root's may be read by its
// group, as those of the system's certificates are. kAnybodys: whatever can be read.
enum class TrustedFile { kAnybodys, kPublic, kKey };
[[nodiscard]] Result<std::string> read_trusted_file(const std::string& file, const char* what, TrustedFile kind);

}  // namespace farheap::store
