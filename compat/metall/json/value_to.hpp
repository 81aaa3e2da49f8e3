// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <metall/json/json_fwd.hpp>
#include <metall/json/object.hpp>
#include <metall/json/value.hpp>

namespace metall::json {

// T: boost::json::value.
template <class T, class Allocator>
T value_to(const value<Allocator>& from) {
  if (from.is_bool()) return T(from.as_bool());
  if (from.is_int64()) return T(from.as_int64());
  if (from.is_uint64()) return T(from.as_uint64());
  if (from.is_double()) return T(from.as_double());
  if (from.is_string()) return T(boost::json::string(from.as_string().data(), from.as_string().size()));
  if (from.is_array()) {
    boost::json::array elements;
    for (const auto& element : from.as_array()) elements.push_back(value_to<boost::json::value>(element));
    return T(std::move(elements));
  }
  if (from.is_object()) {
    boost::json::object members;
    for (const auto& member : from.as_object()) {
      members[{member.key().data(), member.key().size()}] = value_to<boost::json::value>(member.value());
    }
    return T(std::move(members));
  }
  return T(nullptr);
}

}  // namespace metall::json
