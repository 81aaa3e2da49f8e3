// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What may be shown of a text in which a password may stand: in a URI ("redis://user:secret@host") or as a parameter
// of one ("?password=secret").
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace farheap::base {

// "redis://user@host": the same without passwords, and still a URI. A text without one comes back as it is. Where it
// cannot be told which part is the password, more is left out rather than less.
[[nodiscard]] std::string without_secrets(std::string_view text);

// "//user:secret@host/x" taken apart: "user:secret" and "//host/x". `unclear`: there is an '@' behind what should be a
// port, as in "//user:sec/ret@host".
struct Authority {
  std::string_view login;
  std::string_view rest;  // behind the '@'; without the two strokes
  bool has_login = false;
  bool unclear = false;
};
// Requires: `text` is what stands behind "://".
[[nodiscard]] Authority take_authority(std::string_view text);

}  // namespace farheap::base
