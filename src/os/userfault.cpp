// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/userfault.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/system_call.hpp"
#include "os/kernel_features.hpp"
#include "os/own_descriptors.hpp"
#include "os/uffd_abi.hpp"

namespace farheap::os {

Result<Userfault> Userfault::open(UserfaultFeatures wanted) {
  if (wanted.kernel_faults) keep_userfault_device();
  auto probe = open_userfault_descriptor(wanted.kernel_faults);
  if (!probe) return fail(std::move(probe.error()));
  uffdio_api api{};
  api.api = UFFD_API;
  const bool answered = base::system_call(SYS_ioctl, *probe, UFFDIO_API, &api) ==
                        0;  // features are agreed once: ask with a context apart
  close(*probe);
  const std::uint64_t has = answered ? api.features : 0;

  auto opened = open_userfault_descriptor(wanted.kernel_faults);
  if (!opened) return fail(std::move(opened.error()));
  const int file = keep_descriptor(*opened);
  keep_from_children(file);
  UserfaultFeatures got{.move = wanted.move && (has & abi::kFeatureMove) != 0, .kernel_faults = wanted.kernel_faults};
  got.notes_writes = wanted.notes_writes && got.move && (has & abi::kFeatureWpAsync) != 0;
  api = {};
  api.api = UFFD_API;
  api.features = has & (abi::kFeatureWp | abi::kFeatureThreadId | abi::kFeatureExactAddress |
                        (got.move ? abi::kFeatureMove : 0) | (got.notes_writes ? abi::kFeatureWpAsync : 0));
  if (base::system_call(SYS_ioctl, file, UFFDIO_API, &api) != 0) {
    const int why = errno;
    release_descriptor(file);
    return fail(errno_error(why, "cannot agree with userfaultfd", fmt::format("features {:#x}", api.features)));
  }
  return Userfault(file, got);
}

Userfault::~Userfault() { release_descriptor(file_); }
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
  if (base::system_call(SYS_ioctl, file_, UFFDIO_REGISTER, &argument) == 0) return {};
  return fail(errno_error(errno, "cannot watch a range for page faults", fmt::format("{} + {:#x}", at, bytes)));
}

bool Userfault::read_event(FaultEvent& event) {
  uffd_msg message;
  const long size = base::system_call(SYS_read, file_, &message, sizeof message);
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
static int outcome(long returned, int why, std::int64_t answer, std::size_t bytes, std::size_t& done) {
  if (returned == 0) {
    done = bytes;
    return 0;
  }
  done = answer > 0 ? static_cast<std::size_t>(answer) : 0;
  return answer < 0 ? static_cast<int>(-answer) : why;
}

int Userfault::copy(void* to, const void* from, std::size_t bytes, std::size_t& done, bool guarded) {
  uffdio_copy argument{};
  argument.dst = reinterpret_cast<std::uintptr_t>(to);
  argument.src = reinterpret_cast<std::uintptr_t>(from);
  argument.len = bytes;
  argument.mode = guarded ? UFFDIO_COPY_MODE_WP : 0;
  const long returned = base::system_call(SYS_ioctl, file_, UFFDIO_COPY, &argument);
  return outcome(returned, errno, argument.copy, bytes, done);
}

int Userfault::move(void* to, void* from, std::size_t bytes, std::size_t& done) {
  abi::Move argument{};
  argument.dst = reinterpret_cast<std::uintptr_t>(to);
  argument.src = reinterpret_cast<std::uintptr_t>(from);
  argument.len = bytes;
  const long returned = base::system_call(SYS_ioctl, file_, abi::kMove, &argument);
  return outcome(returned, errno, argument.move, bytes, done);
}

int Userfault::write_protect(void* at, std::size_t bytes, bool on) {
  uffdio_writeprotect argument{};
  argument.range = {reinterpret_cast<std::uintptr_t>(at), bytes};
  argument.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0;
  return base::system_call(SYS_ioctl, file_, UFFDIO_WRITEPROTECT, &argument) == 0 ? 0 : errno;
}

// Whoever is not woken sleeps for ever, and no caller could do more about it than ask again.
int Userfault::wake(void* at, std::size_t bytes) {
  constexpr int kTries = 4;
  uffdio_range range{reinterpret_cast<std::uintptr_t>(at), bytes};
  int failed = 0;
  for (int i = 0; i < kTries; ++i) {
    if (base::system_call(SYS_ioctl, file_, UFFDIO_WAKE, &range) == 0) return 0;
    failed = errno;
  }
  return failed;
}

}  // namespace farheap::os
