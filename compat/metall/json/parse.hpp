// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <metall/json/value_from.hpp>
#include <metall/logger.hpp>
#include <string_view>

namespace metall::json {

// Null, and a message, if the text is no JSON.
template <class Allocator = std::allocator<std::byte>>
value<Allocator> parse(std::string_view text, const Allocator& allocator = Allocator()) {
  boost::json::error_code error;
  const boost::json::value parsed = boost::json::parse({text.data(), text.size()}, error);
  if (error) {
    logger::out(logger::level::error, __FILE__, __LINE__, ("cannot parse JSON: " + error.message()).c_str());
    return value<Allocator>(allocator);
  }
  return value_from(parsed, allocator);
}

}  // namespace metall::json
