// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "package_list.hpp"

#include <algorithm>
#include <string_view>

namespace packages {
namespace {

// "a | b:any (>= 1) [amd64]" at '|': "a", "b".
std::vector<std::string> names_in(std::string_view text, char separator) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    one.remove_prefix(std::min(one.find_first_not_of(" \t"), one.size()));
    one = one.substr(0, one.find_first_of(" \t:(["));
    if (!one.empty()) names.emplace_back(one);
  }
  return names;
}

void add_needs(std::string_view text, Listed& package) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    if (auto choice = names_in(text.substr(0, end), '|'); !choice.empty()) package.needs.push_back(std::move(choice));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

void read_list(std::istream& in, PackageList& list) {
  std::string name;
  Listed package;
  const auto finish = [&] {
    if (!name.empty()) list[name] = std::move(package);
    name.clear();
    package = {};
  };
  for (std::string line; std::getline(in, line);) {
    const std::string_view text = line;
    const std::size_t colon = text.find(": ");
    if (text.empty()) finish();
    // Lines that go on from the one before begin with a space; the fields that count are single lines.
    if (text.empty() || text[0] == ' ' || colon == text.npos) continue;
    const std::string_view field = text.substr(0, colon), value = text.substr(colon + 2);
    if (field == "Package") name = value;
    if (field == "Version") package.version = value;
    if (field == "Depends" || field == "Pre-Depends") add_needs(value, package);
    if (field == "Provides") package.provides = names_in(value, ',');
  }
  finish();
}

}  // namespace packages
