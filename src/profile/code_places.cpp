// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/code_places.hpp"

#include <algorithm>

#include "profile/code_ranges.hpp"

namespace farheap::profile {

CodePlaces::CodePlaces(std::string_view lines, const NumberOf& number_of) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    MapsLine line;
    if (read_maps_line(lines.substr(0, end), line) && !line.path.empty()) {
      parts_.push_back({line.first, line.end, line.offset, number_of(std::string(line.path))});
    }
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

const CodePlaces::Part* CodePlaces::find(std::uint64_t address) const {
  const auto found = std::find_if(parts_.rbegin(), parts_.rend(),
                                  [address](const Part& part) { return address >= part.first && address < part.end; });
  return found == parts_.rend() ? nullptr : &*found;
}

CodePlace CodePlaces::at(std::uint64_t address) const {
  const Part* const found = find(address);
  return found == nullptr ? CodePlace{0, address} : CodePlace{found->file, address - found->first + found->offset};
}

}  // namespace farheap::profile
