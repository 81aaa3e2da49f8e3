// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/mapping.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/mman.h>
#include <cerrno>
#include <cstring>

#include "base/environment.hpp"

namespace farheap::os {

// The system calls themselves: inside a program that runs on Farheap, mmap() and munmap() are Farheap's own.
static std::byte* map(std::uintptr_t address, std::size_t bytes, int protection, int flags) {
  const long at = syscall(SYS_mmap, address, bytes, protection, flags, -1, 0L);
  return at == -1 ? nullptr : reinterpret_cast<std::byte*>(at);
}

static int protection_of(Access access) { return access == Access::kNone ? PROT_NONE : PROT_READ | PROT_WRITE; }

Mapping::~Mapping() {
  if (at_ != nullptr) syscall(SYS_munmap, at_, bytes_);
}

const char* remedy_for_addresses() {
  const char* const preloaded = base::environment("LD_PRELOAD");
  if (preloaded != nullptr && strstr(preloaded, "vgpreload") != nullptr) {
    return "valgrind has too few: run the program without Farheap under it (farheap run --plain)";
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    return "RLIMIT_AS is set: `ulimit -v unlimited` before the program starts (a hard limit only root can raise)";
  }
  if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    return "RLIMIT_DATA is set: `ulimit -d unlimited` before the program starts (a hard limit only root can raise)";
  }
  char mode = '0';
  const int file = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    if (syscall(SYS_read, file, &mode, 1) != 1) mode = '0';
    syscall(SYS_close, file);
  }
  if (mode == '2') return "vm.overcommit_memory is 2: sudo sysctl vm.overcommit_memory=0";
  return "`farheap doctor` shows what limits them";
}

static Error no_room(int why, std::string subject) {
  return errno_error(why, "cannot reserve addresses", std::move(subject), remedy_for_addresses());
}

Result<Mapping> Mapping::reserve(std::size_t bytes, Access access, bool shared) {
  const int flags = (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_NORESERVE;
  std::byte* at = map(0, bytes, protection_of(access), flags);
  if (at == nullptr) return fail(no_room(errno, fmt::format("{} bytes", bytes)));
  syscall(SYS_madvise, at, bytes, MADV_DONTDUMP);
  return Mapping(at, bytes);
}

Result<Mapping> Mapping::reserve_at(std::uintptr_t address, std::size_t bytes, Access access) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  std::byte* at = map(address, bytes, protection_of(access), flags);
  const std::string subject = fmt::format("{:#x}-{:#x}", address, address + bytes);
  if (at == nullptr && errno != EEXIST) return fail(no_room(errno, subject));
  if (at == reinterpret_cast<std::byte*>(address)) return Mapping(at, bytes);
  if (at != nullptr) syscall(SYS_munmap, at, bytes);  // a kernel before 4.17 took the address as a wish
  return fail(ErrorCode::kConflict, "cannot reserve addresses", subject, "something is mapped there already",
              "choose another slot with --set heap_id=NUMBER");
}

}  // namespace farheap::os
