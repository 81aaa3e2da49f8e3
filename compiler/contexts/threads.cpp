// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: a node that a frame of its thread uses stays where it is (fold.hpp).
#include "threads.hpp"

#include <pthread.h>
#include <time.h>
#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "kernel_memory.hpp"
#include "objects.hpp"
#include "stacks.hpp"
#include "tree.hpp"

namespace farheap::contexts {
namespace {

constexpr std::size_t kScratchBytes = std::size_t{64} << 10;  // as large as a block can be
constexpr std::uint64_t kClockCalls = 64;
constexpr std::uint64_t kUnusualTimes = 32, kUnusualTicks = 20'000;

// By what a visit stands for: the more there were, the fewer are timed.
struct Pace {
  std::uint32_t timed, gap;
};
constexpr Pace kPaces[] = {{32, 1}, {512, 8}, {8192, 32}, {UINT32_MAX, 128}};

}  // namespace

struct Thread {
  Tree tree;
  std::atomic<bool> lives{true};
  Thread* next = nullptr;
  std::byte* scratch = nullptr;
  const void* home = nullptr;  // on the stack of the thread that has it
};

namespace {

Node g_none;  // of a thread that has no tree yet
alignas(64) std::byte g_scratch[kScratchBytes];
std::atomic<Thread*> g_threads{nullptr};
SpinLock g_registry;
pthread_key_t g_key;
pthread_once_t g_once = PTHREAD_ONCE_INIT;
__thread Thread* g_own __attribute__((tls_model("initial-exec"))) = nullptr;
__thread bool g_inside __attribute__((tls_model("initial-exec"))) = false;
__thread Thread* g_held_for_fork __attribute__((tls_model("initial-exec"))) = nullptr;  // and all behind it
std::atomic<std::size_t> g_most_tree_bytes{kMostTreeBytes};
std::uint64_t g_clock_cost = 0, g_first_tick = 0;
std::int64_t g_first_ns = 0;

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void end_thread(void* own) {
  __farheap_context.node = &g_none;
  g_own = nullptr;
  static_cast<Thread*>(own)->lives.store(false, std::memory_order_release);
}

void begin() {
  pthread_key_create(&g_key, end_thread);
  g_clock_cost = UINT64_MAX;
  for (std::uint64_t i = 0; i < kClockCalls; ++i) {
    const std::uint64_t before = __rdtsc();
    g_clock_cost = std::min<std::uint64_t>(g_clock_cost, __rdtsc() - before);
  }
  g_first_tick = __rdtsc();
  g_first_ns = now_ns();
}

// One that has ended, or a new one.
Thread* find_thread() {
  for (Thread* one = g_threads.load(std::memory_order_acquire); one != nullptr; one = one->next) {
    bool ended = false;
    if (one->lives.compare_exchange_strong(ended, true)) return one;
  }
  auto* const memory = static_cast<Thread*>(take_from_kernel(sizeof(Thread)));
  auto* const scratch = static_cast<std::byte*>(take_from_kernel(kScratchBytes));
  if (memory == nullptr || scratch == nullptr) return nullptr;
  auto* const made = new (memory) Thread;
  made->scratch = scratch;
  g_registry.lock();
  made->next = g_threads.load(std::memory_order_relaxed);
  g_threads.store(made, std::memory_order_release);
  g_registry.unlock();
  return made;
}

// Requires: the caller is inside.
Thread* own_thread() {
  if (g_own != nullptr) return g_own;
  pthread_once(&g_once, begin);
  Thread* const found = find_thread();
  if (found == nullptr) return nullptr;
  g_own = found;
  found->home = __builtin_frame_address(0);
  pthread_setspecific(g_key, found);
  __farheap_context.last = __rdtsc();
  return found;
}

// Where nothing can be made: whatever is counted there is lost.
Node* scratch_block() {
  return reinterpret_cast<Node*>(g_own != nullptr ? g_own->scratch : static_cast<std::byte*>(g_scratch));
}

}  // namespace

Inside::Inside() : first_(!g_inside) { g_inside = true; }
Inside::~Inside() {
  if (first_) g_inside = false;
}
bool is_inside() { return g_inside; }

Node* current_node() {
  Node* const known = __farheap_context.node;
  if (known != &g_none) return known;
  Thread* const own = own_thread();
  return own == nullptr ? nullptr : &own->tree.root();
}

bool is_root(const Node& node) { return node.place == nullptr; }

void set_most_tree_bytes(std::size_t bytes) {
  g_most_tree_bytes.store(std::max(bytes, kLeastTreeBytes), std::memory_order_relaxed);
}

HeldTrees::HeldTrees() : first_(g_threads.load(std::memory_order_acquire)) {
  for (auto* one = static_cast<Thread*>(first_); one != nullptr; one = one->next) one->tree.hold();
}

HeldTrees::~HeldTrees() {
  for (auto* one = static_cast<Thread*>(first_); one != nullptr; one = one->next) one->tree.let_go();
}

void HeldTrees::for_each(void (*take)(Tree& tree, void* argument), void* argument) const {
  for (auto* one = static_cast<Thread*>(first_); one != nullptr; one = one->next) take(one->tree, argument);
}

// Not the thread's own: it may be a signal handler that forks, in the middle of a change of that. (Not of folding,
// which no handler interrupts.) A tree that is made meanwhile has nothing in it that could go away.
void hold_for_fork() {
  g_held_for_fork = g_threads.load(std::memory_order_acquire);
  for (Thread* one = g_held_for_fork; one != nullptr; one = one->next) {
    if (one != g_own) one->tree.hold();
  }
}

void let_go_in_parent() {
  for (Thread* one = g_held_for_fork; one != nullptr; one = one->next) {
    if (one != g_own) one->tree.let_go();
  }
}

// Only the thread that forked lives on.
void begin_anew_in_child() {
  for (Thread* one = g_threads.load(std::memory_order_acquire); one != nullptr; one = one->next) {
    if (one != g_own) one->lives.store(false, std::memory_order_relaxed);
    one->tree.begin_anew_in_child();
  }
  g_registry.unlock();
}

std::uint64_t read_clock() { return __rdtsc(); }

double ns_per_tick() {
  const std::uint64_t ticks = __rdtsc() - g_first_tick;
  const std::int64_t ns = now_ns() - g_first_ns;
  return g_first_tick == 0 || ticks == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(ticks);
}

}  // namespace farheap::contexts

using farheap::contexts::Inside;
using farheap::contexts::Node;
using farheap::contexts::Place;
using farheap::contexts::Slot;

__thread farheap::contexts::Current __farheap_context = {&farheap::contexts::g_none, 0};

Node* __farheap_context_enter(const Place* place) {
  using namespace farheap::contexts;
  const Inside inside;
  if (!inside.is_first()) return scratch_block();
  Thread* const own = own_thread();
  if (own == nullptr) return scratch_block();
  Node* const here = __farheap_context.node;
  Node* const above = here == &g_none ? &own->tree.root() : here;
  OwnStacks stacks(own->home);
  SiteNodes sites;
  const std::size_t most = g_most_tree_bytes.load(std::memory_order_relaxed);
  const std::uint64_t folded_before = own->tree.ticks_of_folding();
  Node* const found = own->tree.enter(place, above, {stacks, sites, read_clock, most});
  // To fold takes time that is no context's.
  __farheap_context.last += own->tree.ticks_of_folding() - folded_before;
  if (found == nullptr) return scratch_block();
  // A signal handler that comes between finds nothing cached.
  if (here != &g_none) {
    above->cached_place = nullptr;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    above->cached_child = found;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    above->cached_place = place;
  }
  return found;
}

std::uint64_t __farheap_context_begin(Node* node) {
  using namespace farheap::contexts;
  node->weight = node->gap;
  ++node->timed;
  const Pace* pace = kPaces;
  while (node->timed >= pace->timed) ++pace;
  // Evenly around the gap, so that no rhythm of the program is met again and again.
  std::uint64_t mixed = (std::uint64_t{node->timed} << 32 ^ node->entries) * 0x9E3779B97F4A7C15;
  mixed ^= mixed >> 32;
  node->gap = pace->gap == 1 ? std::uint16_t{1} : static_cast<std::uint16_t>(1 + mixed % (2 * pace->gap - 1));
  node->until = node->gap;
  return __rdtsc();
}

void __farheap_context_end(Node* node, std::uint64_t start) {
  using namespace farheap::contexts;
  std::uint64_t took = __rdtsc() - start;
  took = took > g_clock_cost ? took - g_clock_cost : 0;
  const std::uint64_t usual = node->stood_for == 0 ? took : node->ticks / node->stood_for;
  // A visit that waited stands for itself alone, and not for the others of its weight.
  node->ticks += took > kUnusualTimes * usual + kUnusualTicks ? took + usual * (node->weight - 1) : took * node->weight;
  node->stood_for += node->weight;
}

void __farheap_context_object(Node* node, Slot* slot, std::uint64_t address, std::uint64_t tag) {
  using namespace farheap::contexts;
  const Inside inside;
  if (inside.is_first() && g_own != nullptr) {
    g_own->tree.settle(*node, *slot, g_most_tree_bytes.load(std::memory_order_relaxed));
  }
  slot->site = inside.is_first() ? site_at(address) : kNoSite;
  slot->tag = tag;
}
