// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables of a datastore's objects on standard output; `farheap heap ls` shows more.
#pragma once

#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <metall/metall.hpp>
#include <string>

namespace metall::utility {

namespace datastore_ls_detail {

template <class Accessor>
void show(const char* title, const Accessor& accessor) {
  std::cout << "[" << title << "]\n";
  if (!accessor.good()) {
    std::cerr << "Failed to open datastore" << std::endl;
    std::abort();
  }
  const auto row = [](const auto& name, const auto& length, const auto& offset, const auto& type, const auto& text) {
    std::cout << "| " << std::setw(24) << name << " | " << std::setw(12) << length << " | " << std::setw(16) << offset
              << " | " << std::setw(20) << type << " | " << text << " |\n";
  };
  row("Name", "Length", "Offset", "Type-ID", "Description");
  for (const auto& object : accessor) {
    row(object.name(), object.length(), object.offset(), object.type_id(), object.description());
  }
  std::cout << std::flush;
}

}  // namespace datastore_ls_detail

inline void ls_named_object(const std::string& path) {
  datastore_ls_detail::show("Named Object", manager::access_named_object_attribute(path));
}
inline void ls_unique_object(const std::string& path) {
  datastore_ls_detail::show("Unique Object", manager::access_unique_object_attribute(path));
}
inline void ls_anonymous_object(const std::string& path) {
  datastore_ls_detail::show("Anonymous Object", manager::access_anonymous_object_attribute(path));
}

}  // namespace metall::utility
