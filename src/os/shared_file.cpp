// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/shared_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace farheap::os {

// The system calls: inside a program that runs on Farheap, mmap() is Farheap's own.
Result<SharedFile> SharedFile::create(const std::string& path, std::size_t bytes) {
  constexpr char kWhat[] = "cannot make a file";
  const long file =
      syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return fail(errno_error(errno, kWhat, path));
  const int number = static_cast<int>(file);
  // Beyond the limit the kernel would send SIGXFSZ, which ends most programs.
  rlimit limit{};
  const bool is_too_large = getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur;
  int full = is_too_large ? EFBIG : EINTR;
  while (full == EINTR) {
    full = posix_fallocate(number, 0, static_cast<off_t>(bytes));  // a program's timers may interrupt it
  }
  const long at = full != 0 ? -1 : syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
  const int why = full != 0 ? full : errno;
  syscall(SYS_close, number);
  if (at != -1) return SharedFile(reinterpret_cast<std::byte*>(at), bytes);
  syscall(SYS_unlinkat, AT_FDCWD, path.c_str(), 0);
  return fail(errno_error(why, kWhat, path));
}

Status SharedFile::move_over(SharedFile& place) {
  const long moved = syscall(SYS_mremap, at_, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, place.at_);
  if (moved == -1) return fail(errno_error(errno, "cannot map a file", "mremap"));
  at_ = std::exchange(place.at_, nullptr);
  place.bytes_ = 0;
  return {};
}

void SharedFile::leave_file() {
  constexpr int kInItsPlace = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (at_ != nullptr) syscall(SYS_mmap, at_, bytes_, PROT_READ | PROT_WRITE, kInItsPlace, -1, 0L);
}

SharedFile::~SharedFile() {
  if (at_ != nullptr) syscall(SYS_munmap, at_, bytes_);
}

}  // namespace farheap::os
