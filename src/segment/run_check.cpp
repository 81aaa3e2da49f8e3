// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether the books of free addresses agree with each other. They may be damaged: no record is looked at that does not
// lie among the tables, and no tree is followed deeper than a sound one can be.
#include <fmt/format.h>

#include <unordered_set>

#include "base/units.hpp"
#include "segment/run_allocator.hpp"

namespace farheap::segment {
namespace {

using Nodes = FreeRunsByAddress::node_traits;
using Node = Nodes::node;
static_assert(std::is_same_v<Nodes, FreeRunsBySize::node_traits>);

constexpr int kDeepest = 100;  // a red-black tree of 2^50 records

template <FreeRun::Hook FreeRun::* kHook>
const FreeRun& run_of(const Node* node) {
  return *boost::intrusive::get_parent_from_member<FreeRun>(static_cast<const FreeRun::Hook*>(node), kHook);
}

// One of the two trees, in order.
template <FreeRun::Hook FreeRun::* kHook>
class TreeCheck {
 public:
  TreeCheck(const std::byte* tables, const std::byte* end) : tables_(tables), end_(end) {}

  [[nodiscard]] bool all(const Node* header) {
    const Node* const top = Nodes::get_parent(header);
    if (top == nullptr) return Nodes::get_left(header) == header && Nodes::get_right(header) == header;
    if (!is_record(top) || Nodes::get_color(top) != Nodes::black()) return false;
    return below(top, header, 0) > 0 && Nodes::get_left(header) == first_ && Nodes::get_right(header) == last_;
  }
  [[nodiscard]] const std::vector<const FreeRun*>& runs() const { return runs_; }

 private:
  [[nodiscard]] bool is_record(const Node* node) const {
    const auto at = reinterpret_cast<std::uintptr_t>(&run_of<kHook>(node));
    const auto from = reinterpret_cast<std::uintptr_t>(tables_), to = reinterpret_cast<std::uintptr_t>(end_);
    return at % sizeof(FreeRun) == 0 && at >= from && at < to && to - at >= sizeof(FreeRun);
  }
  // How many black nodes there are on each way down; 0: wrong. Requires: it is a record.
  [[nodiscard]] int below(const Node* node, const Node* parent, int depth) {
    if (depth > kDeepest || Nodes::get_parent(node) != parent) return 0;
    const bool red = Nodes::get_color(node) == Nodes::red();
    const auto side = [&](const Node* child) {
      if (child == nullptr) return 1;
      if (!is_record(child) || (red && Nodes::get_color(child) == Nodes::red())) return 0;
      return below(child, node, depth + 1);
    };
    const int left = side(Nodes::get_left(node));
    if (left == 0) return 0;
    if (first_ == nullptr) first_ = node;
    last_ = node;
    runs_.push_back(&run_of<kHook>(node));
    return side(Nodes::get_right(node)) == left ? left + !red : 0;
  }

  const std::byte* const tables_;
  const std::byte* const end_;
  const Node* first_ = nullptr;
  const Node* last_ = nullptr;
  std::vector<const FreeRun*> runs_;
};

}  // namespace

bool RunAllocator::check(std::string& why, const Range& range, const Range& tables) const {
  const auto wrong = [&](std::string text) {
    why = "free addresses: " + std::move(text);
    return false;
  };
  if (begin_ != address_of(range.begin) || end_ != address_of(range.end)) return wrong("they are of another range");
  TreeCheck<&FreeRun::address_hook> by_address(tables.begin, tables.end);
  if (!by_address.all(by_address_.end().pointed_node())) return wrong("the order by address is no tree");
  Address before = 0;
  std::size_t free = 0;
  for (const FreeRun* const run : by_address.runs()) {
    const bool is_one = run->start < run->end && run->start >= begin_ && run->end <= end_ &&
                        run->start % base::kPageBytes == 0 && run->end % base::kPageBytes == 0;
    if (!is_one || run->start <= before) return wrong(fmt::format("the run at {:#x} cannot be one", run->start));
    before = run->end;
    free += run->bytes();
  }
  if (free != free_bytes_ || by_address.runs().size() != by_address_.size()) {
    return wrong(fmt::format("{} bytes in {} runs are counted; there are {} in {}", free_bytes_, by_address_.size(),
                             free, by_address.runs().size()));
  }
  TreeCheck<&FreeRun::size_hook> by_size(tables.begin, tables.end);
  if (!by_size.all(by_size_.end().pointed_node())) return wrong("the order by size is no tree");
  std::unordered_set<const FreeRun*> all(by_address.runs().begin(), by_address.runs().end());
  const FreeRun* smaller = nullptr;
  for (const FreeRun* const run : by_size.runs()) {
    if (!all.contains(run) || (smaller != nullptr && !FreeRunSizeOrder{}(*smaller, *run))) {
      return wrong("the two orders do not agree");
    }
    smaller = run;
  }
  if (by_size.runs().size() != all.size()) return wrong("the two orders do not agree");
  return pool_.is_sound(tables.begin, tables.end, all) || wrong("the spare records are damaged");
}

}  // namespace farheap::segment
