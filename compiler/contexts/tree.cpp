// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tree.hpp"

#include <signal.h>

#include <algorithm>
#include <cstring>

#include "fold.hpp"
#include "objects.hpp"

namespace farheap::contexts {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
constexpr std::size_t kFirstEdges = 256;
constexpr std::uint32_t kFirstRows = 4, kMostRows = 64;  // sites of a context that are told apart
constexpr std::size_t kNoBound = SIZE_MAX / 2;
// To look for room takes milliseconds; where nearly all is in use there is little each time.
constexpr std::uint32_t kTriesInVain = 1024;

std::size_t table_bytes(std::uint32_t rows) { return sizeof(SiteTable) + rows * sizeof(SiteAccess); }

// No signal handler comes meanwhile.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Tree::~Tree() {
  if (edges_ != nullptr) give_to_kernel(edges_, edge_bytes());
}

Tree::Edge* Tree::edge_for(const Node* above, const Place* place) const {
  const auto mixed = (reinterpret_cast<std::uintptr_t>(above) * 31 + reinterpret_cast<std::uintptr_t>(place)) *
                     std::uint64_t{0x9E3779B97F4A7C15};
  std::size_t at = (mixed >> 32) & (edges_room_ - 1);
  while (edges_[at].child != nullptr && (edges_[at].above != above || edges_[at].place != place)) {
    at = (at + 1) & (edges_room_ - 1);
  }
  return &edges_[at];
}

Node* Tree::find(const Node* above, const Place* place) const {
  return edges_room_ == 0 ? nullptr : edge_for(above, place)->child;
}

bool Tree::make_edge_room(std::size_t most_bytes) {
  if ((edges_used_ + 1) * 4 <= edges_room_ * 3) return true;
  const std::size_t room = std::max(edges_room_ * 2, kFirstEdges);
  if (held_bytes() + (room - edges_room_) * sizeof(Edge) > most_bytes) return false;
  auto* const fresh = static_cast<Edge*>(take_from_kernel(room * sizeof(Edge)));
  if (fresh == nullptr) return false;
  Edge* const before = edges_;
  const std::size_t count = edges_room_;
  edges_ = fresh;
  edges_room_ = room;
  for (std::size_t i = 0; i < count; ++i) {
    if (before[i].child != nullptr) *edge_for(before[i].above, before[i].place) = before[i];
  }
  if (before != nullptr) give_to_kernel(before, count * sizeof(Edge));
  return true;
}

// Requires: there is room.
void Tree::remember(const Node* above, const Place* place, Node* child) {
  *edge_for(above, place) = {above, place, child};
  ++edges_used_;
}

void* Tree::take_for_good(std::size_t bytes) {
  bytes = (bytes + 7) / 8 * 8;
  if (bytes > left_) {
    const std::size_t more = std::max(bytes, kPieceBytes);
    auto* const fresh = static_cast<std::byte*>(take_from_kernel(more));
    if (fresh == nullptr) return nullptr;
    piece_ = fresh;
    left_ = more;
  }
  std::byte* const taken = piece_;
  piece_ += bytes;
  left_ -= bytes;
  return taken;
}

const char* Tree::keep(const char* text) {
  const std::size_t size = std::strlen(text) + 1;
  void* const copy = take_for_good(size);
  return copy == nullptr ? "" : static_cast<const char*>(std::memcpy(copy, text, size));
}

// One copy for all contexts of the place: its edge leads from nowhere.
const Place* Tree::keep(const Place* place) {
  if (const Node* const known = find(nullptr, place)) return reinterpret_cast<const Place*>(known);
  if (!make_edge_room(kNoBound)) return nullptr;
  auto* const copy = static_cast<Place*>(take_for_good(sizeof(Place)));
  auto* const loops = static_cast<LoopPlace*>(take_for_good(place->loops * sizeof(LoopPlace) + 1));
  auto* const slots = static_cast<std::uint32_t*>(take_for_good(place->slots * sizeof(std::uint32_t) + 1));
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

Node* Tree::make_block(const Place* place, Node* above, std::size_t most_bytes) {
  const Place* const kept = keep(place);
  if (kept == nullptr || !make_edge_room(most_bytes)) return nullptr;
  const std::size_t for_cells = most_bytes - std::min(most_bytes, edge_bytes());
  Node* const block = cells_.take_block(place->loops, place->slots, for_cells);
  if (block == nullptr) return nullptr;
  for (std::uint32_t i = 0; i <= place->loops; ++i) {
    block[i].place = place;
    block[i].kept = kept;
    block[i].index = i;
    block[i].parent = i == 0 ? above : &block[place->loop[i - 1].parent];
    block[i].until = block[i].gap = 1;
  }
  remember(above, place, block);
  block->next = blocks_.load(std::memory_order_relaxed);
  blocks_.store(block, std::memory_order_release);
  return block;
}

bool Tree::fold_for(const Place& place, const Node* above, const World& world) {
  if (in_vain_ != 0) return --in_vain_, false;
  const NoSignals none;
  const std::uint64_t before = world.read_clock();
  lock_.lock();
  const bool has_readers = readers_.load(std::memory_order_acquire) != 0;
  const bool is_room = !has_readers && Folding(*this, world, above).make_room(place);
  lock_.unlock();
  if (!is_room && !has_readers) in_vain_ = kTriesInVain;
  ticks_of_folding_ += world.read_clock() - before;
  return is_room;
}

// A function that is on its own path is the context that it is there (recursion).
Node* Tree::enter(const Place* place, Node* above, const World& world) {
  if (above->place == nullptr) above = &root_;
  if (Node* const known = find(above, place)) return known;
  const std::size_t most = most_for_blocks(world.most_bytes);
  for (Node* one = above; one != nullptr; one = one->parent) {
    if (one->place != place) continue;
    Node* const itself = one - one->index;
    // It is found again without its edge, too: the table does not grow for that.
    if ((edges_used_ + 1) * 2 <= edges_room_) remember(above, place, itself);
    return itself;
  }
  if (first_tick_ == 0) first_tick_ = last_tick_ = world.read_clock();
  if (Node* const made = make_block(place, above, most)) return made;
  if (fold_for(*place, above, world)) {
    if (Node* const made = make_block(place, above, most)) return made;
  }
  // Below the root, once for each function.
  if (Node* const known = find(&root_, place)) return known;
  return make_block(place, &root_, kNoBound);
}

void Tree::settle(Node& node, Slot& slot, std::size_t most_bytes) {
  const std::uint64_t reads = slot.reads, writes = slot.writes;
  slot.reads = slot.writes = 0;
  if (slot.site == kNoSite || (reads | writes) == 0) return;
  add_access(node, slot.site, reads, writes, most_bytes, false);
}

void Tree::add_access(Node& node, std::uint32_t site, std::uint64_t reads, std::uint64_t writes, std::size_t most_bytes,
                      bool is_locked) {
  SiteTable* table = node.accesses;
  for (std::uint32_t i = 0; table != nullptr && i < table->used; ++i) {
    if (table->rows[i].site != site) continue;
    table->rows[i].reads += reads;
    table->rows[i].writes += writes;
    return;
  }
  if (table == nullptr || table->used == table->room) {
    const std::uint32_t room = table == nullptr ? kFirstRows : table->room * 2;
    if (room > kMostRows) return;
    const std::size_t for_cells = most_bytes - std::min(most_bytes, edge_bytes());
    auto* const larger = static_cast<SiteTable*>(cells_.take_table(table_bytes(room), for_cells));
    if (larger == nullptr) return;
    if (table != nullptr) std::memcpy(larger, table, table_bytes(table->used));
    larger->room = room;
    if (!is_locked) lock_.lock();
    node.accesses = larger;
    // Readers may be in it. They are seldom: it is left where it is.
    const bool is_free = table != nullptr && readers_.load(std::memory_order_acquire) == 0;
    if (!is_locked) lock_.unlock();
    if (is_free) cells_.give_table(table);
    table = larger;
  }
  table->rows[table->used] = {site, 0, reads, writes};
  ++table->used;
}

void Tree::hold() {
  readers_.fetch_add(1, std::memory_order_acq_rel);
  lock_.lock();
  lock_.unlock();
}

void Tree::begin_anew_in_child() {
  lock_.unlock();
  readers_.store(0, std::memory_order_relaxed);
  const auto forget = [](Node& node) {
    node.entries = node.reads = node.writes = node.ticks = node.stood_for = 0;
    node.seen = 0;
    if (node.accesses != nullptr) node.accesses->used = 0;
    if (node.folded != nullptr) *node.folded = {};
  };
  forget(root_);
  for (Node* block = blocks(); block != nullptr; block = block->next) {
    for (std::uint32_t i = 0; i <= block->kept->loops; ++i) forget(block[i]);
    for (std::uint32_t i = 0; i < block->kept->slots; ++i) slots_of(block)[i].reads = slots_of(block)[i].writes = 0;
  }
}

}  // namespace farheap::contexts
