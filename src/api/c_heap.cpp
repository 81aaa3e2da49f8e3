// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface to heaps: farheap::Heap behind an opaque handle. Nothing is thrown across it.
#include <farheap/farheap.h>

#include <exception>
#include <farheap/farheap.hpp>
#include <new>
#include <string>

struct farheap_heap {
  farheap::Heap heap;
};

namespace {

thread_local std::string t_last_error;  // NOLINT(cert-err58-cpp): an empty string allocates nothing

int fail_with(const farheap::Error& error) {
  t_last_error = error.message();
  return static_cast<int>(error.code) + 1;
}

int outcome(farheap::Status status) { return status ? FARHEAP_DONE : fail_with(status.error()); }

// What C++ throws becomes an error: no room, or another type.
template <class Call>
int guarded(const char* what, const char* name, const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return fail_with({farheap::ErrorCode::kNoSpace, what, name, "the heap is full", "make it with a larger capacity"});
  } catch (const std::exception& error) {
    return fail_with({farheap::ErrorCode::kConflict, what, name, error.what(), ""});
  }
}

using Byte = unsigned char;

}  // namespace

static_assert(static_cast<int>(farheap::ErrorCode::kInvalidArgument) + 1 == FARHEAP_INVALID_ARGUMENT &&
              static_cast<int>(farheap::ErrorCode::kIo) + 1 == FARHEAP_IO);

const char* farheap_last_error(void) { return t_last_error.c_str(); }

farheap_heap* farheap_heap_open(const char* uri, farheap_open_how how, uint64_t memory) {
  const farheap::HeapOptions options{.memory = memory};
  auto opened = [&]() -> farheap::Result<farheap::Heap> {
    switch (how) {
      case FARHEAP_OPEN: return farheap::Heap::open(uri, options);
      case FARHEAP_CREATE: return farheap::Heap::create(uri, options);
      case FARHEAP_OPEN_OR_CREATE: return farheap::Heap::open_or_create(uri, options);
      case FARHEAP_READ_ONLY: return farheap::Heap::open_read_only(uri, options);
    }
    return farheap::fail(farheap::ErrorCode::kInvalidArgument, "cannot open the heap", uri,
                         "there is no such way to open it", "see farheap_open_how");
  }();
  if (!opened) {
    fail_with(opened.error());
    return nullptr;
  }
  auto* const handle = new (std::nothrow) farheap_heap{std::move(*opened)};
  if (handle == nullptr) {
    fail_with({farheap::ErrorCode::kNoSpace, "cannot open the heap", uri, "no memory", ""});
  }
  return handle;
}

void farheap_heap_close(farheap_heap* heap) { delete heap; }
int farheap_heap_remove(const char* uri) { return outcome(farheap::Heap::remove(uri)); }

void* farheap_heap_allocate(farheap_heap* heap, size_t bytes, size_t alignment) {
  return heap->heap.allocate(bytes, alignment == 0 ? 16 : alignment);
}
void* farheap_heap_reallocate(farheap_heap* heap, void* object, size_t bytes) {
  return heap->heap.reallocate(object, bytes);
}
void farheap_heap_deallocate(farheap_heap* heap, void* object) { heap->heap.deallocate(object); }

void* farheap_heap_named(farheap_heap* heap, const char* name, size_t bytes) {
  constexpr char kWhat[] = "cannot make a named object";
  void* object = nullptr;
  (void)guarded(kWhat, name, [&] {
    (void)heap->heap.find_or_construct<Byte>(name)[bytes](Byte{0});
    const auto found = heap->heap.find_array<Byte>(name);
    if (found.length == bytes) {
      object = found.first;
      return 0;
    }
    return fail_with({farheap::ErrorCode::kConflict, kWhat, name,
                      "there is one of " + std::to_string(found.length) + " bytes", "destroy it first"});
  });
  return object;
}

void* farheap_heap_find(farheap_heap* heap, const char* name, size_t* bytes) {
  constexpr char kWhat[] = "cannot find the object";
  farheap::Heap::Found<Byte> found;
  (void)guarded(kWhat, name, [&] {
    found = heap->heap.find_array<Byte>(name);
    if (found.first != nullptr) return 0;
    return fail_with({farheap::ErrorCode::kNotFound, kWhat, name, "the heap has none of that name", ""});
  });
  if (bytes != nullptr) *bytes = found.length;
  return found.first;
}

int farheap_heap_destroy(farheap_heap* heap, const char* name) {
  constexpr char kWhat[] = "cannot destroy the object";
  return guarded(kWhat, name, [&] {
    if (heap->heap.destroy<Byte>(name)) return 0;
    return fail_with({farheap::ErrorCode::kNotFound, kWhat, name, "the heap has none of that name", ""});
  });
}

int farheap_heap_for_each(farheap_heap* heap, farheap_visit visit, void* context) {
  int answer = 0;
  heap->heap.for_each_object([&](const farheap::ObjectInfo& one) {
    if (answer == 0) answer = visit(context, one.name.c_str(), one.address, one.bytes);
  });
  return answer;
}

int farheap_heap_commit(farheap_heap* heap) { return outcome(heap->heap.commit()); }
int farheap_heap_snapshot(farheap_heap* heap, const char* name) { return outcome(heap->heap.snapshot(name)); }
int farheap_heap_remove_snapshot(farheap_heap* heap, const char* name) {
  return outcome(heap->heap.remove_snapshot(name));
}
