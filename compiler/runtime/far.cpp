// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: __farheap_far is set before the first far address is handed out, and stays. In mode cached there is none.
#include "far.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/environment.hpp"
#include "base/mutex.hpp"
#include "cached.hpp"

// Begins in the half of the addresses that are the kernel's.
FarRange __farheap_far = {std::uintptr_t{1} << 63, 0};

namespace farheap::translate {
namespace {

constexpr std::size_t kCopiedAtOnce = 16384;
constexpr std::size_t kDirectBytes = std::size_t{1} << 20;  // what one call moves at once

std::once_flag g_started;
std::atomic<bool> g_is_child{false};
std::atomic<bool> g_has_ended{false};
pthread_t g_ended_by;  // set before that is
base::SharedMutex g_use;
FarHeap* g_heap FARHEAP_GUARDED_BY(g_use) = nullptr;
// Whoever changes a far word atomically.
base::Mutex g_atomics;

void begin() {
  g_use.assume_held();  // nobody is inside before there is a heap
  FarHeapOptions options;
  options.is_direct = true;
  options.cache_bytes = kDirectBytes;
  auto heap = FarHeap::open(variable("FARHEAP_FAR_STORE", "mem:"), options);
  if (!heap) die_without_store(heap.error());
  g_heap = new FarHeap(std::move(*heap));
  pthread_atfork(nullptr, nullptr, [] { g_is_child = true; });
  explain_faults();
  __farheap_far.begin = reinterpret_cast<std::uintptr_t>(g_heap->begin());
  std::atomic_thread_fence(std::memory_order_seq_cst);
  __farheap_far.bytes = static_cast<std::uintptr_t>(g_heap->end() - g_heap->begin());
}

bool has_begun() {
  g_use.assume_shared();  // it is set once, before there are far addresses
  return g_heap != nullptr;
}

// When the program's own last functions have run: the library that it needs ends after it.
__attribute__((destructor)) void end() {
  if (!has_begun() || g_is_child) return;  // a program may say itself what is far
  g_ended_by = pthread_self();
  g_has_ended = true;  // nobody new comes in, so that the lock comes free
  base::LockGuard use(g_use);
  const Status flushed = g_heap->flush();
  if (!flushed) die(flushed.error());
  delete g_heap;
  g_heap = nullptr;
}

}  // namespace

void die(const Error& error) {
  const std::string text = fmt::format("farheap: the translated program ends: {}\n", error.message());
  // What cannot be written has nobody to read it.
  (void)!write(STDERR_FILENO, text.data(), text.size());
  _exit(kStatusOfFailure);
}

void die_without_store(Error error) {
  error.remedy += std::string(error.remedy.empty() ? "" : "; ") + "FARHEAP_FAR_STORE says which store it is";
  die(error);
}

std::string variable(const char* name, const char* usual) {
  const char* const value = base::environment(name);
  return value != nullptr && *value != '\0' ? value : usual;
}

bool start() {
  if (is_cached() || g_is_child) return false;
  std::call_once(g_started, begin);
  return !g_has_ended;
}

Inside::Inside() : errno_(errno) {
  if (g_is_child) {
    die({ErrorCode::kUnavailable, "cannot reach far memory", "a forked child",
         "the far heap belongs to the process that began it", "use threads, or run another program in the child"});
  }
  g_use.lock_shared();
  if (!g_has_ended) return;
  g_use.unlock_shared();
  if (pthread_equal(g_ended_by, pthread_self()) != 0) {
    die({ErrorCode::kUnavailable, "cannot reach far memory", "the end of the process", "the far heap has ended", ""});
  }
  for (;;) pause();  // a thread that outlives main: it goes with the process
}

Inside::~Inside() {
  g_use.unlock_shared();
  errno = errno_;
}

FarHeap& Inside::heap() const {
  g_use.assume_shared();  // as long as this is there
  return *g_heap;
}

namespace {

void copy_between(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::array<std::byte, kCopiedAtOnce> buffer;
  // From the end, where the bytes at the front of what is copied to are yet to be read.
  const bool is_backward = to > from && to < from + bytes;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t count = std::min(bytes - done, buffer.size());
    const std::size_t at = is_backward ? bytes - done - count : done;
    __farheap_get(buffer.data(), from + at, count);
    __farheap_put(to + at, buffer.data(), count);
    done += count;
  }
}

}  // namespace
}  // namespace farheap::translate

using farheap::translate::Inside;
using farheap::translate::is_far;

// NOLINTBEGIN(bugprone-reserved-identifier): names that no program has.
FARHEAP_ENTRY void __farheap_get(void* into, const void* from, std::size_t bytes) {
  const Inside inside;
  const farheap::Status done = inside.heap().read(from, {static_cast<std::byte*>(into), bytes});
  if (!done) farheap::translate::die(done.error());
}

FARHEAP_ENTRY void __farheap_untranslated(const char* what) {
  farheap::translate::die({farheap::ErrorCode::kUnavailable, "cannot reach far memory", what, "",
                           "or run the program with FARHEAP_FAR_MODE=cached, in which that needs no translation"});
}

FARHEAP_ENTRY void __farheap_put(void* to, const void* from, std::size_t bytes) {
  const Inside inside;
  const farheap::Status done = inside.heap().write(to, {static_cast<const std::byte*>(from), bytes});
  if (!done) farheap::translate::die(done.error());
}

FARHEAP_ENTRY void __farheap_copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (!is_far(to) && !is_far(from)) {
    std::memmove(to, from, bytes);
  } else if (!is_far(to)) {
    __farheap_get(to, from, bytes);
  } else if (!is_far(from)) {
    __farheap_put(to, from, bytes);
  } else {
    farheap::translate::copy_between(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  }
}

FARHEAP_ENTRY void __farheap_fill(void* to, unsigned char byte, std::size_t bytes) {
  if (!is_far(to)) {
    std::memset(to, byte, bytes);
    return;
  }
  std::array<std::byte, farheap::translate::kCopiedAtOnce> buffer;
  buffer.fill(std::byte{byte});
  for (std::size_t done = 0; done < bytes; done += buffer.size()) {
    __farheap_put(static_cast<std::byte*>(to) + done, buffer.data(), std::min(bytes - done, buffer.size()));
  }
}

FARHEAP_ENTRY void __farheap_lock() FARHEAP_ACQUIRE(farheap::translate::g_atomics) {
  farheap::translate::g_atomics.lock();
}
FARHEAP_ENTRY void __farheap_unlock() FARHEAP_RELEASE(farheap::translate::g_atomics) {
  farheap::translate::g_atomics.unlock();
}

// What was written before is in the store. For programs that say when.
FARHEAP_ENTRY void __farheap_flush() {
  farheap::Status done;
  if (farheap::translate::is_cached()) {
    done = farheap::translate::flush_pages();
  } else if (__farheap_far.bytes != 0) {
    const Inside inside;
    done = inside.heap().flush();
  }
  if (!done) farheap::translate::die(done.error());
}
// NOLINTEND(bugprone-reserved-identifier)
