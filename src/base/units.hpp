// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Page size, address width and sizes as people write them. x86-64 first: these constants stand here only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>
#include <string>
#include <string_view>

namespace farheap::base {

inline constexpr std::size_t kPageShift = 12;
inline constexpr std::size_t kPageBytes = std::size_t{1} << kPageShift;
inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
inline constexpr std::size_t kPagesPerHugePage = kHugePageBytes / kPageBytes;

inline constexpr std::size_t kKiB = std::size_t{1} << 10;
inline constexpr std::size_t kMiB = std::size_t{1} << 20;
inline constexpr std::size_t kGiB = std::size_t{1} << 30;
inline constexpr std::size_t kTiB = std::size_t{1} << 40;

[[nodiscard]] constexpr std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}
[[nodiscard]] constexpr std::size_t pages_for(std::size_t bytes) { return round_up(bytes, kPageBytes) / kPageBytes; }

// "512M", "4G", "64KiB", "1.5G", "4096": powers of 1024. kInvalidArgument with the right form otherwise.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);
// "512.0 MiB"
[[nodiscard]] std::string format_size(std::uint64_t bytes);

}  // namespace farheap::base
