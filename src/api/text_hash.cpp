// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <xxhash.h>

#include <farheap/string_store.hpp>

namespace farheap::detail {

// A part of what string_key_store keeps: never another one.
std::uint64_t hash_text(std::string_view text) noexcept { return XXH3_64bits(text.data(), text.size()); }

}  // namespace farheap::detail
