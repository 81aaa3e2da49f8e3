// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A heap's beginning and end, and the caches of its threads.
#include <algorithm>
#include <atomic>
#include <new>
#include <numeric>

#include "base/mutex.hpp"
#include "base/processors.hpp"
#include "heap/book_layout.hpp"  // for its assertions
#include "heap/heap.hpp"
#include "heap/thread_bindings.hpp"

namespace farheap::heap {

namespace {

constinit std::atomic<std::uint64_t> g_last_heap_id{0};

constexpr unsigned kSlowCallsPerLook = 16;

// More arenas than processors, so that two threads seldom want the same lock; few, because each has half-full slabs.
[[nodiscard]] unsigned arena_count(unsigned most) { return std::clamp(2 * base::usable_processors(), 2u, most); }

}  // namespace

Heap::Heap(segment::PageSpace& space, std::size_t most_waiting, base::MetadataSource& source, base::Gate* gate,
           bool is_small) noexcept
    : map_(space.base(), space.capacity_bytes(), source),
      id_(g_last_heap_id.fetch_add(1) + 1),
      pool_(space, source),
      large_(space, map_, most_waiting),
      gate_(gate),
      is_small_(is_small),
      metadata_(source) {
  arenas_ = arena_count(is_small ? 2 : kMostArenas);
  bins_ = static_cast<Bin*>(metadata_.obtain(sizeof(Bin) * arenas_ * kClassCount));
  bool aligned = reinterpret_cast<std::uintptr_t>(space.base()) % kChunkBytes == 0 &&
                 space.capacity_bytes() % kChunkBytes == 0 && space.base() != nullptr;
  usable_ = map_.usable() && pool_.usable() && bins_ != nullptr && aligned;
  if (!usable_) return;
  for (unsigned i = 0; i < arenas_ * kClassCount; ++i) ::new (&bins_[i]) Bin;
  bind_threads();
}

Heap::~Heap() { unbind_threads(); }

void Heap::bind_threads() noexcept {
  const int number = claim_number(id_);
  has_thread_caches_ = number >= 0;
  if (!has_thread_caches_) return;
  number_ = static_cast<std::uint16_t>(number);
  place_ = place_of(number);
}

// Afterwards no thread that ends looks at this heap.
void Heap::unbind_threads() noexcept {
  if (!has_thread_caches_) return;
  release_number(number_);
  has_thread_caches_ = false;
}

// Everything that meant something to that process only is made anew, without a look at what it was.
void Heap::attach(segment::PageSpace& space, base::MetadataSource& source, base::Gate* gate) noexcept {
  id_ = g_last_heap_id.fetch_add(1) + 1;
  place_ = 0;
  has_thread_caches_ = false;
  gate_ = gate;
  ::new (&threads_mutex_) base::Mutex;
  threads_mutex_.assume_held();  // at rest
  metadata_.attach(source);
  pool_.attach(space);
  large_.attach(space);
  if (!usable_) return;
  for (unsigned i = 0; i < arenas_ * kClassCount; ++i) bins_[i].attach();
  while (living_ != nullptr) {
    ThreadCache& cache = *living_;
    living_ = cache.next;
    flush(cache);
    cache.next = spare_;
    spare_ = &cache;
  }
  std::fill_n(arena_threads_, kMostArenas, 0u);
  bind_threads();
}

void Heap::move(const base::AddressShift& shift) noexcept {
  threads_mutex_.assume_held();  // at rest
  pool_.assume_at_rest();
  map_.move(shift);
  shift(bins_);
  pool_.move(shift);
  large_.move(shift);
  metadata_.move(shift);
  const std::size_t limit = pool_.chunk_limit() * kChunkBytes;
  for (std::size_t offset = 0, step = 0; offset < limit; offset += step) {
    const unsigned size_class = map_.class_at(offset);
    step = (size_class == 0 ? 1 : kSizeClasses[size_class].granules) * kGranuleBytes;
    if (size_class != 0) shift(map_.slab(map_.slab_at(offset)).free_bits);
  }
  shift(living_);
  shift(spare_);
  for (ThreadCache* first : {living_, spare_}) {
    for (ThreadCache* cache = first; cache != nullptr; cache = cache->next) {
      shift(cache->heap);
      shift(cache->next);
      shift(cache->previous);
      for (CacheBin& bin : cache->bins) {
        shift(bin.slots);
        for (std::uint32_t i = 0; i < bin.count.load(std::memory_order_relaxed); ++i) shift(bin.slots[i]);
      }
    }
  }
}

// With an id that no thread has, so that a call that comes too late takes no thread's cache.
void Heap::detach() noexcept {
  unbind_threads();
  id_ = g_last_heap_id.fetch_add(1) + 1;
}

void Heap::attach_to_read() noexcept {
  id_ = g_last_heap_id.fetch_add(1) + 1;
  place_ = 0;
  has_thread_caches_ = false;
  gate_ = nullptr;
  usable_ = false;
}

// nullptr: this thread works without a cache.
ThreadCache* Heap::this_thread() noexcept {
  if (!has_thread_caches_) return nullptr;
  if (ThreadCache* const cache = find_cache()) return cache;
  ThreadBinding* const mine = make_binding(number_);
  if (mine == nullptr || mine->ended_heap_id == id_) return nullptr;
  ThreadCache* const cache = make_cache();
  if (cache == nullptr) return nullptr;
  // Bound before anything is told, because that may call malloc.
  mine->cache = cache;
  mine->heap_id = id_;
  t_bindings[place_] = *mine;
  note_thread_has_caches();
  return cache;
}

// The cache that this thread has already; nullptr if it has none.
ThreadCache* Heap::find_cache() const noexcept {
  if (!has_thread_caches_) return nullptr;
  ThreadBinding& at_hand = t_bindings[place_];
  if (at_hand.heap_id == id_) return at_hand.cache;
  const ThreadBinding* const mine = find_binding(number_);
  if (mine == nullptr || mine->heap_id != id_) return nullptr;
  at_hand = *mine;
  return mine->cache;
}

ThreadCache* Heap::make_cache() noexcept {
  base::GatePass pass(gate_);
  base::LockGuard lock(threads_mutex_);
  ThreadCache* cache = spare_;
  if (cache != nullptr) {
    spare_ = cache->next;
  } else {
    void* memory = metadata_.obtain(sizeof(ThreadCache));
    if (memory == nullptr) return nullptr;
    cache = ::new (memory) ThreadCache;
    if (!prepare(*cache)) return nullptr;
  }
  cache->heap = this;
  cache->arena = static_cast<unsigned>(std::min_element(arena_threads_, arena_threads_ + arenas_) - arena_threads_);
  ++arena_threads_[cache->arena];
  pool_.serve(threads());
  cache->previous = nullptr;
  cache->next = living_;
  if (living_ != nullptr) living_->previous = cache;
  living_ = cache;
  return cache;
}

std::size_t Heap::threads() const noexcept { return std::accumulate(arena_threads_, arena_threads_ + arenas_, 0u); }

bool Heap::prepare(ThreadCache& cache) noexcept {
  for (unsigned i = 1; i < kClassCount; ++i) {
    cache.bins[i].slots = static_cast<void**>(metadata_.obtain(sizeof(void*) * most_cached(i)));
    if (cache.bins[i].slots == nullptr) return false;
    cache.bins[i].capacity = kFirstCacheSlots;
  }
  return true;
}

// Requires: the gate is passed.
// Called now and then, on a slow path: one class after the other gives half of its slots back if neither a refill
// nor a flush has happened since the last look.
void Heap::look_for_idle(ThreadCache& cache) noexcept {
  if (++cache.slow_calls % kSlowCallsPerLook != 0) return;
  unsigned size_class = cache.next_look;
  cache.next_look = size_class + 1 < kClassCount ? size_class + 1 : 1;
  CacheBin& idle = cache.bins[size_class];
  bool used = idle.used;
  idle.used = false;
  std::uint32_t have = idle.count.load(std::memory_order_relaxed);
  if (used || have < 2) return;
  idle.capacity = std::max(idle.capacity / 2, kFirstCacheSlots);
  std::uint32_t kept = std::min(have / 2, idle.capacity);
  put_back(size_class, idle.slots + kept, have - kept);
  idle.count.store(kept, std::memory_order_relaxed);
}

// Requires: the gate is passed.
void Heap::flush(ThreadCache& cache) noexcept {
  for (unsigned i = 1; i < kClassCount; ++i) {
    CacheBin& mine = cache.bins[i];
    put_back(i, mine.slots, mine.count.load(std::memory_order_relaxed));
    mine.count.store(0, std::memory_order_relaxed);
    mine.capacity = kFirstCacheSlots;
  }
}

void Heap::flush_thread_cache() noexcept {
  ThreadCache* const cache = find_cache();
  if (cache == nullptr) return;
  base::GatePass pass(gate_);
  flush(*cache);
}

void Heap::retire(ThreadCache& cache) noexcept {
  base::GatePass pass(gate_);
  flush(cache);
  base::LockGuard lock(threads_mutex_);
  if (cache.previous != nullptr) {
    cache.previous->next = cache.next;
  } else {
    living_ = cache.next;
  }
  if (cache.next != nullptr) cache.next->previous = cache.previous;
  --arena_threads_[cache.arena];
  pool_.serve(threads());
  cache.next = spare_;
  spare_ = &cache;
}

void Heap::thread_exit() noexcept {
  ThreadCache* const cache = find_cache();
  if (cache == nullptr) return;
  // From here on this thread works without a cache: destructors of its own may still allocate.
  t_bindings[place_] = {};
  *find_binding(number_) = {0, nullptr, id_};
  retire(*cache);
}

// The child's only thread is the one that took the locks, so it may release them as the parent does; none of the
// others is about to end here. Pages that another thread was just dropping stay unused in the child, as do the slots in
// the caches of the other threads; a kept heap loses no pages, because nobody is inside its gate.
void Heap::unlock_after_fork_child() noexcept {
  if (has_thread_caches_) forget_ending_threads(number_);
  unlock_after_fork_parent();
}

}  // namespace farheap::heap
