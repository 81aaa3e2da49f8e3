// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A list of Debian packages as apt and dpkg write it: stanzas of "Field: value", with empty lines between them.
//
// Thread-safety: plain functions.
#pragma once

#include <istream>
#include <map>
#include <string>
#include <vector>

namespace packages {

struct Listed {
  std::string version;
  // What it needs, each a choice between names: {{"a"}, {"b", "c"}} needs a, and b or c.
  std::vector<std::vector<std::string>> needs;
  std::vector<std::string> provides;
};

// By name. Of several stanzas with the same name the last one counts.
using PackageList = std::map<std::string, Listed>;

void read_list(std::istream& in, PackageList& list);

}  // namespace packages
