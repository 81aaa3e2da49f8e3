// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What this library's own code, its C++ runtime included, gets under the names of the C library's system calls: the
// calls themselves, by an instruction of our own. The functions of these names may be the program's (libfaketime's
// clock_gettime(), a poll() of coroutines), or their first bytes may have been overwritten (mmap() by UCX); they may
// allocate, wait for a page or tell another time, and are cancellation points.
//
// The names that exports.map gives to the program are diverted to here by the linker (--wrap in CMakeLists.txt). The
// others are defined here, hidden.
//
// Thread-safety: any thread, and signal handlers; the locks are locks.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/clock.hpp"
#include "base/futex.hpp"
#include "base/system_call.hpp"
#include "preload/program_calls.hpp"

using farheap::base::system_call;

#define FARHEAP_HIDDEN extern "C" __attribute__((visibility("hidden")))

// On x86-64 the words of a call come as if all six were there; the kernel looks at those that it knows.
#define FARHEAP_OWN_CALL(name, number)                                             \
  FARHEAP_HIDDEN long own_##name(long, long, long, long, long, long) asm(#name);   \
  FARHEAP_HIDDEN long own_##name(long a, long b, long c, long d, long e, long f) { \
    return system_call(number, a, b, c, d, e, f);                                  \
  }                                                                                \
  static_assert(true)

FARHEAP_OWN_CALL(__wrap_mmap, SYS_mmap);
FARHEAP_OWN_CALL(__wrap_mmap64, SYS_mmap);
FARHEAP_OWN_CALL(__wrap_munmap, SYS_munmap);
FARHEAP_OWN_CALL(__wrap_mremap, SYS_mremap);
FARHEAP_OWN_CALL(__wrap_mprotect, SYS_mprotect);
FARHEAP_OWN_CALL(__wrap_madvise, SYS_madvise);
FARHEAP_OWN_CALL(__wrap_mlock, SYS_mlock);
FARHEAP_OWN_CALL(__wrap_close, SYS_close);
FARHEAP_OWN_CALL(__wrap_dup3, SYS_dup3);
FARHEAP_OWN_CALL(__wrap_read, SYS_read);
FARHEAP_OWN_CALL(__wrap_readv, SYS_readv);
FARHEAP_OWN_CALL(__wrap_pread, SYS_pread64);
FARHEAP_OWN_CALL(__wrap_pread64, SYS_pread64);
FARHEAP_OWN_CALL(__wrap_preadv, SYS_preadv);
FARHEAP_OWN_CALL(__wrap_preadv64, SYS_preadv);

FARHEAP_OWN_CALL(write, SYS_write);
FARHEAP_OWN_CALL(writev, SYS_writev);
FARHEAP_OWN_CALL(pwrite, SYS_pwrite64);
FARHEAP_OWN_CALL(pwrite64, SYS_pwrite64);
FARHEAP_OWN_CALL(pwritev, SYS_pwritev);
FARHEAP_OWN_CALL(pwritev64, SYS_pwritev);
FARHEAP_OWN_CALL(open, SYS_open);
FARHEAP_OWN_CALL(open64, SYS_open);
FARHEAP_OWN_CALL(openat, SYS_openat);
FARHEAP_OWN_CALL(fcntl, SYS_fcntl);
FARHEAP_OWN_CALL(ioctl, SYS_ioctl);
FARHEAP_OWN_CALL(fsync, SYS_fsync);
FARHEAP_OWN_CALL(fdatasync, SYS_fdatasync);
FARHEAP_OWN_CALL(ftruncate, SYS_ftruncate);
FARHEAP_OWN_CALL(fallocate, SYS_fallocate);
FARHEAP_OWN_CALL(memfd_create, SYS_memfd_create);
FARHEAP_OWN_CALL(eventfd, SYS_eventfd2);
FARHEAP_OWN_CALL(pipe2, SYS_pipe2);
FARHEAP_OWN_CALL(poll, SYS_poll);
FARHEAP_OWN_CALL(epoll_create1, SYS_epoll_create1);
FARHEAP_OWN_CALL(epoll_ctl, SYS_epoll_ctl);
FARHEAP_OWN_CALL(epoll_wait, SYS_epoll_wait);
FARHEAP_OWN_CALL(timerfd_create, SYS_timerfd_create);
FARHEAP_OWN_CALL(timerfd_settime, SYS_timerfd_settime);
FARHEAP_OWN_CALL(socket, SYS_socket);
FARHEAP_OWN_CALL(socketpair, SYS_socketpair);
FARHEAP_OWN_CALL(connect, SYS_connect);
FARHEAP_OWN_CALL(getsockopt, SYS_getsockopt);
FARHEAP_OWN_CALL(setsockopt, SYS_setsockopt);
FARHEAP_OWN_CALL(sendmsg, SYS_sendmsg);
FARHEAP_OWN_CALL(recvmsg, SYS_recvmsg);
FARHEAP_OWN_CALL(stat, SYS_stat);
FARHEAP_OWN_CALL(stat64, SYS_stat);
FARHEAP_OWN_CALL(fstat, SYS_fstat);
FARHEAP_OWN_CALL(fstat64, SYS_fstat);
FARHEAP_OWN_CALL(lstat, SYS_lstat);
FARHEAP_OWN_CALL(lstat64, SYS_lstat);
FARHEAP_OWN_CALL(fstatat, SYS_newfstatat);
FARHEAP_OWN_CALL(fstatat64, SYS_newfstatat);
FARHEAP_OWN_CALL(unlink, SYS_unlink);
FARHEAP_OWN_CALL(kill, SYS_kill);
FARHEAP_OWN_CALL(getpid, SYS_getpid);
FARHEAP_OWN_CALL(sched_yield, SYS_sched_yield);
FARHEAP_OWN_CALL(nanosleep, SYS_nanosleep);

FARHEAP_HIDDEN long own_syscall(long, long, long, long, long, long, long) asm("__wrap_syscall");
FARHEAP_HIDDEN long own_syscall(long number, long a, long b, long c, long d, long e, long f) {
  return system_call(number, a, b, c, d, e, f);
}

FARHEAP_HIDDEN __attribute__((noreturn)) void own_exit(int) asm("__wrap__exit");
FARHEAP_HIDDEN void own_exit(int status) { farheap::preload::end_process(status); }

FARHEAP_HIDDEN int own_clock_gettime(clockid_t, timespec*) asm("clock_gettime");
FARHEAP_HIDDEN int own_clock_gettime(clockid_t clock, timespec* into) {
  const auto now = farheap::base::kernel_time(clock);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  *into = {seconds.count(), (now - seconds).count()};
  return 0;
}

FARHEAP_HIDDEN time_t own_time(time_t*) asm("time");
FARHEAP_HIDDEN time_t own_time(time_t* into) {
  const time_t now = std::chrono::floor<std::chrono::seconds>(farheap::base::kernel_time(CLOCK_REALTIME)).count();
  if (into != nullptr) *into = now;
  return now;
}

FARHEAP_HIDDEN int own_usleep(unsigned) asm("usleep");
FARHEAP_HIDDEN int own_usleep(unsigned microseconds) {
  farheap::base::sleep_for(std::chrono::microseconds(microseconds));
  return 0;
}

// Locks that nobody outside of this library ever sees: the first word of them is enough. 0 free, 1 taken, 2 awaited.
static std::atomic<std::uint32_t>& word_of(pthread_mutex_t* mutex) {
  return *reinterpret_cast<std::atomic<std::uint32_t>*>(mutex);
}

FARHEAP_HIDDEN int own_mutex_trylock(pthread_mutex_t*) asm("pthread_mutex_trylock");
FARHEAP_HIDDEN int own_mutex_trylock(pthread_mutex_t* mutex) {
  std::uint32_t free = 0;
  return word_of(mutex).compare_exchange_strong(free, 1, std::memory_order_acquire) ? 0 : EBUSY;
}

FARHEAP_HIDDEN int own_mutex_lock(pthread_mutex_t*) asm("pthread_mutex_lock");
FARHEAP_HIDDEN int own_mutex_lock(pthread_mutex_t* mutex) {
  auto& word = word_of(mutex);
  std::uint32_t free = 0;
  if (word.compare_exchange_strong(free, 1, std::memory_order_acquire)) [[likely]]
    return 0;
  while (word.exchange(2, std::memory_order_acquire) != 0) farheap::base::futex_wait(word, 2);
  return 0;
}

FARHEAP_HIDDEN int own_mutex_unlock(pthread_mutex_t*) asm("pthread_mutex_unlock");
FARHEAP_HIDDEN int own_mutex_unlock(pthread_mutex_t* mutex) {
  auto& word = word_of(mutex);
  if (word.exchange(0, std::memory_order_release) == 2) farheap::base::futex_wake(word, 1);
  return 0;
}
