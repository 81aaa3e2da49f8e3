// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/userfault.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "os/uffd_abi.hpp"

namespace farheap::os {

// Programs close descriptors they did not open (daemons: all from 3 on), and expect the lowest number to be free:
// the runtime's own stay high.
static int move_up(int file) {
  const int high = fcntl(file, F_DUPFD_CLOEXEC, 700);
  if (high < 0) return file;
  close(file);
  return high;
}

static int open_context(int mode_flags, int& why) {
  const int flags = O_CLOEXEC | O_NONBLOCK | mode_flags;
  const int device = ::open(abi::kDevicePath, O_RDWR | O_CLOEXEC);
  if (device >= 0) {
    const int file = ioctl(device, abi::kDeviceNew, flags);
    close(device);
    if (file >= 0) return file;
  }
  const int file = static_cast<int>(syscall(SYS_userfaultfd, flags));
  why = errno;
  return file;
}

static std::uint64_t kernel_has(int mode_flags) {
  int why = 0;
  const int probe = open_context(mode_flags, why);
  if (probe < 0) return 0;
  uffdio_api api{};
  api.api = UFFD_API;
  const bool ok = ioctl(probe, UFFDIO_API, &api) == 0;
  close(probe);
  return ok ? api.features : 0;
}

static Error forbidden(int why) {
  if (why == ENOSYS) {
    return errno_error(why, "cannot open userfaultfd", "this kernel", "it was built without CONFIG_USERFAULTFD");
  }
  return errno_error(why, "cannot open userfaultfd", abi::kDevicePath,
                     "run `farheap doctor`: it shows the grant that this machine needs");
}

Result<Userfault> Userfault::open(UserfaultFeatures wanted) {
  const int mode_flags = wanted.kernel_faults ? 0 : abi::kUserModeOnly;
  int why = 0;
  const std::uint64_t has = kernel_has(mode_flags);
  int file = open_context(mode_flags, why);
  if (file < 0) return fail(forbidden(why));
  file = move_up(file);

  UserfaultFeatures got{wanted.move && (has & abi::kFeatureMove) != 0, wanted.kernel_faults};
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = has & (abi::kFeatureWp | abi::kFeatureThreadId | (got.move ? abi::kFeatureMove : 0));
  if (ioctl(file, UFFDIO_API, &api) != 0) {
    why = errno;
    close(file);
    return fail(errno_error(why, "cannot agree with userfaultfd", fmt::format("features {:#x}", api.features)));
  }
  return Userfault(file, got);
}

Userfault::~Userfault() {
  if (file_ >= 0) close(file_);
}
Userfault::Userfault(Userfault&& other) noexcept : file_(std::exchange(other.file_, -1)), features_(other.features_) {}
Userfault& Userfault::operator=(Userfault&& other) noexcept {
  std::swap(file_, other.file_);
  features_ = other.features_;
  return *this;
}

Status Userfault::register_range(void* at, std::size_t bytes) {
  uffdio_register argument{};
  argument.range = {reinterpret_cast<std::uintptr_t>(at), bytes};
  argument.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP;
  if (ioctl(file_, UFFDIO_REGISTER, &argument) == 0) return {};
  return fail(errno_error(errno, "cannot watch a range for page faults", fmt::format("{} + {:#x}", at, bytes)));
}

bool Userfault::read_event(FaultEvent& event) {
  uffd_msg message;
  const ssize_t size = read(file_, &message, sizeof message);
  if (size != sizeof message || message.event != UFFD_EVENT_PAGEFAULT) return false;
  const auto& fault = message.arg.pagefault;
  event.address = fault.address;
  event.write = (fault.flags & UFFD_PAGEFAULT_FLAG_WRITE) != 0;
  event.write_protected = (fault.flags & UFFD_PAGEFAULT_FLAG_WP) != 0;
  event.thread = fault.feat.ptid;
  return true;
}

// The kernel answers the bytes dealt with, or a negative errno for the first page; EAGAIN with progress means
// that a later page refused, and that the next call will say why.
static int outcome(int returned, int why, std::int64_t answer, std::size_t bytes, std::size_t& done) {
  if (returned == 0) {
    done = bytes;
    return 0;
  }
  done = answer > 0 ? static_cast<std::size_t>(answer) : 0;
  return answer < 0 ? static_cast<int>(-answer) : why;
}

int Userfault::copy(void* to, const void* from, std::size_t bytes, std::size_t& done) {
  uffdio_copy argument{};
  argument.dst = reinterpret_cast<std::uintptr_t>(to);
  argument.src = reinterpret_cast<std::uintptr_t>(from);
  argument.len = bytes;
  const int returned = ioctl(file_, UFFDIO_COPY, &argument);
  return outcome(returned, errno, argument.copy, bytes, done);
}

int Userfault::move(void* to, void* from, std::size_t bytes, std::size_t& done) {
  abi::Move argument{};
  argument.dst = reinterpret_cast<std::uintptr_t>(to);
  argument.src = reinterpret_cast<std::uintptr_t>(from);
  argument.len = bytes;
  const int returned = ioctl(file_, abi::kMove, &argument);
  return outcome(returned, errno, argument.move, bytes, done);
}

int Userfault::write_protect(void* at, std::size_t bytes, bool on) {
  uffdio_writeprotect argument{};
  argument.range = {reinterpret_cast<std::uintptr_t>(at), bytes};
  argument.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0;
  return ioctl(file_, UFFDIO_WRITEPROTECT, &argument) == 0 ? 0 : errno;
}

int Userfault::wake(void* at, std::size_t bytes) {
  uffdio_range range{reinterpret_cast<std::uintptr_t>(at), bytes};
  return ioctl(file_, UFFDIO_WAKE, &range) == 0 ? 0 : errno;
}

}  // namespace farheap::os
