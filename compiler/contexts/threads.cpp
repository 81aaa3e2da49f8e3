// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: a node is never given back, so that frames, slots and sites may keep its address.
#include "threads.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "objects.hpp"

namespace farheap::contexts {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
// A tree is full then: later contexts are counted below the root, one for each function.
constexpr std::size_t kMostTreeBytes = std::size_t{64} << 20;
constexpr std::size_t kScratchBytes = std::size_t{64} << 10;  // as large as a block can be
constexpr std::uint32_t kMostRows = 64;                       // sites of a context that are told apart
constexpr std::uint64_t kClockCalls = 64;
constexpr std::uint64_t kUnusualTimes = 32, kUnusualTicks = 20'000;

// By what a visit stands for: the more there were, the fewer are timed.
struct Pace {
  std::uint32_t timed, gap;
};
constexpr Pace kPaces[] = {{32, 1}, {512, 8}, {8192, 32}, {UINT32_MAX, 128}};

struct Edge {
  const Node* above;
  const Place* place;
  Node* child;
};

class SpinLock {
 public:
  void lock() {
    while (is_taken_.test_and_set(std::memory_order_acquire)) sched_yield();
  }
  void unlock() { is_taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag is_taken_ = ATOMIC_FLAG_INIT;
};

}  // namespace

struct Thread {
  SpinLock lock;
  std::atomic<bool> lives{true};
  Thread* next = nullptr;
  Node root{};
  Node* blocks = nullptr;  // the newest first
  Edge* edges = nullptr;
  std::size_t edges_used = 0, edges_room = 0;
  std::byte* piece = nullptr;
  std::size_t left = 0, bytes = 0;
  std::byte* scratch = nullptr;

  void* take(std::size_t size);
  Node* find(const Node* above, const Place* place) const;
  void remember(const Node* above, const Place* place, Node* child);
  Node* make_block(const Place* place, Node* above);
  Node* enter(const Place* place, Node* above);

 private:
  const Place* keep(const Place* place);
  const char* keep(const char* text);
  Edge* edge_for(const Node* above, const Place* place) const;
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
  pthread_setspecific(g_key, found);
  __farheap_context.last = __rdtsc();
  return found;
}

std::size_t bytes_of(const Place& place) {
  return (1 + std::size_t{place.loops}) * sizeof(Node) + std::size_t{place.slots} * sizeof(Slot);
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

void* take_from_kernel(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void* Thread::take(std::size_t size) {
  size = (size + 63) / 64 * 64;
  if (size > left) {
    const std::size_t more = std::max(size, kPieceBytes);
    auto* const fresh = static_cast<std::byte*>(take_from_kernel(more));
    if (fresh == nullptr) return nullptr;
    piece = fresh;
    left = more;
  }
  std::byte* const taken = piece;
  piece += size;
  left -= size;
  bytes += size;
  return taken;
}

Edge* Thread::edge_for(const Node* above, const Place* place) const {
  const auto mixed = (reinterpret_cast<std::uintptr_t>(above) * 31 + reinterpret_cast<std::uintptr_t>(place)) *
                     std::uint64_t{0x9E3779B97F4A7C15};
  std::size_t at = (mixed >> 32) & (edges_room - 1);
  while (edges[at].child != nullptr && (edges[at].above != above || edges[at].place != place)) {
    at = (at + 1) & (edges_room - 1);
  }
  return &edges[at];
}

Node* Thread::find(const Node* above, const Place* place) const {
  return edges_room == 0 ? nullptr : edge_for(above, place)->child;
}

void Thread::remember(const Node* above, const Place* place, Node* child) {
  if (edges_used * 2 >= edges_room) {
    const std::size_t room = std::max<std::size_t>(edges_room * 2, 256);
    auto* const fresh = static_cast<Edge*>(take(room * sizeof(Edge)));
    if (fresh == nullptr) return;
    Edge* const before = edges;
    const std::size_t count = edges_room;
    edges = fresh;
    edges_room = room;
    for (std::size_t i = 0; i < count; ++i) {
      if (before[i].child != nullptr) *edge_for(before[i].above, before[i].place) = before[i];
    }
  }
  *edge_for(above, place) = {above, place, child};
  ++edges_used;
}

const char* Thread::keep(const char* text) {
  const std::size_t size = std::strlen(text) + 1;
  void* const copy = take(size);
  return copy == nullptr ? "" : static_cast<const char*>(std::memcpy(copy, text, size));
}

// One copy for all contexts of the place: its edge leads from nowhere.
const Place* Thread::keep(const Place* place) {
  if (const Node* const known = find(nullptr, place)) return reinterpret_cast<const Place*>(known);
  auto* const copy = static_cast<Place*>(take(sizeof(Place)));
  auto* const loops = static_cast<LoopPlace*>(take(place->loops * sizeof(LoopPlace) + 1));
  auto* const slots = static_cast<std::uint32_t*>(take(place->slots * sizeof(std::uint32_t) + 1));
  if (copy == nullptr || loops == nullptr || slots == nullptr) return nullptr;
  *copy = *place;
  copy->function = keep(place->function);
  copy->file = keep(place->file);
  for (std::uint32_t i = 0; i < place->loops; ++i) {
    loops[i] = place->loop[i];
    const bool is_own = std::strcmp(loops[i].function, place->function) == 0;
    loops[i].function = is_own ? copy->function : keep(loops[i].function);
    loops[i].file = std::strcmp(loops[i].file, place->file) == 0 ? copy->file : keep(loops[i].file);
  }
  std::copy_n(place->slot_node, place->slots, slots);
  copy->loop = loops;
  copy->slot_node = slots;
  remember(nullptr, place, reinterpret_cast<Node*>(copy));
  return copy;
}

Node* Thread::make_block(const Place* place, Node* above) {
  const Place* const kept = keep(place);
  auto* const block = static_cast<Node*>(take(bytes_of(*place)));
  if (block == nullptr || kept == nullptr) return nullptr;
  for (std::uint32_t i = 0; i <= place->loops; ++i) {
    block[i].place = place;
    block[i].kept = kept;
    block[i].index = i;
    block[i].parent = i == 0 ? above : &block[place->loop[i - 1].parent];
    block[i].until = block[i].gap = 1;
  }
  lock.lock();
  block->next = blocks;
  blocks = block;
  lock.unlock();
  return block;
}

// A function that is on its own path is the context that it is there (recursion).
Node* Thread::enter(const Place* place, Node* above) {
  if (Node* const known = find(above, place)) return known;
  for (Node* one = above; one != nullptr; one = one->parent) {
    if (one->place != place) continue;
    Node* const itself = one - one->index;
    remember(above, place, itself);
    return itself;
  }
  Node* const below = bytes < kMostTreeBytes ? above : &root;
  Node* made = below == above ? nullptr : find(below, place);
  if (made == nullptr) {
    made = make_block(place, below);
    if (made == nullptr) return scratch_block();
    remember(below, place, made);
  }
  return made;
}

Node* current_node() {
  Node* const known = __farheap_context.node;
  if (known != &g_none) return known;
  Thread* const own = own_thread();
  return own == nullptr ? nullptr : &own->root;
}

bool is_root(const Node& node) { return node.place == nullptr; }

void settle(Node& node, Slot& slot) {
  if ((slot.reads | slot.writes) == 0) return;
  const std::uint64_t reads = slot.reads, writes = slot.writes;
  slot.reads = slot.writes = 0;
  if (slot.site == kNoSite) return;
  SiteTable* table = node.accesses;
  for (std::uint32_t i = 0; table != nullptr && i < table->used; ++i) {
    if (table->rows[i].site != slot.site) continue;
    table->rows[i].reads += reads;
    table->rows[i].writes += writes;
    return;
  }
  if (table == nullptr || table->used == table->room) {
    const std::uint32_t room = table == nullptr ? 4 : table->room * 2;
    if (room > kMostRows || g_own == nullptr) return;
    auto* const larger = static_cast<SiteTable*>(g_own->take(sizeof(SiteTable) + room * sizeof(SiteAccess)));
    if (larger == nullptr) return;
    if (table != nullptr) std::memcpy(larger, table, sizeof(SiteTable) + table->used * sizeof(SiteAccess));
    larger->room = room;
    node.accesses = table = larger;
  }
  table->rows[table->used] = {slot.site, 0, reads, writes};
  ++table->used;
}

void for_each_block(void (*take)(Node* block, void* argument), void* argument) {
  for (Thread* one = g_threads.load(std::memory_order_acquire); one != nullptr; one = one->next) {
    one->lock.lock();
    Node* const first = one->blocks;
    one->lock.unlock();
    for (Node* block = first; block != nullptr; block = block->next) take(block, argument);
  }
}

// Only the thread that forked lives on.
void begin_anew_in_child() {
  for (Thread* one = g_threads.load(std::memory_order_acquire); one != nullptr; one = one->next) {
    one->lock.unlock();
    if (one != g_own) one->lives.store(false, std::memory_order_relaxed);
    for (Node* block = one->blocks; block != nullptr; block = block->next) {
      for (std::uint32_t i = 0; i <= block->kept->loops; ++i) {
        block[i].entries = block[i].reads = block[i].writes = block[i].ticks = block[i].stood_for = 0;
        if (block[i].accesses != nullptr) block[i].accesses->used = 0;
      }
      for (std::uint32_t i = 0; i < block->kept->slots; ++i) slots_of(block)[i].reads = slots_of(block)[i].writes = 0;
    }
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
  Node* const above = here == &g_none ? &own->root : here;
  Node* const found = own->enter(place, above);
  // A signal handler that comes between finds nothing cached.
  if (here != &g_none && found != scratch_block()) {
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
  node->gap = pace->gap == 1 ? 1 : static_cast<std::uint32_t>(1 + mixed % (2 * pace->gap - 1));
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
  if (inside.is_first()) settle(*node, *slot);
  slot->site = inside.is_first() ? site_at(address) : kNoSite;
  slot->tag = tag;
}
