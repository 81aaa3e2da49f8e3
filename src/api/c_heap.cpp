// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface to heaps: farheap::Heap behind an opaque handle. Nothing is thrown across it.
#include <farheap/farheap.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <farheap/farheap.hpp>
#include <new>
#include <string>

struct farheap_heap {
  farheap::Heap heap;
};
struct farheap_pause {
  farheap::Heap::Pause pause;
};

namespace {

thread_local std::string t_last_error;  // NOLINT(cert-err58-cpp): an empty string allocates nothing
thread_local farheap_error t_last_error_code = FARHEAP_DONE;

// Without memory for the words there is the number alone.
int fail_with(const farheap::Error& error) noexcept {
  try {
    t_last_error = error.message();
  } catch (...) {
    t_last_error.clear();
  }
  t_last_error_code = static_cast<farheap_error>(static_cast<int>(error.code) + 1);
  return t_last_error_code;
}

// What C++ throws becomes an error: no room, or another type.
template <class Call>
int guarded(const char* what, const char* name, const Call& call) {
  try {
    return call();
  } catch (const farheap::ReadOnlyHeap& error) {
    return fail_with({farheap::ErrorCode::kInvalidArgument, what, name, error.what(), ""});
  } catch (const farheap::HeapFull& error) {
    return fail_with({farheap::ErrorCode::kNoSpace, what, name, error.what(), ""});
  } catch (const std::bad_alloc&) {
    return fail_with({farheap::ErrorCode::kNoSpace, what, name, "there is no memory", ""});
  } catch (const std::exception& error) {
    return fail_with({farheap::ErrorCode::kConflict, what, name, error.what(), ""});
  }
}

template <class Call>
int outcome(const char* on, const Call& call) {
  return guarded("cannot do that", on, [&] {
    const farheap::Status status = call();
    return status ? FARHEAP_DONE : fail_with(status.error());
  });
}

void tell_of_reading(const farheap::Heap& heap) {
  fail_with({farheap::ErrorCode::kInvalidArgument, "cannot allocate in the heap", heap.uri(),
             "it was opened for reading", "open it with FARHEAP_OPEN"});
}

using Byte = unsigned char;

}  // namespace

static_assert(static_cast<int>(farheap::ErrorCode::kInvalidArgument) + 1 == FARHEAP_INVALID_ARGUMENT &&
              static_cast<int>(farheap::ErrorCode::kIo) + 1 == FARHEAP_IO);

const char* farheap_last_error(void) { return t_last_error.c_str(); }
farheap_error farheap_last_error_code(void) { return t_last_error_code; }

farheap_heap* farheap_heap_open(const char* uri, farheap_open_how how, uint64_t memory) {
  const farheap_options options{sizeof options, memory, 0, 0};
  return farheap_heap_open_with(uri, how, &options);
}

farheap_heap* farheap_heap_open_with(const char* uri, farheap_open_how how, const farheap_options* wanted) {
  farheap_options given{};
  // A caller of another version knows fewer fields, or more; those have their usual values.
  if (wanted != nullptr) std::memcpy(&given, wanted, std::min(wanted->structure_bytes, sizeof given));
  farheap::HeapOptions options{
      .memory = given.memory,
      .capacity = given.capacity,
      .wait = given.wait_ms == 0 ? std::nullopt : std::optional(std::chrono::milliseconds(given.wait_ms))};
  if (given.mode != 0) options.mode = given.mode;
  const auto open = [&]() -> farheap::Result<farheap::Heap> {
    switch (how) {
      case FARHEAP_OPEN: return farheap::Heap::open(uri, options);
      case FARHEAP_CREATE: return farheap::Heap::create(uri, options);
      case FARHEAP_OPEN_OR_CREATE: return farheap::Heap::open_or_create(uri, options);
      case FARHEAP_READ_ONLY: return farheap::Heap::open_read_only(uri, options);
    }
    return farheap::fail(farheap::ErrorCode::kInvalidArgument, "cannot open the heap", uri,
                         "there is no such way to open it", "see farheap_open_how");
  };
  farheap_heap* handle = nullptr;
  (void)guarded("cannot open the heap", uri, [&] {
    auto opened = open();
    if (!opened) return fail_with(opened.error());
    handle = new farheap_heap{std::move(*opened)};
    return 0;
  });
  return handle;
}

void farheap_heap_close(farheap_heap* heap) { delete heap; }
int farheap_heap_remove(const char* uri) {
  return outcome(uri, [&] { return farheap::Heap::remove(uri); });
}
int farheap_heap_roll_back(const char* uri) {
  return outcome(uri, [&] { return farheap::Heap::roll_back(uri); });
}
int farheap_heap_copy(const char* from, const char* to) {
  return outcome(from, [&] { return farheap::Heap::copy(from, to); });
}
int farheap_heap_check(const char* uri) {
  return outcome(uri, [&] { return farheap::Heap::check(uri); });
}

void* farheap_heap_allocate(farheap_heap* heap, size_t bytes, size_t alignment) {
  void* const memory = heap->heap.allocate(bytes, alignment == 0 ? 16 : alignment);
  if (memory == nullptr && heap->heap.is_read_only()) tell_of_reading(heap->heap);
  return memory;
}
void* farheap_heap_reallocate(farheap_heap* heap, void* object, size_t bytes) {
  return heap->heap.reallocate(object, bytes);
}
void farheap_heap_deallocate(farheap_heap* heap, void* object) { heap->heap.deallocate(object); }
int farheap_heap_owns(farheap_heap* heap, const void* address) { return heap->heap.owns(address) ? 1 : 0; }

void* farheap_heap_construct(farheap_heap* heap, const char* name, size_t bytes) {
  constexpr char kWhat[] = "cannot make a named object";
  void* object = nullptr;
  (void)guarded(kWhat, name, [&] {
    object = heap->heap.construct<Byte>(name)[bytes](Byte{0});
    if (object != nullptr) return 0;
    return fail_with({farheap::ErrorCode::kConflict, kWhat, name, "there is one of that name", "destroy it first"});
  });
  return object;
}

void* farheap_heap_named(farheap_heap* heap, const char* name, size_t bytes) {
  constexpr char kWhat[] = "cannot make a named object";
  void* object = nullptr;
  (void)guarded(kWhat, name, [&] {
    (void)heap->heap.construct<Byte>(name)[bytes](Byte{0});
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

int farheap_heap_describe(farheap_heap* heap, const void* object, const char* description) {
  return outcome("the heap", [&] { return heap->heap.describe(object, description); });
}

int farheap_heap_for_each(farheap_heap* heap, farheap_visit visit, void* context) {
  int answer = 0;
  const int failed = guarded("cannot visit the objects", "the heap", [&] {
    heap->heap.for_each_object([&](const farheap::ObjectInfo& one) {
      const farheap_object object{one.name.c_str(),
                                  one.type.c_str(),
                                  one.description.c_str(),
                                  one.address,
                                  one.bytes,
                                  one.length,
                                  static_cast<farheap_object_kind>(one.kind)};
      if (answer == 0) answer = visit(context, &object);
    });
    return 0;
  });
  return failed != 0 ? failed : answer;
}

int farheap_heap_attributes(farheap_heap* heap, const char* name, farheap_visit visit, void* context) {
  struct Search {
    const char* name;
    farheap_visit visit;
    void* context;
    bool found;
  } search{name, visit, context, false};
  const auto is_it = [](void* at, const farheap_object* object) {
    auto& wanted = *static_cast<Search*>(at);
    if (wanted.found || object->kind != FARHEAP_NAMED || std::strcmp(object->name, wanted.name) != 0) return 0;
    wanted.found = true;
    return wanted.visit(wanted.context, object);
  };
  const int answer = farheap_heap_for_each(heap, is_it, &search);
  if (search.found || answer != 0) return answer;
  return fail_with(
      {farheap::ErrorCode::kNotFound, "cannot find the object", name, "the heap has none of that name", ""});
}

int farheap_heap_commit(farheap_heap* heap) {
  return outcome("the heap", [&] { return heap->heap.commit(); });
}
int farheap_heap_snapshot(farheap_heap* heap, const char* name) {
  return outcome("the heap", [&] { return heap->heap.snapshot(name); });
}
int farheap_heap_remove_snapshot(farheap_heap* heap, const char* name) {
  return outcome("the heap", [&] { return heap->heap.remove_snapshot(name); });
}
int farheap_heap_compact(farheap_heap* heap) {
  return outcome("the heap", [&] { return heap->heap.compact(); });
}

int farheap_heap_for_each_version(farheap_heap* heap, farheap_visit_version visit, void* context) {
  return guarded("cannot visit the versions", "the heap", [&] {
    const auto versions = heap->heap.versions();
    if (!versions) return fail_with(versions.error());
    for (const farheap::VersionInfo& one : *versions) {
      const farheap_version version{one.name.c_str(), one.commit, one.time_ns, one.pages};
      if (const int answer = visit(context, &version); answer != 0) return answer;
    }
    return 0;
  });
}

farheap_pause* farheap_heap_pause(farheap_heap* heap) {
  // Memory first: who cannot be told must not be left paused.
  void* const memory = ::operator new(sizeof(farheap_pause), std::nothrow);
  if (memory == nullptr) {
    fail_with({farheap::ErrorCode::kNoSpace, "cannot pause", "the heap", "no memory", ""});
    return nullptr;
  }
  return ::new (memory) farheap_pause{heap->heap.pause()};
}
void farheap_heap_resume(farheap_pause* pause) { delete pause; }

int farheap_heap_statistics(farheap_heap* heap, farheap_statistics* statistics) {
  const farheap::HeapStatistics now = heap->heap.statistics();
  const std::size_t bytes = std::min(statistics->structure_bytes, sizeof *statistics);
  const farheap_statistics found{
      bytes,       now.memory_bytes, now.allocated_bytes, now.segment_bytes, now.capacity_bytes,
      now.objects, now.faults,       now.bytes_read,      now.bytes_written};
  std::memcpy(statistics, &found, bytes);
  return FARHEAP_DONE;
}

int farheap_heap_id(farheap_heap* heap, char id[FARHEAP_ID_BYTES]) {
  return guarded("cannot tell the id", "the heap", [&] {
    const std::string text = heap->heap.id();
    std::memcpy(id, text.c_str(), FARHEAP_ID_BYTES);
    return 0;
  });
}
int farheap_heap_is_read_only(farheap_heap* heap) { return heap->heap.is_read_only() ? 1 : 0; }
