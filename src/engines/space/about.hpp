// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What says that a store is there and whose it is: one line of text, the same for every engine (docs/formats.md), which
// each keeps in its own way.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <farheap/result.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace farheap::engines {

inline constexpr std::uint64_t kAboutFormat = 1;

struct About {
  std::uint64_t format = kAboutFormat;
  std::uint64_t block_bytes = 0;
  std::string identity;  // by chance: a store that is made anew is another one
};
[[nodiscard]] About new_about(std::uint64_t block_bytes);
[[nodiscard]] std::string about_text(const About& about);
// Nothing: it is not one of Farheap's.
[[nodiscard]] std::optional<About> about_in(std::string_view text);

// That of a store which can be opened with blocks of this size; else an error, in words. `shown` is the store, `form`
// what its URI looks like.
[[nodiscard]] Result<About> checked_about(std::optional<About> about, std::uint64_t block_bytes,
                                          const std::string& shown, std::string_view form);

}  // namespace farheap::engines
