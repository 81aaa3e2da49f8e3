// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Errors are values. Every border of Farheap returns Result<T> or Status; nothing is thrown across C,
// threads or the preload library, and nothing is swallowed.
//
// Thread-safety: plain values.
#pragma once

#include <exception>
#include <string>
#include <tl/expected.hpp>
#include <utility>

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

}  // namespace farheap

// value() of a Result without a value throws this: what() is the error's message. In a program without exceptions it
// ends the program with that message.
template <>
class tl::bad_expected_access<farheap::Error> : public std::exception {
 public:
  explicit bad_expected_access(farheap::Error error) : error_(std::move(error)), text_(error_.message()) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  [[nodiscard]] const farheap::Error& error() const& { return error_; }
  [[nodiscard]] farheap::Error& error() & { return error_; }
  [[nodiscard]] farheap::Error&& error() && { return std::move(error_); }

 private:
  farheap::Error error_;
  std::string text_;
};

namespace farheap {

using BadResult = tl::bad_expected_access<Error>;
namespace detail {
[[noreturn]] void throw_bad_result(BadResult&& error);
}  // namespace detail

}  // namespace farheap

// The library throws, whatever the program is compiled with: tl's own goes on at random without exceptions.
template <>
[[noreturn]] inline void tl::detail::throw_exception(farheap::BadResult&& error) {
  farheap::detail::throw_bad_result(std::move(error));
}

namespace farheap {

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
