// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "faults/kernel.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace farheap::bench::faults {

void stop(const std::string& why) {
  std::fprintf(stderr, "faults: %s\n", why.c_str());
  std::fflush(stdout);
  std::_Exit(1);  // other threads may wait for faults that nobody serves any more
}

void stop_errno(const std::string& what) { stop("cannot " + what + ": " + std::strerror(errno)); }

int open_memory_file(std::size_t bytes) {
  const int file = memfd_create("faults", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) stop_errno("make a file in memory");
  return file;
}

Memory::~Memory() {
  if (at_ != nullptr) munmap(at_, bytes_);
}

Memory Memory::anonymous(std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) stop_errno("map memory");
  madvise(at, bytes, MADV_NOHUGEPAGE);  // refused where the kernel has no huge pages at all
  return {static_cast<std::byte*>(at), bytes};
}

Memory Memory::of_file(int file, std::size_t bytes, bool shared) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, file, 0);
  if (at == MAP_FAILED) stop_errno("map a file in memory");
  return {static_cast<std::byte*>(at), bytes};
}

void number_pages(const Memory& memory) {
  for (std::size_t i = 0; i < memory.pages(); ++i) word_of(memory.page(i)) = i;
}

os::Userfault open_userfault(bool move) {
  auto opened = os::Userfault::open({move, true});
  if (!opened) stop(opened.error().message());
  return std::move(*opened);
}

void watch(os::Userfault& faults, std::byte* at, std::size_t bytes) {
  if (const auto done = faults.register_range(at, bytes); !done) stop(done.error().message());
}

void zap(std::byte* at, std::size_t bytes) {
  if (madvise(at, bytes, MADV_DONTNEED) != 0) stop_errno("drop pages from the page tables");
}

void say(const std::string& name, const char* metric, double value) {
  std::printf("%s %s %.6g\n", name.c_str(), metric, value);
}

}  // namespace farheap::bench::faults
