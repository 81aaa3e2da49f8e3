// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: what goes is folded after all that is below it. (What is below is no hotter, and was made later.)
#include "fold.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "objects.hpp"

namespace farheap::contexts {

namespace {

constexpr std::size_t kNoBound = SIZE_MAX / 2;
constexpr std::size_t kAtOnce = 4;  // a quarter of the contexts
// There is room where it is not asked for again soon: for one more in so many contexts, of the layout that is wanted.
constexpr std::size_t kEnough = 64, kLeastEnough = 16;

std::size_t bytes_of(const Node& block) {
  return (1 + std::size_t{block.kept->loops}) * sizeof(Node) + std::size_t{block.kept->slots} * sizeof(Slot);
}

// All visits, as far as they were timed.
double ticks_of(const Node& node) {
  return static_cast<double>(scaled_ticks(node)) +
         (node.folded != nullptr ? static_cast<double>(node.folded->ticks) : 0);
}

// Since contexts were folded last, if all visits take about as long.
double recent_ticks_of(const Node& node) {
  const auto visits = static_cast<std::uint32_t>(node.entries) - node.seen;
  if (node.entries == 0) return 0;
  const double share = std::min(1.0, static_cast<double>(visits) / static_cast<double>(node.entries));
  return static_cast<double>(scaled_ticks(node)) * share;
}

template <class Element>
std::span<Element> take_span(std::byte*& from, std::size_t count) {
  auto* const first = reinterpret_cast<Element*>(from);
  from += count * sizeof(Element);
  return {first, count};
}

}  // namespace

Folding::~Folding() {
  if (memory_ != nullptr) give_to_kernel(memory_, memory_bytes_);
}

Folding::Row* Folding::row_of(const void* address) const {
  auto* const at = reinterpret_cast<const std::byte*>(address);
  const auto after = std::upper_bound(rows_.begin(), rows_.end(), at, [](const std::byte* one, const Row& row) {
    return one < reinterpret_cast<const std::byte*>(row.block);
  });
  if (after == rows_.begin()) return nullptr;
  Row& row = *std::prev(after);
  return at < reinterpret_cast<const std::byte*>(row.block) + row.bytes ? &row : nullptr;
}

bool Folding::gather() {
  std::size_t count = 0;
  for (const Node* block = tree_.blocks(); block != nullptr; block = block->next) ++count;
  if (count == 0) return false;
  memory_bytes_ = count * (sizeof(Row) + 2 * sizeof(Row*)) + tree_.edges_used_ * sizeof(Tree::Edge);
  memory_ = static_cast<std::byte*>(take_from_kernel(memory_bytes_));
  if (memory_ == nullptr) return false;
  std::byte* left = memory_;
  rows_ = take_span<Row>(left, count);
  by_age_ = take_span<Row*>(left, count);
  by_heat_ = take_span<Row*>(left, count);
  kept_edges_ = take_span<Tree::Edge>(left, tree_.edges_used_);
  std::uint32_t age = 0;
  for (Node* block = tree_.blocks(); block != nullptr; block = block->next, ++age) {
    rows_[age] = {.block = block, .bytes = bytes_of(*block), .age = age};
  }
  std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) { return a.block < b.block; });
  for (Row& row : rows_) {
    by_age_[row.age] = &row;
    row.above = row_of(row.block->parent);
  }
  return true;
}

// The newest first: what is below is whole before it is added to what is above. `recent` is where the result will be.
void Folding::measure() {
  const std::uint64_t now = world_.read_clock();
  const auto share_of = [now](std::uint64_t since) {
    return 1 / static_cast<double>(std::max<std::uint64_t>(now - since, 1));
  };
  const double of_all = share_of(tree_.first_tick_), of_recent = share_of(tree_.last_tick_);
  for (Row* row : by_age_) {
    for (std::uint32_t i = 0; i <= row->block->kept->loops; ++i) {
      const Node& node = row->block[i];
      row->whole += ticks_of(node);
      row->recent += recent_ticks_of(node);
      row->accesses += node.entries + node.reads + node.writes;
      if (node.folded != nullptr) row->accesses += node.folded->entries + node.folded->reads + node.folded->writes;
    }
    row->heat = std::max(row->whole * of_all, row->recent * of_recent);
    if (row->above == nullptr) continue;
    row->above->whole += row->whole;
    row->above->recent += row->recent;
    row->above->accesses += row->accesses;
  }
}

void Folding::take(const std::uintptr_t* words, std::size_t count) {
  const auto first = reinterpret_cast<std::uintptr_t>(rows_.front().block);
  const auto length = reinterpret_cast<std::uintptr_t>(rows_.back().block) + rows_.back().bytes - first;
  for (std::size_t i = 0; i < count; ++i) {
    if (words[i] - first >= length) continue;
    if (Row* const row = row_of(reinterpret_cast<const void*>(words[i]))) row->stays = true;
  }
}

bool Folding::find_live() {
  if (Row* const row = row_of(current_)) row->stays = true;
  if (!world_.live.read(*this)) return false;
  for (const Row* row : by_age_) {
    if (row->stays && row->above != nullptr) row->above->stays = true;
  }
  return true;
}

void Folding::sort_by_heat() {
  const auto end =
      std::copy_if(by_age_.begin(), by_age_.end(), by_heat_.begin(), [](const Row* row) { return !row->stays; });
  by_heat_ = by_heat_.first(static_cast<std::size_t>(end - by_heat_.begin()));
  std::sort(by_heat_.begin(), by_heat_.end(), [](const Row* a, const Row* b) {
    if (a->heat != b->heat) return a->heat < b->heat;
    return a->accesses != b->accesses ? a->accesses < b->accesses : a->age < b->age;
  });
}

bool Folding::fold(Row& row) {
  Node* const block = row.block;
  Node& to = row.above != nullptr ? *block->parent : tree_.root_;
  if (to.folded == nullptr) to.folded = static_cast<Folded*>(tree_.cells_.take_table(sizeof(Folded), kNoBound));
  if (to.folded == nullptr) return false;
  Folded& sum = *to.folded;
  const Place& place = *block->kept;
  for (std::uint32_t i = 0; i <= place.loops; ++i) {
    Node& node = block[i];
    ++sum.contexts;
    sum.entries += node.entries;
    sum.reads += node.reads;
    sum.writes += node.writes;
    // The time of quiet ones is in what is above them, if that has a time.
    if (!is_quiet(node)) sum.ticks += node.ticks;
    if (is_quiet(node) && i == 0 && &to == &tree_.root_) sum.ticks += scaled_ticks(node);
    if (node.folded != nullptr) {
      sum.contexts += node.folded->contexts;
      sum.entries += node.folded->entries;
      sum.reads += node.folded->reads;
      sum.writes += node.folded->writes;
      sum.ticks += node.folded->ticks;
      tree_.cells_.give_table(node.folded);
    }
    const SiteTable* const table = node.accesses;
    for (std::uint32_t row_number = 0; table != nullptr && row_number < table->used; ++row_number) {
      const SiteAccess& one = table->rows[row_number];
      tree_.add_access(to, one.site, one.reads, one.writes, kNoBound, true);
    }
    if (table != nullptr) tree_.cells_.give_table(node.accesses);
  }
  for (std::uint32_t i = 0; i < place.slots; ++i) {
    const Slot& slot = slots_of(block)[i];
    if (slot.site != kNoSite && (slot.reads | slot.writes) != 0) {
      tree_.add_access(to, slot.site, slot.reads, slot.writes, kNoBound, true);
    }
  }
  row.goes = true;
  row.to = &to;
  std::memset(static_cast<void*>(block), 0, row.bytes);
  tree_.cells_.give_block(block);
  return true;
}

void Folding::fold_coldest(std::size_t count) {
  for (; count != 0 && gone_ < by_heat_.size(); --count) {
    if (!fold(*by_heat_[gone_])) return;
    ++gone_;
  }
  tree_.cells_.release();
}

const Node* Folding::now(const Node* node) const {
  for (const Row* row = row_of(node); row != nullptr && row->goes; row = row_of(node)) node = row->to;
  return node;
}

void Folding::forget_what_goes() {
  // Only roots have no place otherwise.
  const auto goes = [this](const Node* node) { return node != &tree_.root_ && node->place == nullptr; };
  const auto renew = [&](Node& node) {
    node.seen = static_cast<std::uint32_t>(node.entries);
    if (node.cached_child != nullptr && goes(node.cached_child)) {
      node.cached_place = nullptr;
      node.cached_child = nullptr;
    }
  };
  renew(tree_.root_);
  Node* first = nullptr;
  Node** last = &first;
  for (const Row* row : by_age_) {
    if (row->goes) continue;
    *last = row->block;
    last = &row->block->next;
    for (std::uint32_t i = 0; i <= row->block->kept->loops; ++i) renew(row->block[i]);
  }
  *last = nullptr;
  tree_.blocks_.store(first, std::memory_order_release);

  std::size_t kept = 0;
  for (std::size_t i = 0; i < tree_.edges_room_; ++i) {
    const Tree::Edge& edge = tree_.edges_[i];
    if (edge.child == nullptr) continue;
    // Those from nowhere lead to copies of places.
    if (edge.above == nullptr || (!goes(edge.child) && !goes(edge.above))) kept_edges_[kept++] = edge;
  }
  std::memset(static_cast<void*>(tree_.edges_), 0, tree_.edge_bytes());
  tree_.edges_used_ = 0;
  for (const Tree::Edge& edge : kept_edges_.first(kept)) tree_.remember(edge.above, edge.place, edge.child);
  world_.keeper.move(*this);
}

bool Folding::make_room(const Place& place) {
  if (!gather()) return false;
  measure();
  if (!find_live()) return false;
  sort_by_heat();
  const std::size_t enough = std::max(rows_.size() / kEnough, kLeastEnough);
  const auto is_room = [&] {
    const std::size_t most = most_for_blocks(world_.most_bytes);
    return tree_.cells_.room_for(place.loops, place.slots, most - std::min(most, tree_.held_bytes())) >= enough;
  };
  do {
    fold_coldest(std::max<std::size_t>(rows_.size() / kAtOnce, 1));
  } while (!is_room() && gone_ < by_heat_.size());
  forget_what_goes();
  tree_.last_tick_ = world_.read_clock();
  return is_room();
}

}  // namespace farheap::contexts
