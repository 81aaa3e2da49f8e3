// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/space/about.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/random_number.hpp"

namespace farheap::engines {

About new_about(std::uint64_t block_bytes) {
  return {.block_bytes = block_bytes, .identity = fmt::format("{:016x}", base::random_number())};
}

std::string about_text(const About& about) {
  return fmt::format("farheap {} {} {}", about.format, about.block_bytes, about.identity);
}

std::optional<About> about_in(std::string_view text) {
  constexpr std::string_view kMagic = "farheap ";
  if (!text.starts_with(kMagic)) return std::nullopt;
  const auto* at = text.data() + kMagic.size();
  const auto* end = text.data() + text.size();
  About about;
  for (auto* number : {&about.format, &about.block_bytes}) {
    const auto read = std::from_chars(at, end, *number);
    if (read.ec != std::errc() || read.ptr == end || *read.ptr != ' ') return std::nullopt;
    at = read.ptr + 1;
  }
  about.identity.assign(at, end);
  return about;
}

Result<About> checked_about(std::optional<About> about, std::uint64_t block_bytes, const std::string& shown,
                            std::string_view form) {
  constexpr char kWhat[] = "cannot open the store";
  if (!about) {
    return fail(ErrorCode::kCorrupt, kWhat, shown, "its description is not one of Farheap's",
                fmt::format("name another one: {}", form));
  }
  if (about->format > kAboutFormat) {
    return fail(ErrorCode::kCorrupt, kWhat, shown, fmt::format("it has format {}", about->format),
                "open it with the newer Farheap that made it");
  }
  if (about->block_bytes != block_bytes) {
    return fail(ErrorCode::kInvalidArgument, kWhat, shown,
                fmt::format("it holds blocks of {} bytes, not of {}", about->block_bytes, block_bytes),
                "open it with the block size it was made with");
  }
  return std::move(*about);
}

}  // namespace farheap::engines
