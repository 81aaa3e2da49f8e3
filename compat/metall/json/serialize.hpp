// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <metall/json/value_to.hpp>
#include <ostream>
#include <string>

namespace metall::json {

template <class Allocator>
std::string serialize(const value<Allocator>& from) {
  return boost::json::serialize(value_to<boost::json::value>(from));
}
template <class Allocator>
std::string serialize(const object<Allocator>& from) {
  boost::json::object members;
  for (const auto& member : from) {
    members[{member.key().data(), member.key().size()}] = value_to<boost::json::value>(member.value());
  }
  return boost::json::serialize(members);
}
template <class Allocator>
std::string serialize(const array<Allocator>& from) {
  boost::json::array elements;
  for (const auto& element : from) elements.push_back(value_to<boost::json::value>(element));
  return boost::json::serialize(elements);
}
// As Metall's: the text itself, without quotes.
template <class Char, class Traits, class Allocator>
std::string serialize(const basic_string<Char, Traits, Allocator>& from) {
  return {from.data(), from.size()};
}

template <class Allocator>
std::ostream& operator<<(std::ostream& out, const value<Allocator>& from) {
  return out << serialize(from);
}
template <class Allocator>
std::ostream& operator<<(std::ostream& out, const object<Allocator>& from) {
  return out << serialize(from);
}
template <class Allocator>
std::ostream& operator<<(std::ostream& out, const array<Allocator>& from) {
  return out << serialize(from);
}

}  // namespace metall::json
