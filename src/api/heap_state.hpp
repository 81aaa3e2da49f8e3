// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a farheap::Heap is made of, for the files that have its calls: kept_heap.cpp (opening, and what is done to
// closed heaps), kept_heap_versions.cpp, kept_heap_objects.cpp.
//
// Thread-safety: see farheap/heap.hpp; what guards what stands at the members.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <farheap/farheap.hpp>
#include <memory>
#include <memory_resource>
#include <new>
#include <string_view>

#include "api/commit_holds.hpp"
#include "api/directory.hpp"
#include "api/directory_watch.hpp"
#include "api/forked_children.hpp"
#include "api/heap_lock.hpp"
#include "api/heap_place.hpp"
#include "api/open_heaps.hpp"
#include "base/mutex.hpp"
#include "segment/kept_segment.hpp"

namespace farheap {

// What the root of a kept segment holds (docs/formats.md, "A heap"). The heap's own books come first: all of it is
// found again by the segment's address alone.
struct HeapRoot {
  heap::Heap books;
  alignas(64) api::Directory directory;
  alignas(64) std::byte resource[64];  // a Resource, made anew by every process
  const char* description = nullptr;   // of the heap; ended by a zero

  HeapRoot(segment::PageSpace& space, base::MetadataSource& tables, base::Gate& gate)
      : books(space, kMostWaiting, tables, &gate) {}
  // Freed large objects that keep their pages: they would be committed. None.
  static constexpr std::size_t kMostWaiting = 0;
};
static_assert(sizeof(HeapRoot) <= segment::KeptBooks::kRootBytes);

namespace api {

// At its place in the heap's root.
class Resource final : public std::pmr::memory_resource {
 public:
  Resource(HeapRoot& root, api::CommitHolds& holds, const segment::KeptSegment& segment)
      : root_(root), holds_(holds), segment_(segment) {}
  // Says why an allocation failed: HeapFull, ReadOnlyHeap.
  [[noreturn]] void refuse(std::size_t bytes) const;
  // By way of the heap's root: for what lives in the heap and has nothing else.
  [[nodiscard]] api::CommitHolds& commit_holds() const { return holds_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* const memory = root_.books.allocate_aligned(bytes, alignment);
    if (memory == nullptr) refuse(bytes);
    return memory;
  }
  void do_deallocate(void* pointer, std::size_t, std::size_t) override { root_.books.free(pointer); }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  HeapRoot& root_;
  api::CommitHolds& holds_;
  const segment::KeptSegment& segment_;
};
static_assert(sizeof(Resource) <= sizeof(HeapRoot::resource));

}  // namespace api

struct Heap::State final : api::ForkWatcher {
  State(api::HeapPlace its_place, std::unique_ptr<api::HeapLock> its_lock)
      : place(std::move(its_place)), lock(std::move(its_lock)) {}
  ~State() {
    watch_forks(false);
    if (owner != getpid()) {  // in a forked child nothing of it is there; all is the parent's
      (void)segment.release();
      if (lock != nullptr) lock->leave_to_parent();
      return;
    }
    if (segment) api::OpenHeaps::all().remove(*segment);
    if (attached) root().books.detach();
  }
  [[nodiscard]] Status commit(segment::KeptSegment::Kind kind, std::string_view name);
  // The same, and a full disk is told as the store tells it. Not analysed: the segment calls back when the directory is
  // to be let go of.
  [[nodiscard]] Status try_commit(segment::KeptSegment::Kind kind,
                                  std::string_view name) FARHEAP_NO_THREAD_SAFETY_ANALYSIS;
  [[nodiscard]] Error no_room(Error error) const;
  // Requires: the allocator's books are at rest.
  [[nodiscard]] Status check_own_books() FARHEAP_REQUIRES_SHARED(directory);
  // Throws ReadOnlyHeap if that is what it is.
  void must_be_writable(const char* what, std::string_view name) const;
  [[nodiscard]] Status put_virtual_tables_right();
  void is_forked_child() noexcept override;
  [[nodiscard]] Status read_in_child();
  [[nodiscard]] Status ready_to_read();
  [[nodiscard]] heap::KeptRange range() const { return {segment->base(), segment->base() + segment->capacity_bytes()}; }
  [[nodiscard]] HeapRoot& root() const { return *reinterpret_cast<HeapRoot*>(segment->root()); }

  api::HeapPlace place;
  std::unique_ptr<api::HeapLock> lock;
  std::unique_ptr<segment::KeptSegment> segment;
  base::Gate gate;                      // closed: the allocator's books are at rest
  api::CommitHolds holds;               // inside: no commit cuts
  mutable base::SharedMutex directory;  // guards root().directory, too
  api::DirectoryWatch watch FARHEAP_GUARDED_BY(directory);
  bool attached = false;
  pid_t owner = getpid();
  int number = -1;  // of the allocator, for its threads
  HeapOptions options;

  enum class How { kCreate, kOpen, kRead, kCheck };  // kCheck: as kRead, with the allocator's books
  static Result<Heap> make(std::string_view uri, const HeapOptions& options, How how);
  // Requires: the lock is held, by the state or by whoever calls.
  static Result<Heap> make_new(std::string_view uri, const HeapOptions& options,
                               segment::KeptSegment::Settings& settings, std::chrono::milliseconds wait);
  static Result<Heap> start(std::unique_ptr<State> state, std::unique_ptr<Store> store, const HeapOptions& options,
                            How how, const segment::KeptSegment::Settings& settings);
};

}  // namespace farheap
