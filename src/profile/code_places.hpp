// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the code of a process lies in its files, told from lines of /proc/PID/maps.
//
// Thread-safety: plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.hpp"

namespace farheap::profile {

class CodePlaces {
 public:
  // The number that a file has in CodePlace::file.
  using NumberOf = std::function<std::uint32_t(const std::string& path)>;
  CodePlaces() = default;
  // What was loaded later counts.
  CodePlaces(std::string_view lines, const NumberOf& number_of);
  // File 0 and the address itself, where there is no file's code.
  [[nodiscard]] CodePlace at(std::uint64_t address) const;
  [[nodiscard]] bool knows(std::uint64_t address) const { return find(address) != nullptr; }

 private:
  struct Part {
    std::uint64_t first, end, offset;
    std::uint32_t file;
  };
  [[nodiscard]] const Part* find(std::uint64_t address) const;
  std::vector<Part> parts_;
};

}  // namespace farheap::profile
