// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "heap/thread_bindings.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>

#include "base/metadata_source.hpp"
#include "heap/heap.hpp"
#include "os/robust_list.hpp"

namespace farheap::heap {

thread_local constinit ThreadBinding t_bindings[kOwnPlaces + kSharedPlaces]
    __attribute__((tls_model("initial-exec"))) = {};

namespace {

constexpr std::size_t kOthersBytes = (kMostNumbers - kOwnPlaces) * sizeof(ThreadBinding);

// By number: which heap has it; 0: none. The heap at hand uses what it finds here, so ids are never used twice.
constinit std::atomic<std::uint64_t> g_heap_ids[kMostNumbers] = {};
// How many threads are about to end for that heap. A kept heap's memory goes when it is detached.
constinit std::atomic<std::uint32_t> g_ending[kMostNumbers] = {};
constinit std::atomic<int> g_numbers_end{0};  // no number from here on was ever taken

// The thread keeps the bindings of all other numbers here; nullptr until one of them is used.
thread_local constinit ThreadBinding* t_others __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local constinit bool t_is_ending __attribute__((tls_model("initial-exec"))) = false;

// One key for all heaps: a process has 1,024, and most are the program's.
pthread_once_t g_key_once = PTHREAD_ONCE_INIT;
pthread_key_t g_key;
constinit std::atomic<bool> g_has_key{false};

// A heap may be gone, and its cache with it, unless its id is still the one of its number: then who detaches it waits.
// To take memory back, the runtime may allocate in another heap, and destructors that run later may allocate, too. They
// do so without a cache: nobody would give a new one back.
void on_thread_end(void*) {
  t_is_ending = true;
  for (int number = 0, end = g_numbers_end.load(); number < end; ++number) {
    ThreadBinding* const binding = find_binding(number);
    if (binding == nullptr) break;
    if (binding->heap_id == 0 || g_heap_ids[number].load() != binding->heap_id) continue;
    g_ending[number].fetch_add(1);
    if (g_heap_ids[number].load() == binding->heap_id) binding->cache->heap->thread_exit();
    g_ending[number].fetch_sub(1);
  }
  for (ThreadBinding& place : t_bindings) place = {};
  if (t_others != nullptr) munmap(t_others, kOthersBytes);
  t_others = nullptr;
  os::touch_robust_list();
}

void make_key() { g_has_key.store(pthread_key_create(&g_key, on_thread_end) == 0); }

// A library may be unloaded while threads that used it live on.
[[gnu::destructor]] void delete_key() {
  if (g_has_key.exchange(false)) pthread_key_delete(g_key);
}

}  // namespace

int claim_number(std::uint64_t heap_id) noexcept {
  pthread_once(&g_key_once, make_key);
  if (!g_has_key.load()) return -1;
  for (int i = 0; i < kMostNumbers; ++i) {
    std::uint64_t none = 0;
    if (!g_heap_ids[i].compare_exchange_strong(none, heap_id)) continue;
    int end = g_numbers_end.load();
    while (end <= i && !g_numbers_end.compare_exchange_weak(end, i + 1)) {
    }
    return i;
  }
  return -1;
}

void release_number(int number) noexcept {
  g_heap_ids[number].store(0);
  while (g_ending[number].load() != 0) sched_yield();
}

void forget_ending_threads(int number) noexcept { g_ending[number].store(0); }

void forget_heap_in_child(int number) noexcept {
  t_bindings[place_of(number)] = {};
  if (ThreadBinding* const binding = find_binding(number)) *binding = {};
  g_heap_ids[number].store(0);
  g_ending[number].store(0);
}

ThreadBinding* find_binding(int number) noexcept {
  if (number < kOwnPlaces) return &t_bindings[number];
  return t_others == nullptr ? nullptr : &t_others[number - kOwnPlaces];
}

ThreadBinding* make_binding(int number) noexcept {
  if (t_is_ending) return nullptr;
  if (number >= kOwnPlaces && t_others == nullptr) {
    t_others = static_cast<ThreadBinding*>(base::mapped_tables().reserve(kOthersBytes));
  }
  return find_binding(number);
}

void note_thread_has_caches() noexcept {
  if (!g_has_key.load()) return;  // this library is being unloaded
  if (pthread_getspecific(g_key) == nullptr) pthread_setspecific(g_key, &t_bindings);
}

}  // namespace farheap::heap
