// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <metall/json/serialize.hpp>
#include <ostream>
#include <string>

namespace metall::json {

namespace jsndtl {

template <class Container, class Print>
void print_lines(std::ostream& out, const Container& all, const char* brackets, const std::string& indent,
                 std::size_t step, const Print& print) {
  const std::string inner = indent + std::string(step, ' ');
  out << brackets[0] << '\n';
  std::size_t left = all.size();
  for (const auto& one : all) {
    out << inner;
    print(one, inner);
    if (--left > 0) out << ",\n";
  }
  out << '\n' << indent << brackets[1];
}

template <class Allocator>
void pretty_print(std::ostream& out, const value<Allocator>& from, const std::string& indent, std::size_t step) {
  if (from.is_array()) {
    print_lines(out, from.as_array(), "[]", indent, step,
                [&](const auto& element, const std::string& inner) { pretty_print(out, element, inner, step); });
  } else if (from.is_object()) {
    print_lines(out, from.as_object(), "{}", indent, step, [&](const auto& member, const std::string& inner) {
      out << member.key() << " : ";
      pretty_print(out, member.value(), inner, step);
    });
  } else if (from.is_string()) {
    out << serialize(from.as_string());
  } else if (from.is_double()) {
    out << from.as_double();
  } else {
    out << serialize(from);
  }
}

}  // namespace jsndtl

// For people: as Metall's, texts and keys stand without quotes. serialize() writes JSON.
template <class Allocator, int kIndent = 2>
void pretty_print(std::ostream& out, const value<Allocator>& from) {
  jsndtl::pretty_print(out, from, {}, kIndent);
  out << std::endl;
}

}  // namespace metall::json
