// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "process_facts.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace farheap::tool {
namespace {

// NUMBER (NAME) STATE PARENT ...; the name may hold anything.
struct StatLine {
  char text[512];
  explicit StatLine(pid_t process) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/stat", process);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t size = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[size > 0 ? size : 0] = '\0';
  }
  [[nodiscard]] const char* name_end() const { return std::strrchr(text, ')'); }
};

}  // namespace

pid_t parent_of(pid_t process) {
  const StatLine line(process);
  const char* const end = line.name_end();
  return end == nullptr || std::strlen(end) < 4 ? 0 : std::atoi(end + 4);
}

char state_of(pid_t process) {
  const StatLine line(process);
  const char* const end = line.name_end();
  return end == nullptr || std::strlen(end) < 3 ? '\0' : end[2];
}

std::string name_of(pid_t process) {
  const StatLine line(process);
  const char* const end = line.name_end();
  const char* const begin = std::strchr(line.text, '(');
  return end == nullptr || begin == nullptr || begin >= end ? std::string() : std::string(begin + 1, end);
}

}  // namespace farheap::tool
