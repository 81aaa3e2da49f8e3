// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions that allocate, for the program and all of its libraries: the C library does the work, and the table of
// objects hears of it.
// Under `farheap run`, whose library comes before this one, nobody calls these, and no site is known.
#include <errno.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <new>

#include "kernel_memory.hpp"
#include "objects.hpp"
#include "threads.hpp"

extern "C" {
// The C library's own, by names that nobody replaces. NOLINTBEGIN(bugprone-reserved-identifier)
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* object, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* object);
// NOLINTEND(bugprone-reserved-identifier)
}

namespace farheap::contexts {
namespace {

void tell_allocated(void* object, std::size_t bytes, const void* returns_to) {
  if (object == nullptr || is_inside()) return;
  const int error = errno;
  const Inside inside;
  allocated(object, bytes, malloc_usable_size(object), returns_to);
  errno = error;
}

void tell_freed(void* object) {
  if (object == nullptr || is_inside()) return;
  const Inside inside;
  freed(object, malloc_usable_size(object));
}

bool is_power_of_two(std::size_t number) { return number != 0 && (number & (number - 1)) == 0; }

void* get(std::size_t bytes, std::size_t alignment) {
  return alignment == 0 ? __libc_malloc(bytes) : __libc_memalign(alignment, bytes);
}

// As operator new has to: the handler may find memory, or throws.
void* get_or_throw(std::size_t bytes, std::size_t alignment, const void* returns_to) {
  for (;;) {
    if (void* const object = get(bytes == 0 ? 1 : bytes, alignment)) {
      tell_allocated(object, bytes, returns_to);
      return object;
    }
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void* get_or_nothing(std::size_t bytes, std::size_t alignment, const void* returns_to) noexcept {
  try {
    return get_or_throw(bytes, alignment, returns_to);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void give_back(void* object) {
  tell_freed(object);
  __libc_free(object);
}

void* map(void* where, std::size_t bytes, int protection, int flags, int file, off64_t offset, const void* returns_to) {
  const long answer = syscall(SYS_mmap, where, bytes, protection, flags, file, offset);
  void* const memory = reinterpret_cast<void*>(answer);
  // Code and constants of libraries are no objects.
  if (memory == MAP_FAILED || (protection & PROT_WRITE) == 0 || is_inside()) return memory;
  const Inside inside;
  allocated(memory, bytes, (bytes + kPageBytes - 1) / kPageBytes * kPageBytes, returns_to);
  return memory;
}

}  // namespace
}  // namespace farheap::contexts

#define FARHEAP_CALLER __builtin_extract_return_addr(__builtin_return_address(0))

using namespace farheap::contexts;

extern "C" {

void* malloc(std::size_t bytes) {
  void* const object = __libc_malloc(bytes);
  tell_allocated(object, bytes, FARHEAP_CALLER);
  return object;
}

void* calloc(std::size_t count, std::size_t bytes) {
  void* const object = __libc_calloc(count, bytes);
  tell_allocated(object, count * bytes, FARHEAP_CALLER);
  return object;
}

void* realloc(void* object, std::size_t bytes) {
  const void* const caller = FARHEAP_CALLER;
  const std::size_t before = object == nullptr || is_inside() ? 0 : malloc_usable_size(object);
  const std::uint32_t site = before == 0 ? kNoSite : site_at(reinterpret_cast<std::uintptr_t>(object));
  void* const moved = __libc_realloc(object, bytes);
  if (moved == nullptr && bytes != 0) return nullptr;
  if (site != kNoSite) {
    const Inside inside;
    freed_of(site, before);
  }
  tell_allocated(moved, bytes, caller);
  return moved;
}

void* reallocarray(void* object, std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) return errno = ENOMEM, nullptr;
  return realloc(object, all);
}

void free(void* object) { give_back(object); }

void* memalign(std::size_t alignment, std::size_t bytes) {
  void* const object = __libc_memalign(alignment, bytes);
  tell_allocated(object, bytes, FARHEAP_CALLER);
  return object;
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  void* const object = __libc_memalign(alignment, bytes);
  tell_allocated(object, bytes, FARHEAP_CALLER);
  return object;
}

int posix_memalign(void** into, std::size_t alignment, std::size_t bytes) {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int error = errno;
  void* const object = __libc_memalign(alignment, bytes);
  errno = error;
  if (object == nullptr) return ENOMEM;
  tell_allocated(object, bytes, FARHEAP_CALLER);
  *into = object;
  return 0;
}

void* valloc(std::size_t bytes) {
  void* const object = __libc_memalign(kPageBytes, bytes);
  tell_allocated(object, bytes, FARHEAP_CALLER);
  return object;
}

void* pvalloc(std::size_t bytes) {
  void* const object = __libc_memalign(kPageBytes, (bytes + kPageBytes - 1) / kPageBytes * kPageBytes);
  tell_allocated(object, bytes, FARHEAP_CALLER);
  return object;
}

void* mmap(void* where, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  return map(where, bytes, protection, flags, file, offset, FARHEAP_CALLER);
}

void* mmap64(void* where, std::size_t bytes, int protection, int flags, int file, off64_t offset) noexcept {
  return map(where, bytes, protection, flags, file, offset, FARHEAP_CALLER);
}

int munmap(void* memory, std::size_t bytes) noexcept {
  if (!is_inside()) {
    const Inside inside;
    freed(memory, (bytes + kPageBytes - 1) / kPageBytes * kPageBytes);
  }
  return static_cast<int>(syscall(SYS_munmap, memory, bytes));
}
}

void* operator new(std::size_t bytes) { return get_or_throw(bytes, 0, FARHEAP_CALLER); }
void* operator new[](std::size_t bytes) { return get_or_throw(bytes, 0, FARHEAP_CALLER); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return get_or_throw(bytes, static_cast<std::size_t>(alignment), FARHEAP_CALLER);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return get_or_throw(bytes, static_cast<std::size_t>(alignment), FARHEAP_CALLER);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return get_or_nothing(bytes, 0, FARHEAP_CALLER);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return get_or_nothing(bytes, 0, FARHEAP_CALLER);
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return get_or_nothing(bytes, static_cast<std::size_t>(alignment), FARHEAP_CALLER);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return get_or_nothing(bytes, static_cast<std::size_t>(alignment), FARHEAP_CALLER);
}
void operator delete(void* object) noexcept { give_back(object); }
void operator delete[](void* object) noexcept { give_back(object); }
void operator delete(void* object, std::size_t) noexcept { give_back(object); }
void operator delete[](void* object, std::size_t) noexcept { give_back(object); }
void operator delete(void* object, std::align_val_t) noexcept { give_back(object); }
void operator delete[](void* object, std::align_val_t) noexcept { give_back(object); }
void operator delete(void* object, std::size_t, std::align_val_t) noexcept { give_back(object); }
void operator delete[](void* object, std::size_t, std::align_val_t) noexcept { give_back(object); }
void operator delete(void* object, const std::nothrow_t&) noexcept { give_back(object); }
void operator delete[](void* object, const std::nothrow_t&) noexcept { give_back(object); }
void operator delete(void* object, std::align_val_t, const std::nothrow_t&) noexcept { give_back(object); }
void operator delete[](void* object, std::align_val_t, const std::nothrow_t&) noexcept { give_back(object); }
