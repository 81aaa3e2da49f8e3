// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The only way to the environment. A program that got rights of another user, of a group or of its file (setuid, file
// capabilities: AT_SECURE) has an environment of somebody with fewer rights: there nothing in it counts, and nothing of
// it is handed on.
//
// Thread-safety: the environment must not be changed meanwhile.
#pragma once

namespace farheap::base {

// Of another user, of a group or of its file (AT_SECURE).
[[nodiscard]] bool has_raised_rights();
// nullptr: there is none of this name, or the environment does not count.
[[nodiscard]] const char* environment(const char* name);
// All "NAME=value", ended by a null pointer; just that where the environment does not count. Never null.
[[nodiscard]] const char* const* environment_lines();

}  // namespace farheap::base
