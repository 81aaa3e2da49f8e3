// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Errors are values. Every border of Farheap returns Result<T> or Status; nothing is thrown across C,
// threads or the preload library, and nothing is swallowed.
//
// Thread-safety: plain values.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace farheap {

enum class ErrorCode {
  kInvalidArgument,  // the caller's mistake: a wrong option, a malformed URI
  kNotFound,
  kPermission,   // the kernel or a server refuses; a grant mends it
  kUnavailable,  // a kernel feature, library or server that is not there
  kNoSpace,      // disk, address space or memory is full
  kCorrupt,      // bytes are not those that were written
  kConflict,     // a compare-and-swap lost
  kUnknown,      // sent, but no answer: it may or may not have happened
  kIo,           // the device or server failed
};

// What failed, on what, why, and what to do about it. Reads as
//   "cannot open the store: file:/mnt/nvme: Permission denied; choose a folder you may write with --store file:DIR"
struct Error {
  ErrorCode code;
  std::string what;     // "cannot open the store"
  std::string subject;  // "file:/mnt/nvme"
  std::string why;      // "Permission denied"
  std::string remedy;   // "choose a folder ..."; may be empty

  // In one line. Passwords in URIs are left out.
  [[nodiscard]] std::string message() const;
};

// An error whose reason is an errno value. The code is derived from it (EACCES: kPermission, ENOSPC: kNoSpace, ...).
[[nodiscard]] Error errno_error(int errno_value, std::string what, std::string subject, std::string remedy = {});

template <class T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
// A password in a URI is left out of all of it.
[[nodiscard]] tl::unexpected<Error> fail(ErrorCode code, std::string what, std::string subject, std::string why,
                                         std::string remedy = {});

}  // namespace farheap
