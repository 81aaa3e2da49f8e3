// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/sealed_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/system_call.hpp"
#include "base/units.hpp"

namespace farheap::base {
namespace {

constexpr char kCannotSeal[] = "cannot make a file in memory";

int seals_of(Sealed sealed) {
  const int length = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  return sealed == Sealed::kContent ? length | F_SEAL_WRITE : length;
}

// The system calls: inside a program that runs on Farheap, these functions may be Farheap's own or the program's.
long control(int file, int what, long argument) { return syscall(SYS_fcntl, file, what, argument); }

// High, where programs do not look.
int moved_up(int file, int number_from) {
  const auto high = number_from != 0 ? static_cast<int>(control(file, F_DUPFD_CLOEXEC, number_from)) : -1;
  if (high < 0) return file;
  close_now(file);
  return high;
}

// Said here: the kernel would raise SIGXFSZ, which ends most programs without a word. What is in memory only counts,
// too.
Status check_file_size_limit(const char* name, std::size_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= bytes) return {};
  return fail(ErrorCode::kUnavailable, kCannotSeal, name,
              "`ulimit -f` allows files of " + format_size(limit.rlim_cur) + ", and it takes " + format_size(bytes),
              "raise the limit");
}

Status fill(int file, const char* name, const void* content, std::size_t bytes, Sealed sealed) {
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0 || fchmod(file, S_IRUSR | S_IWUSR) != 0) {
    return fail(errno_error(errno, kCannotSeal, name));
  }
  if (content != nullptr && pwrite(file, content, bytes, 0) != static_cast<ssize_t>(bytes)) {
    return fail(errno_error(errno, kCannotSeal, name));
  }
  if (control(file, F_ADD_SEALS, seals_of(sealed)) == 0) return {};
  return fail(errno_error(errno, kCannotSeal, name));
}

}  // namespace

Result<int> make_sealed_file(const char* name, const void* content, std::size_t bytes, Sealed sealed, int number_from) {
  if (Status allowed = check_file_size_limit(name, bytes); !allowed) return fail(std::move(allowed.error()));
  const int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return fail(errno_error(errno, kCannotSeal, name));
  if (Status filled = fill(file, name, content, bytes, sealed); !filled) {
    close_now(file);
    return fail(std::move(filled.error()));
  }
  return moved_up(file, number_from);
}

const char* distrust_of_stranger(int file, std::size_t bytes, Sealed sealed, unsigned& owner) {
  struct stat status{};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return "it is no file";
  const long seals = control(file, F_GET_SEALS, 0);
  if (seals < 0 || (seals & seals_of(sealed)) != seals_of(sealed)) return "it can still be changed";
  if (static_cast<std::size_t>(status.st_size) != bytes) return "it has another format";
  owner = status.st_uid;
  return nullptr;
}

const char* distrust_of(int file, std::size_t bytes, Sealed sealed) {
  unsigned owner = 0;
  if (const char* const why = distrust_of_stranger(file, bytes, sealed, owner)) return why;
  return owner == 0 || owner == geteuid() ? nullptr : "another user made it";
}

int open_plain_file(const char* path, int access) {
  // Such a descriptor names what is there, and opens nothing.
  const int there = open(path, O_PATH | O_CLOEXEC);
  if (there < 0) return -1;
  struct stat status{};
  int file = -1;
  if (fstat(there, &status) == 0 && S_ISREG(status.st_mode)) {
    char again[32];
    std::snprintf(again, sizeof again, "/proc/thread-self/fd/%d", there);
    file = open(again, access | O_CLOEXEC);
  } else {
    errno = EINVAL;
  }
  const int why = errno;
  close_now(there);
  errno = why;
  return file;
}

}  // namespace farheap::base
