// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One block, compressed on its own. A packed block (format 1) is a header of 8 bytes, little-endian -- 'F', the codec
// (1 zstd, 2 lz4), two zero bytes, and the size of what follows in 32 bits -- and the codec's own frame.
//
// Thread-safety: pack() and unpack() from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>
#include <span>
#include <string_view>

namespace farheap::store {

enum class Codec : std::uint8_t { kZstd = 1, kLz4 = 2 };

// kUnavailable if the build is without it, kInvalidArgument for an unknown one.
[[nodiscard]] Result<Codec> find_codec(std::string_view name);
[[nodiscard]] Codec default_codec();
// kInvalidArgument if the codec has no such level.
[[nodiscard]] Status check_level(Codec codec, int level);

// The bytes of `into` that were used; 0 if it did not fit, or compressing failed.
[[nodiscard]] std::size_t pack(Codec codec, int level, std::span<const std::byte> block, std::span<std::byte> into);
// False if these bytes are no packed block of exactly block.size() bytes. Never reads or writes beyond either.
[[nodiscard]] bool unpack(std::span<const std::byte> packed, std::span<std::byte> block);

}  // namespace farheap::store
