// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A userfaultfd context: the kernel's page faults on registered ranges arrive here as events, and pages are put
// in and taken out by these calls. One call, one ioctl; policy is the pager's. (Documentation: Linux,
// admin-guide/mm/userfaultfd.rst.)
//
// Thread-safety: all calls may be made from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>

namespace farheap::os {

struct UserfaultFeatures {
  bool move = true;           // UFFDIO_MOVE (Linux 6.8)
  bool kernel_faults = true;  // faults inside system calls are served, too
  // Writes to write-protected pages raise no events: the kernel lets them go on by itself, and notes them for
  // os::take_written() (Linux 6.7). Not without `move`: to take pages out by copies needs the events.
  bool notes_writes = false;
};

struct FaultEvent {
  std::uintptr_t address = 0;  // of the byte; before Linux 5.18 of its page
  bool write = false;
  bool write_protected = false;  // the page is there, but was write-protected
  std::uint32_t thread = 0;      // kernel thread id, 0 where the kernel does not tell
};

class Userfault {
 public:
  Userfault() = default;
  ~Userfault();
  Userfault(Userfault&& other) noexcept;
  Userfault& operator=(Userfault&& other) noexcept;

  // Opens a context with as many of the wanted features as the kernel has; features() tells which.
  // kPermission with the grant that mends it when userfaultfd, or its kernel faults, are forbidden.
  [[nodiscard]] static Result<Userfault> open(UserfaultFeatures wanted);
  [[nodiscard]] UserfaultFeatures features() const { return features_; }
  [[nodiscard]] int descriptor() const { return file_; }

  // From now on missing (and write-protected) pages of the range raise events.
  [[nodiscard]] Status register_range(void* at, std::size_t bytes);

  // Next event. False when there is none yet (the descriptor is non-blocking; wait with poll()).
  [[nodiscard]] bool read_event(FaultEvent& event);

  // The calls below return 0 or an errno value. `done` is the number of bytes dealt with before the error.
  // `guarded`: write-protected from the beginning.
  int copy(void* to, const void* from, std::size_t bytes, std::size_t& done, bool guarded = false);
  int move(void* to, void* from, std::size_t bytes, std::size_t& done);
  int write_protect(void* at, std::size_t bytes, bool on);
  int wake(void* at, std::size_t bytes);

 private:
  Userfault(int file, UserfaultFeatures features) : file_(file), features_(features) {}
  int file_ = -1;
  UserfaultFeatures features_;
};

}  // namespace farheap::os
