// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C library's allocation functions. Their rules (errno, zero sizes, alignments) are kept here; the work is the
// heap's. The program has them under the C library's other names, too: whoever counts in a malloc() of his own goes on
// by __libc_malloc(), and gives back by free().
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "base/units.hpp"
#include "preload/runtime.hpp"

#define FARHEAP_EXPORT extern "C" __attribute__((visibility("default")))

namespace farheap::preload {

// The loader's records (libraries, thread-local storage) stay in memory: pthread_create() reads them, and so the
// runtime's own threads would fault when they are started, with nobody there to serve it.
static inline heap::Heap& current_heap(const void* caller) {
  Runtime* made = runtime();
  if (made == nullptr) return early_arena();
  return is_loader(*made, caller) ? made->arena : heap_now(*made);
}

// By address, not by flag: the runtime frees what the program allocated, and the other way round.
static inline heap::Heap& heap_of(const void* pointer) {
  Runtime* made = g_runtime.load(std::memory_order_acquire);
  if (made != nullptr && made->program->owns(pointer)) [[likely]] {
    if (heap::HeapRegions* const regions = regions_now()) [[unlikely]]
      return regions->heap_of(pointer);
    return *made->program;
  }
  if (made != nullptr && !made->arena.owns(pointer)) return *made->program;  // nobody's: it will say so
  return early_arena();
}

static inline void* or_enomem(void* pointer) {
  if (pointer == nullptr) [[unlikely]]
    errno = ENOMEM;
  return pointer;
}

static bool is_power_of_two(size_t value) { return value != 0 && (value & (value - 1)) == 0; }

// Where new memory comes from, and who asked for it.
struct Call {
  heap::Heap& heap;
  Caller caller;
};
#define THIS_CALL \
  Call { current_heap(__builtin_return_address(0)), FARHEAP_CALLER }

static inline void* observed(const Call& call, void* pointer, size_t bytes) {
  if (profile::AllocationObserver* const observer = observer_now()) [[unlikely]]
    observer->allocated(pointer, bytes, call.caller.address, call.caller.frame);
  return pointer;
}

static heap::Heap& heap_among(heap::HeapRegions& regions, const Call& call, size_t bytes) {
  if (bytes > heap::kLargestSmall || &call.heap != g_runtime.load(std::memory_order_relaxed)->program) return call.heap;
  plan::PlannedRegions* const planned = g_planned_regions.load(std::memory_order_acquire);
  regions.look_at_spare();
  return regions.heap_for(
      planned != nullptr ? planned->region_of(call.caller.address, call.caller.frame) : heap::HeapRegions::kCommon,
      bytes);
}

// Where a new object of so many bytes is to lie.
static inline heap::Heap& heap_for(const Call& call, size_t bytes) {
  if (heap::HeapRegions* const regions = regions_now()) [[unlikely]]
    return heap_among(*regions, call, bytes);
  return call.heap;
}

static inline void* allocate(const Call& call, size_t bytes) {
  return observed(call, or_enomem(heap_for(call, bytes).allocate(bytes)), bytes);
}

static inline void give_back(void* pointer) {
  if (pointer == nullptr) return;
  const int before = errno;  // free() keeps errno (POSIX.1-2024)
  if (profile::AllocationObserver* const observer = observer_now()) [[unlikely]]
    observer->freed(pointer);
  heap_of(pointer).free(pointer);
  if (heap::HeapRegions* const regions = regions_now()) [[unlikely]]
    regions->look_at_spare();
  errno = before;
}

static inline void* allocate_zeroed(const Call& call, size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) return or_enomem(nullptr);
  return observed(call, or_enomem(heap_for(call, total).allocate_zeroed(total)), total);
}

static inline void* reallocate_where_it_lies(void* pointer, size_t bytes) {
  heap::HeapRegions* const regions = regions_now();
  if (regions != nullptr && g_runtime.load(std::memory_order_relaxed)->program->owns(pointer)) [[unlikely]]
    return or_enomem(regions->reallocate(pointer, bytes));
  return or_enomem(heap_of(pointer).reallocate(pointer, bytes));
}

// What cannot grow stays, and is taken for an object of this call.
static void* reallocate_observed(profile::AllocationObserver& observer, const Call& call, void* pointer, size_t bytes) {
  observer.freed(pointer);
  void* const moved = reallocate_where_it_lies(pointer, bytes);
  if (moved != nullptr) return observed(call, moved, bytes);
  const int why = errno;
  observer.allocated(pointer, heap_of(pointer).usable_size(pointer), call.caller.address, call.caller.frame);
  errno = why;
  return nullptr;
}

static inline void* reallocate(const Call& call, void* pointer, size_t bytes) {
  if (pointer == nullptr) return allocate(call, bytes);
  if (bytes == 0) {  // as the GNU library does
    give_back(pointer);
    return nullptr;
  }
  if (profile::AllocationObserver* const observer = observer_now()) [[unlikely]]
    return reallocate_observed(*observer, call, pointer, bytes);
  return reallocate_where_it_lies(pointer, bytes);
}

static inline void* allocate_aligned(const Call& call, size_t alignment, size_t bytes) {
  if (alignment > SIZE_MAX / 2 + 1) {
    errno = EINVAL;
    return nullptr;
  }
  while (!is_power_of_two(alignment)) alignment = alignment == 0 ? 1 : alignment + (alignment & -alignment);
  // A small object is the more so with its alignment: what is large is the common heap's.
  const size_t most = alignment <= heap::kLargestSmall && bytes <= heap::kLargestSmall
                          ? base::round_up(bytes == 0 ? 1 : bytes, alignment)
                          : SIZE_MAX;
  return observed(call, or_enomem(heap_for(call, most).allocate_aligned(bytes, alignment)), bytes);
}

static int allocate_aligned_into(void** result, const Call& call, size_t alignment, size_t bytes) {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int before = errno;
  void* pointer = allocate_aligned(call, alignment, bytes);
  errno = before;
  if (pointer == nullptr) return ENOMEM;
  *result = pointer;
  return 0;
}

static void* allocate_pages(const Call& call, size_t bytes) {
  constexpr size_t kPage = base::kPageBytes;
  if (bytes > SIZE_MAX - kPage) return or_enomem(nullptr);
  return allocate_aligned(call, kPage, base::round_up(bytes == 0 ? 1 : bytes, kPage));
}

static size_t usable_size(void* pointer) { return pointer == nullptr ? 0 : heap_of(pointer).usable_size(pointer); }

void* allocate_for(const Caller& caller, size_t bytes) {
  return allocate(Call{current_heap(caller.address), caller}, bytes);
}
void* allocate_aligned_for(const Caller& caller, size_t alignment, size_t bytes) {
  return allocate_aligned(Call{current_heap(caller.address), caller}, alignment, bytes);
}

}  // namespace farheap::preload

using namespace farheap::preload;

// NOLINTBEGIN(bugprone-reserved-identifier): the C library's own names

FARHEAP_EXPORT void* malloc(size_t bytes) { return allocate(THIS_CALL, bytes); }
FARHEAP_EXPORT void* __libc_malloc(size_t bytes) { return allocate(THIS_CALL, bytes); }

FARHEAP_EXPORT void free(void* pointer) { give_back(pointer); }
FARHEAP_EXPORT void __libc_free(void* pointer) { give_back(pointer); }
FARHEAP_EXPORT void cfree(void* pointer) { give_back(pointer); }

FARHEAP_EXPORT void* calloc(size_t count, size_t bytes) { return allocate_zeroed(THIS_CALL, count, bytes); }
FARHEAP_EXPORT void* __libc_calloc(size_t count, size_t bytes) { return allocate_zeroed(THIS_CALL, count, bytes); }

FARHEAP_EXPORT void* realloc(void* pointer, size_t bytes) { return reallocate(THIS_CALL, pointer, bytes); }
FARHEAP_EXPORT void* __libc_realloc(void* pointer, size_t bytes) { return reallocate(THIS_CALL, pointer, bytes); }
FARHEAP_EXPORT void* reallocarray(void* pointer, size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) return or_enomem(nullptr);
  return reallocate(THIS_CALL, pointer, total);
}

FARHEAP_EXPORT void* memalign(size_t alignment, size_t bytes) { return allocate_aligned(THIS_CALL, alignment, bytes); }
FARHEAP_EXPORT void* __libc_memalign(size_t alignment, size_t bytes) {
  return allocate_aligned(THIS_CALL, alignment, bytes);
}
// As the GNU library before 2.38; later ones refuse what is no power of two.
FARHEAP_EXPORT void* aligned_alloc(size_t alignment, size_t bytes) {
  return allocate_aligned(THIS_CALL, alignment, bytes);
}
FARHEAP_EXPORT int posix_memalign(void** result, size_t alignment, size_t bytes) {
  return allocate_aligned_into(result, THIS_CALL, alignment, bytes);
}

FARHEAP_EXPORT void* valloc(size_t bytes) { return allocate_aligned(THIS_CALL, farheap::base::kPageBytes, bytes); }
FARHEAP_EXPORT void* __libc_valloc(size_t bytes) {
  return allocate_aligned(THIS_CALL, farheap::base::kPageBytes, bytes);
}
FARHEAP_EXPORT void* pvalloc(size_t bytes) { return allocate_pages(THIS_CALL, bytes); }
FARHEAP_EXPORT void* __libc_pvalloc(size_t bytes) { return allocate_pages(THIS_CALL, bytes); }

FARHEAP_EXPORT size_t malloc_usable_size(void* pointer) { return usable_size(pointer); }

FARHEAP_EXPORT int malloc_trim(size_t) {
  if (Runtime* made = g_runtime.load(std::memory_order_acquire)) made->program->purge();
  if (farheap::heap::HeapRegions* const regions = regions_now()) regions->purge();
  return 1;
}

// For this library's own code (--wrap in CMakeLists.txt), and what of the C++ library is in it.
#define FARHEAP_OWN extern "C" __attribute__((visibility("hidden")))

FARHEAP_OWN void* __wrap_malloc(size_t bytes) { return allocate(THIS_CALL, bytes); }
FARHEAP_OWN void __wrap_free(void* pointer) { give_back(pointer); }
FARHEAP_OWN void* __wrap_calloc(size_t count, size_t bytes) { return allocate_zeroed(THIS_CALL, count, bytes); }
FARHEAP_OWN void* __wrap_realloc(void* pointer, size_t bytes) { return reallocate(THIS_CALL, pointer, bytes); }
FARHEAP_OWN void* __wrap_memalign(size_t alignment, size_t bytes) {
  return allocate_aligned(THIS_CALL, alignment, bytes);
}
FARHEAP_OWN void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return allocate_aligned(THIS_CALL, alignment, bytes);
}
FARHEAP_OWN int __wrap_posix_memalign(void** result, size_t alignment, size_t bytes) {
  return allocate_aligned_into(result, THIS_CALL, alignment, bytes);
}

// NOLINTEND(bugprone-reserved-identifier)
