// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/process_memory.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/format_into.hpp"
#include "os/own_descriptors.hpp"
#include "os/proc_text.hpp"

namespace farheap::os {

namespace {

constexpr std::uint64_t kPageBytes = 4096;

// Not strtoull(): it asks the thread's locale, which may be an object of the program's heap, and this also runs where
// no page can come in (in a forked child, before its handlers live).
std::uint64_t next_number(const char*& text) {
  while (*text == ' ' || *text == '\t') ++text;
  std::uint64_t number = 0;
  for (; *text >= '0' && *text <= '9'; ++text) number = number * 10 + static_cast<std::uint64_t>(*text - '0');
  return number;
}

// The line of statm: total, resident, shared, ... in pages.
std::uint64_t anonymous_bytes_in(const char* text) {
  next_number(text);
  const std::uint64_t resident = next_number(text);
  const std::uint64_t shared = next_number(text);
  return (resident > shared ? resident - shared : 0) * kPageBytes;
}

// False if there is nothing to be read.
template <std::size_t kSize>
bool read_text(const char* path, char (&text)[kSize]) {
  const std::size_t size = read_proc_text(path, {text, kSize - 1}).size();
  text[size] = '\0';
  return size != 0;
}

// Not snprintf(), for the same reason.
void print_path(char (&path)[64], int process, const char* name) {
  path[base::format_into({path, sizeof path - 1}, "/proc/{}/{}", process, name).size()] = '\0';
}

// The kernel has no memory for a main thread that has ended, though the process goes on with others.
bool has_no_memory(const char* statm) { return statm[0] == '0'; }

// The line of a thread that has not ended; false if all have.
template <std::size_t kSize>
bool read_of_another_thread(int process, char (&text)[kSize]) {
  char path[64];
  print_path(path, process, "task");
  return look_through(path, [&text, process](const char* thread) {
           char statm[64];
           statm[base::format_into({statm, sizeof statm - 1}, "/proc/{}/task/{}/statm", process, thread).size()] = '\0';
           return read_text(statm, text) && !has_no_memory(text);
         }) == Look::kFound;
}

}  // namespace

ProcessMemory::Use ProcessMemory::use_of(int process) {
  Use use;
  char path[64];
  char text[512];
  print_path(path, process, "statm");
  if (read_text(path, text) && (!has_no_memory(text) || read_of_another_thread(process, text)))
    use.anonymous_bytes = anonymous_bytes_in(text);
  print_path(path, process, "stat");
  // The name may have blanks and brackets in it; the tenth field counts from its last bracket.
  if (!read_text(path, text)) return use;
  const char* at = std::strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 10; ++field) at = std::strchr(at + 1, ' ');
  if (at != nullptr) use.minor_faults = next_number(at);
  return use;
}

std::uint64_t ProcessMemory::anonymous_share_of(int process) {
  constexpr char kLine[] = "\nPss_Anon:";
  char path[64];
  char text[2048];
  print_path(path, process, "smaps_rollup");
  if (!read_text(path, text)) return 0;
  const char* at = std::strstr(text, kLine);
  if (at == nullptr) return 0;
  at += sizeof kLine - 1;
  return next_number(at) * 1024;
}

ProcessMemory::~ProcessMemory() { reopen(); }

void ProcessMemory::reopen() {
  release_descriptor(file_);
  file_ = -1;
}

std::uint64_t ProcessMemory::anonymous_bytes() {
  char text[128];
  if (file_ < 0) {
    file_ = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file_ < 0) return 0;
    file_ = keep_descriptor(file_);
    keep_from_children(file_);
  }
  const ssize_t size = pread(file_, text, sizeof text - 1, 0);
  if (size <= 0) return 0;
  text[size] = '\0';
  if (has_no_memory(text) && !read_text("/proc/thread-self/statm", text)) return 0;
  return anonymous_bytes_in(text);
}

}  // namespace farheap::os
