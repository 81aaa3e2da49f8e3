// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/grpc/google_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace farheap::engines {
namespace {

constexpr std::size_t kLongestPart = 128;

bool is_in_names(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == ':';  // a domain's projects: "example.com:project"
}

bool is_name(std::string_view part) {
  return !part.empty() && part.size() <= kLongestPart && std::ranges::all_of(part, is_in_names);
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto slash = text.find('/');
    parts.push_back(text.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    text.remove_prefix(slash + 1);
  }
}

}  // namespace

std::string GooglePlace::describe() const {
  return fmt::format("{}://{}/{}/{}{}{}", scheme, project, instance, table, name.empty() ? "" : "/", name);
}

Result<GooglePlace> google_place(std::string_view scheme, std::string_view place, std::string_view table_words) {
  const auto wrong = [&](std::string why) {
    return fail(
        ErrorCode::kInvalidArgument, "not a store", fmt::format("{}:{}", scheme, place), std::move(why),
        fmt::format("write it as {0}://PROJECT/INSTANCE/{1} or {0}://PROJECT/INSTANCE/{1}/NAME", scheme, table_words));
  };
  if (!place.starts_with("//")) return wrong("the project is missing");
  const auto parts = parts_of(place.substr(2));
  if (parts.size() < 3 || parts.size() > 4) return wrong(fmt::format("it has {} parts, not 3 or 4", parts.size()));
  for (const auto part : parts) {
    if (!is_name(part)) {
      return wrong(
          fmt::format("'{}' is no name (letters, digits, and any of - _ . :, at most {})", part, kLongestPart));
    }
  }
  return GooglePlace{std::string(scheme), std::string(parts[0]), std::string(parts[1]), std::string(parts[2]),
                     parts.size() == 4 ? std::string(parts[3]) : std::string()};
}

}  // namespace farheap::engines
