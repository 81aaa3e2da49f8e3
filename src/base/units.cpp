// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/units.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace farheap::base {

Result<std::uint64_t> parse_size(std::string_view text) {
  auto wrong = [&] {
    return fail(ErrorCode::kInvalidArgument, "not a size", std::string(text), "a number and a unit were expected",
                "write it as 512M, 4G or 65536");
  };
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !(number >= 0)) return wrong();
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  int shift = 0;
  if (!unit.empty()) {
    constexpr std::string_view kUnits = "BKMGT";
    const auto at = kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
    const std::string_view rest = unit.substr(1);
    if (at == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "iB" || rest == "b")) return wrong();
    shift = static_cast<int>(at) * 10;
  }
  const double bytes = std::ldexp(number, shift);
  if (bytes >= 9.0e18) return wrong();
  return static_cast<std::uint64_t>(bytes);
}

std::string format_size(std::uint64_t bytes) {
  constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kNames[unit]);
}

}  // namespace farheap::base
