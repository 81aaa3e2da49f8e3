// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The allocator alone as a malloc library: a heap over plain memory, no paging, no store. For the benchmark only;
// what programs are run with is src/preload.
//
// FARHEAP_BENCH_HUGE_PAGES=1 advises huge pages for the whole heap.
//
// Thread-safety: that of malloc.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "heap/heap.hpp"
#include "segment/plain_space.hpp"

namespace {

using farheap::heap::Heap;
using farheap::segment::HugePages;
using farheap::segment::PlainSpace;

struct Runtime {
  PlainSpace space;
  Heap heap;
  explicit Runtime(HugePages huge_pages) : space(farheap::base::kTiB, huge_pages), heap(space) {}
};

alignas(Runtime) constinit unsigned char g_memory[sizeof(Runtime)] = {};
constinit Runtime* g_runtime = nullptr;

// The first call comes from the loader, before there are threads.
[[gnu::noinline]] Heap& start_heap() {
  const char* huge_pages = getenv("FARHEAP_BENCH_HUGE_PAGES");
  bool advise = huge_pages != nullptr && huge_pages[0] == '1';
  g_runtime = ::new (static_cast<void*>(g_memory)) Runtime(advise ? HugePages::kAdvise : HugePages::kNo);
  return g_runtime->heap;
}

inline Heap& heap() { return g_runtime != nullptr ? g_runtime->heap : start_heap(); }

inline void* or_no_memory(void* object) {
  if (object == nullptr) [[unlikely]]
    errno = ENOMEM;
  return object;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void* malloc(std::size_t bytes) { return or_no_memory(heap().allocate(bytes)); }

EXPORTED void free(void* pointer) { heap().free(pointer); }

EXPORTED void* calloc(std::size_t count, std::size_t bytes) {
  std::size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) return or_no_memory(nullptr);
  return or_no_memory(heap().allocate_zeroed(total));
}

EXPORTED void* realloc(void* pointer, std::size_t bytes) {
  if (pointer != nullptr && bytes == 0) {
    heap().free(pointer);
    return nullptr;
  }
  return or_no_memory(heap().reallocate(pointer, bytes));
}

EXPORTED void* memalign(std::size_t alignment, std::size_t bytes) {
  return or_no_memory(heap().allocate_aligned(bytes, alignment));
}

EXPORTED void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }

EXPORTED int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* object = heap().allocate_aligned(bytes, alignment);
  if (object == nullptr) return ENOMEM;
  *out = object;
  return 0;
}

EXPORTED std::size_t malloc_usable_size(void* pointer) { return heap().usable_size(pointer); }
