// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "policy/trace_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace farheap::bench {

Result<profile::PageTrace> read_trace_file(const char* path) {
  constexpr char kWhat[] = "cannot read";
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (file < 0 || fstat(file, &status) != 0) return fail(errno_error(errno, kWhat, path));
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes == 0) return profile::read_page_trace({});
  void* const at = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  if (at == MAP_FAILED) return fail(errno_error(errno, kWhat, path));
  auto trace = profile::read_page_trace({static_cast<const std::byte*>(at), bytes});
  munmap(at, bytes);
  close(file);
  return trace;
}

}  // namespace farheap::bench
