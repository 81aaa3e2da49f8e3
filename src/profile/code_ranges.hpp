// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which files' code lies where in this process, as /proc/self/maps tells it. It is read when an address is met that is
// not known, because libraries come and go.
//
// Thread-safety: none of its own. Allocates.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace farheap::profile {

class CodeRanges {
 public:
  // The number of the file whose code lies at the address; kNone: nobody's. `fresh`: lines of maps that were not there
  // before are added to it, with their line ends.
  static constexpr int kNone = -1;
  [[nodiscard]] int file_at(std::uintptr_t address, std::string& fresh);
  // The same of what is known already.
  [[nodiscard]] int known_file_at(std::uintptr_t address) const {
    const Range* const known = find(address);
    return known != nullptr ? known->file : kNone;
  }

 private:
  struct Range {
    std::uintptr_t first, end;
    int file;
  };
  [[nodiscard]] const Range* find(std::uintptr_t address) const;
  void read(std::string& fresh);
  void note(std::string_view line, std::string& fresh);
  [[nodiscard]] int number_of(std::string_view file);

  std::vector<Range> ranges_;       // by address
  std::vector<std::string> files_;  // "device inode path", as in maps
  unsigned in_vain_ = 0, skipped_ = 0;
};

// Calls `take` with each line of /proc/self/maps until it answers false. Allocates nothing. `room`: for some lines; one
// that is longer is cut.
void read_maps(const std::function<bool(std::string_view line)>& take, std::span<char> room);
// The same, with room for any path on the stack.
void read_maps(const std::function<bool(std::string_view line)>& take);

// "first-end perms offset device inode path" of a line of maps.
struct MapsLine {
  std::uintptr_t first = 0, end = 0;
  std::uint64_t offset = 0;
  bool is_code = false;
  std::string_view file;  // from the device on; empty: anonymous memory
  std::string_view path;
};
// False: it is no such line.
[[nodiscard]] bool read_maps_line(std::string_view line, MapsLine& into);

}  // namespace farheap::profile
