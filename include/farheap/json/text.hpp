// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// JSON as text, for what keeps values: reading as a row of events, and writing of what is not plain. Done by
// nlohmann::json within the library; nothing of it shows here.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace farheap::json {

// What read() finds, in the order of the text. Text is UTF-8, its escapes resolved, and good until the call returns.
class Events {
 public:
  virtual ~Events() = default;
  virtual void on_null() = 0;
  virtual void on_bool(bool truth) = 0;
  virtual void on_int64(std::int64_t number) = 0;
  virtual void on_uint64(std::uint64_t number) = 0;  // above what int64 holds
  virtual void on_double(double number) = 0;
  virtual void on_string(std::string_view text) = 0;
  virtual void on_key(std::string_view key) = 0;  // of the member that comes next
  virtual void on_array() = 0;
  virtual void on_object() = 0;
  virtual void on_end() = 0;  // of the innermost array or object

 protected:
  Events() = default;
  Events(const Events&) = default;
  Events& operator=(const Events&) = default;
};

// Until the end of the text, or the first error: kInvalidArgument, with line and column. What `events` throws passes
// through.
[[nodiscard]] Status read(std::string_view text, std::size_t depth, Events& events);
// As read(), for values that take memory from a heap: kNoSpace when it is full, kInvalidArgument if it was opened for
// reading.
[[nodiscard]] Status read_into_heap(std::string_view text, std::size_t depth, Events& events);

// With its quotation marks and escapes. kInvalidArgument if it is not UTF-8.
[[nodiscard]] Status append_text(std::string& to, std::string_view text);
// The shortest form that is read back as the same double. kInvalidArgument if it is not finite.
[[nodiscard]] Status append_number(std::string& to, double number);

// The first step of a JSON pointer (RFC 6901), which is taken off; nothing if it is malformed.
struct Step {
  std::string key;
  std::optional<std::size_t> index;  // if it can be one
};
[[nodiscard]] std::optional<Step> next_step(std::string_view& pointer);

// Ends the program: a value was taken for what it is not.
[[noreturn]] void wrong_kind() noexcept;

}  // namespace farheap::json
