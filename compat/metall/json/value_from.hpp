// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <metall/json/json_fwd.hpp>
#include <metall/json/object.hpp>
#include <metall/json/value.hpp>

namespace metall::json {

// A value of Boost.JSON, as one that lives where the allocator takes memory.
template <class T, class Allocator = std::allocator<std::byte>>
value<Allocator> value_from(T&& input, const Allocator& allocator = Allocator()) {
  const boost::json::value& from = input;
  value<Allocator> made(allocator);
  switch (from.kind()) {
    case boost::json::kind::null: break;
    case boost::json::kind::bool_: made = from.get_bool(); break;
    case boost::json::kind::int64: made = from.get_int64(); break;
    case boost::json::kind::uint64: made = from.get_uint64(); break;
    case boost::json::kind::double_: made = from.get_double(); break;
    case boost::json::kind::string: made = std::string_view(from.get_string().data(), from.get_string().size()); break;
    case boost::json::kind::array: {
      auto& elements = made.emplace_array();
      for (const auto& element : from.get_array()) elements.push_back(value_from(element, allocator));
      break;
    }
    case boost::json::kind::object: {
      auto& members = made.emplace_object();
      for (const auto& member : from.get_object()) {
        members[{member.key().data(), member.key().size()}] = value_from(member.value(), allocator);
      }
      break;
    }
  }
  return made;
}

}  // namespace metall::json
