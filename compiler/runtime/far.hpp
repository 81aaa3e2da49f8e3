// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime of programs that `farcc -ffar=translate-heap` made: in mode direct their heap is a farheap::FarHeap,
// which begins with the first allocation; in mode cached it is the one of `farheap run` (cached.hpp).
//
//   FARHEAP_FAR_STORE=URI            where it is: mem: if nothing is said
//   FARHEAP_FAR_MODE=direct|cached   each access reaches the store (if nothing is said), or through the pager
//   FARHEAP_FAR_CACHE=SIZE           with cached: the memory of the heap, 64M
//
// What fails in the middle of an access cannot be told to the program: it ends with a message and status 74. errno is
// what it was. The runtime's own memory is the C library's, which is not the heap of the program.
//
// Thread-safety: any thread. Not for signal handlers: they may come while the heap is locked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <farheap/far_heap.hpp>
#include <string>

#define FARHEAP_ENTRY extern "C" __attribute__((visibility("default")))

// NOLINTBEGIN(bugprone-reserved-identifier): names that no program has.
// Translated code reads it. Before the heap is there no address is in it, in whatever order the two are read.
struct FarRange {
  std::uintptr_t begin;
  std::uintptr_t bytes;
};
FARHEAP_ENTRY FarRange __farheap_far;

FARHEAP_ENTRY void __farheap_get(void* into, const void* from, std::size_t bytes);
FARHEAP_ENTRY void __farheap_put(void* to, const void* from, std::size_t bytes);
// Every mix of far and near, overlapping or not.
FARHEAP_ENTRY void __farheap_copy(void* to, const void* from, std::size_t bytes);
FARHEAP_ENTRY void __farheap_fill(void* to, unsigned char byte, std::size_t bytes);
// A local copy of a far object for as long as it is not returned; what is near is itself.
FARHEAP_ENTRY void* __farheap_borrow(void* own);
FARHEAP_ENTRY void __farheap_return(void* copy, void* own);
FARHEAP_ENTRY void* __farheap_malloc(std::size_t bytes);
FARHEAP_ENTRY void __farheap_free(void* at);
FARHEAP_ENTRY void* __farheap_aligned_alloc(std::size_t alignment, std::size_t bytes);
// Ends the program: `what` has no translation, and was given far memory.
FARHEAP_ENTRY __attribute__((noreturn)) void __farheap_untranslated(const char* what);
// NOLINTEND(bugprone-reserved-identifier)

namespace farheap::translate {

inline bool is_far(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at) - __farheap_far.begin < __farheap_far.bytes;
}

inline constexpr int kStatusOfFailure = 74;  // EX_IOERR

// Ends the program.
[[noreturn]] void die(const Error& error);
// The same, where the store cannot be opened.
[[noreturn]] void die_without_store(Error error);

// The heap may be used for as long as this is there; one at a time in a thread.
class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  [[nodiscard]] FarHeap& heap() const;

 private:
  int errno_;
};

// An empty one counts as none.
[[nodiscard]] std::string variable(const char* name, const char* usual);

// False where there is no far heap (any more): in mode cached, in a forked child, and when the process has ended.
[[nodiscard]] bool start();

// Where code that was not translated touches far memory, or keeps what it was lent, the program's end says so.
void explain_faults();
// For the above: whether the address is, or was, one of a copy that was lent.
[[nodiscard]] bool was_lent(const void* at);
// Bytes from there to the end of what this thread's far stack has in use; 0: it is not on it.
[[nodiscard]] std::size_t on_stack_from(const void* at);
// Whether it is one of a variable whose original is closed.
[[nodiscard]] bool was_moved(const void* at);

// A value that may be far.
template <class T>
T load(const T* at) {
  T value;
  __farheap_copy(&value, at, sizeof value);
  return value;
}
template <class T>
void store(T* at, const T& value) {
  __farheap_copy(at, &value, sizeof value);
}

}  // namespace farheap::translate
