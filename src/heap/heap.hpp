// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The allocator. Bookkeeping is apart from the data: no call but allocate_zeroed() and reallocate() ever touches
// the memory of an object, which may be far away.
//
//   thread cache   an array of pointers per size class          no lock
//   bin            slabs of one size class, in one of a few arenas   a lock each
//   chunk pool     granules of 64 KiB out of chunks of 2 MiB     one lock
//   large runs     objects above 32 KiB                          one lock
//   page space     where all addresses come from
//
// Results are aligned to 16 bytes for 16 bytes and more. A wrong free() is found where that is cheap (when slots
// go back to their bin, not when they enter the cache) and stops the program with the pointer in the message.
//
// A heap may live in a kept segment: memory that outlives the process and comes back at the same address. Then all its
// books come from a source in that segment, the object itself lies there too and is never destroyed, and the books
// are as they were as soon as it is attached. A gate makes the books rest while the segment is committed: every change
// of them passes it, but for those of the thread caches' fast paths, which are in order at any instant (see
// thread_cache.hpp). book_layout.hpp says what is stored where.
//
// Thread-safety: any thread. Several heaps may live in one process; 1,024 at a time have thread caches
// (thread_bindings.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/gate.hpp"
#include "base/metadata_source.hpp"
#include "base/mutex.hpp"
#include "heap/bin.hpp"
#include "heap/chunk_pool.hpp"
#include "heap/heap_map.hpp"
#include "heap/large_runs.hpp"
#include "heap/metadata.hpp"
#include "heap/size_classes.hpp"
#include "heap/statistics.hpp"
#include "heap/thread_bindings.hpp"
#include "heap/thread_cache.hpp"
#include "segment/page_space.hpp"

namespace farheap::heap {

class Heap {
 public:
  // Never calls malloc; may be placement-constructed before main.
  // Requires: the space outlives the heap, and its base and capacity are multiples of 2 MiB.
  // Of large objects that were freed, `most_waiting` bytes keep their memory for the next ones.
  // The source is asked, and the space is called, from inside the gate: neither may pass it again.
  // A small heap begins fewer slabs and keeps fewer slots in thread caches; its threads wait more for each other.
  explicit Heap(segment::PageSpace& space, std::size_t most_waiting = 8 * base::kMiB,
                base::MetadataSource& source = base::mapped_tables(), base::Gate* gate = nullptr,
                bool is_small = false) noexcept;
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  // Objects are not given back to the space. Requires: no other thread uses the heap, now or later.
  ~Heap();

  // For a heap whose bytes came back from an earlier process, as they were while the gate was closed. What the threads
  // of that process had in their caches is free again; an object that one of them was about to get or had just given
  // up stays allocated.
  // Requires: all lies at the same addresses as then, or was moved; check() found nothing, or the bytes are known to be
  // sound.
  void attach(segment::PageSpace& space, base::MetadataSource& source, base::Gate* gate) noexcept;
  // Before attach() or check(), when it lies elsewhere than where it was written: its books are put right. What points
  // into it from outside of the books is the owner's business. Requires: the books are sound.
  void move(const base::AddressShift& shift) noexcept;
  // The end of a kept heap's use by this process: threads that used it may end later, when its memory is gone.
  // Requires: no thread uses the heap now or later (one may be ending), and the gate is open.
  void detach() noexcept;

  // Instead of attach(), for bytes that are only read: every allocation returns nullptr. Requires: as for attach(), and
  // what this changes is this process's own.
  void attach_to_read() noexcept;
  // For forget_heap_in_child(), in a forked child that has no such heap any more. -1: it has no thread caches.
  [[nodiscard]] int number() const noexcept { return has_thread_caches_ ? number_ : -1; }

  // Whether the books agree with each other; if not, why says where. May be called before attach(), and of a kept heap
  // that may be damaged: nothing outside of `kept` is read. Calls malloc().
  // Requires: no other use of the heap meanwhile, and not by a thread of this heap's as its malloc().
  [[nodiscard]] bool check(std::string& why, const KeptRange& kept = {}) const;

  // Of a kept heap in use, while the gate is closed: what the books say of themselves, and the records of slabs on
  // pages that changed. keep_changed() leaves those pages in the list (as numbers from kept.begin on) that may have.
  using KeepChanged = std::function<void(std::vector<std::uint64_t>& pages)>;
  [[nodiscard]] bool check_changed(std::string& why, const KeptRange& kept, const KeepChanged& keep_changed) const;

  // False if the memory for the books could not be had; then every allocation returns nullptr.
  [[nodiscard]] bool usable() const noexcept { return usable_; }

  // nullptr when there is no room. Zero bytes get an object of their own.
  [[nodiscard]] void* allocate(std::size_t bytes) noexcept;
  [[nodiscard]] void* allocate_zeroed(std::size_t bytes) noexcept;
  // Requires: alignment is a power of two.
  [[nodiscard]] void* allocate_aligned(std::size_t bytes, std::size_t alignment) noexcept;
  // In place where it can be; otherwise the contents move. nullptr, with the object unchanged, when there is no room.
  // Requires: pointer is nullptr or came from this heap.
  [[nodiscard]] void* reallocate(void* pointer, std::size_t bytes) noexcept;
  void free(void* pointer) noexcept;
  // Requires: bytes is what was asked for, or up to usable_size(); the alignment was not more than 16.
  void free_sized(void* pointer, std::size_t bytes) noexcept;

  // 0 for nullptr. Stops the program if no object starts there (as far as that is cheap to see).
  [[nodiscard]] std::size_t usable_size(const void* pointer) const noexcept;
  // Where an address lies within an object: the object and its usable bytes; {nullptr, 0} where no large object and no
  // slab lies. A slot that is free is told as if it were not. Requires: what lies there is not freed meanwhile.
  struct Extent {
    const void* begin;
    std::size_t bytes;
  };
  [[nodiscard]] Extent object_at(const void* within) const noexcept;
  // Whether the address lies in the heap's range.
  [[nodiscard]] bool owns(const void* pointer) const noexcept {
    return map_.offset_of(pointer) < map_.capacity_bytes();
  }

  // Gives this thread's cache back; what the thread does afterwards works without one. Happens by itself when a
  // thread ends.
  void thread_exit() noexcept;
  // Gives this thread's cache back; it fills again by use.
  void flush_thread_cache() noexcept;
  // Gives all memory back that waits to be used again, but for what is in thread caches.
  void purge() noexcept;

  [[nodiscard]] Statistics statistics() noexcept;

  // Calls visit(context, object, usable bytes) for every object, by address within its kind. Slots in thread caches
  // are reported too: they count as used (see thread_cache.hpp). All other use of the heap waits meanwhile, and so does
  // who closes the gate.
  // Requires: visit does not use this heap.
  using Visit = void (*)(void* context, void* object, std::size_t bytes);
  void for_each_object(Visit visit, void* context) noexcept;
  // The same of a kept heap that nobody uses: nothing is locked or changed, and what threads had in their caches is
  // left out. Requires: check() found nothing.
  void visit_at_rest(const std::function<void(const void* object, std::size_t bytes)>& visit) const;

  // Around fork(), before the space's own locks are taken. The gate is closed meanwhile. What the other threads had in
  // their caches is lost to the child: they may have been in the middle of changing them.
  // Not analysed, because clang cannot follow locks that are taken in a loop.
  void lock_for_fork() noexcept FARHEAP_NO_THREAD_SAFETY_ANALYSIS;
  void unlock_after_fork_parent() noexcept FARHEAP_NO_THREAD_SAFETY_ANALYSIS;
  void unlock_after_fork_child() noexcept;

 private:
  friend struct BookLayout;
  friend class BookCheck;
  static constexpr unsigned kMostArenas = 32;

  [[nodiscard]] void* allocate_slow(std::size_t bytes) noexcept;
  [[nodiscard]] LargeRuns::Run obtain_large(std::size_t bytes, std::size_t alignment) noexcept;
  [[nodiscard]] void* allocate_small_slow(unsigned size_class) noexcept;
  void free_slow(void* pointer) noexcept;
  void free_small_slow(void* pointer, unsigned size_class) noexcept;
  [[nodiscard]] void* move(void* pointer, std::size_t old_bytes, std::size_t bytes) noexcept;

  [[nodiscard]] Bin& bin(unsigned arena, unsigned size_class) const noexcept {
    return bins_[arena * kClassCount + size_class];
  }
  void put_back(unsigned size_class, void** slots, unsigned count) noexcept;
  [[nodiscard]] std::uint32_t most_cached(unsigned size_class) const noexcept;

  void bind_threads() noexcept;
  void unbind_threads() noexcept;
  [[nodiscard]] ThreadCache* this_thread() noexcept;
  [[nodiscard]] ThreadCache* find_cache() const noexcept;
  [[nodiscard]] ThreadCache* make_cache() noexcept;
  [[nodiscard]] std::size_t threads() const noexcept FARHEAP_REQUIRES(threads_mutex_);
  [[nodiscard]] bool prepare(ThreadCache& cache) noexcept FARHEAP_REQUIRES(threads_mutex_);
  void look_for_idle(ThreadCache& cache) noexcept;
  void flush(ThreadCache& cache) noexcept;
  void retire(ThreadCache& cache) noexcept;

  void walk_slabs(Visit visit, void* context) const noexcept;
  void walk_large(Visit visit, void* context) const noexcept;

  // Read by every call.
  HeapMap map_;
  std::uint64_t id_;
  int place_ = 0;  // where in t_bindings a thread's binding is at hand
  bool has_thread_caches_ = false;
  bool usable_ = false;
  std::uint16_t number_ = 0;  // of this heap in this process

  unsigned arenas_ = 0;
  Bin* bins_ = nullptr;
  ChunkPool pool_;
  LargeRuns large_;

  base::Gate* gate_ = nullptr;
  bool is_small_ = false;
  [[maybe_unused]] std::byte unused_[7] = {};  // of the books' layout
  base::Mutex threads_mutex_;
  MetadataArena metadata_ FARHEAP_GUARDED_BY(threads_mutex_);
  ThreadCache* living_ FARHEAP_GUARDED_BY(threads_mutex_) = nullptr;
  ThreadCache* spare_ FARHEAP_GUARDED_BY(threads_mutex_) = nullptr;
  unsigned arena_threads_[kMostArenas] FARHEAP_GUARDED_BY(threads_mutex_) = {};
};

inline void* Heap::allocate(std::size_t bytes) noexcept {
  const ThreadBinding& mine = t_bindings[place_];
  if (bytes <= kLargestSmall && mine.heap_id == id_) [[likely]] {
    if (void* slot = mine.cache->bins[class_of(bytes)].pop()) [[likely]]
      return slot;
  }
  return allocate_slow(bytes);
}

inline void Heap::free(void* pointer) noexcept {
  std::size_t offset = map_.offset_of(pointer);
  const ThreadBinding& mine = t_bindings[place_];
  if (offset < map_.capacity_bytes() && mine.heap_id == id_) [[likely]] {
    unsigned size_class = map_.class_at(offset);
    // Class 0 (no slab here) has no room in any cache.
    if (mine.cache->bins[size_class].push(pointer)) [[likely]]
      return;
  }
  free_slow(pointer);
}

inline void Heap::free_sized(void* pointer, std::size_t) noexcept {
  // The class of the address is at hand as fast as that of the size, and cannot be wrong.
  free(pointer);
}

}  // namespace farheap::heap
