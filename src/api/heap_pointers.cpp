// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heap::foreign_pointers(): all that is allocated is read, word by word. What lies in memory that is no object of the
// directory belongs to the object that leads there; that is found by following every word that points into the heap.
#include <algorithm>
#include <deque>
#include <farheap/farheap.hpp>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "api/heap_state.hpp"
#include "base/units.hpp"

namespace farheap {
namespace {

using base::kPageBytes;
using Word = std::uint64_t;

constexpr std::size_t kMostWords = 1'000'000;     // that are kept one by one
constexpr std::size_t kMostFollowed = 4'000'000;  // allocations, to find whose they are
constexpr std::size_t kMostPlaces = 1000;

bool is_text(Word word) {
  for (; word != 0; word >>= 8) {
    const auto byte = static_cast<unsigned char>(word & 0xff);
    if (byte < 0x20 || byte > 0x7e) return false;
  }
  return true;
}

// Where Linux puts programs and their heaps, and libraries, mappings and stacks (x86-64, position-independent).
bool looks_like_pointer(Word word) {
  const bool is_program = word >= 0x5500'0000'0000 && word < 0x5700'0000'0000;
  const bool is_mapping = word >= 0x7e00'0000'0000 && word < 0x8000'0000'0000;
  return is_mapping || (is_program && !is_text(word));
}

struct Found {
  std::uintptr_t begin;  // of the allocation
  std::uint64_t bytes;
  std::uint64_t offset;
  Word value;
};

struct Owner {
  const api::ObjectRecord* record = nullptr;
  bool is_own = false;  // it lies in the object's own bytes
};

class PointerSearch {
 public:
  PointerSearch(const segment::KeptSegment& segment, const HeapRoot& root) : segment_(segment), root_(root) {}

  [[nodiscard]] Result<ForeignPointers> run() {
    for (const api::ObjectRecord* one = root_.directory.oldest(); one != nullptr; one = one->newer) {
      objects_.emplace(address(one->object), one);
    }
    root_.books.visit_at_rest([&](const void* at, std::size_t bytes) {
      for_each_word(address(at), bytes,
                    [&](std::uint64_t offset, Word word) { look(address(at), bytes, offset, word); });
    });
    if (failed_) return fail(std::move(*failed_));
    if (!found_.empty()) find_owners();
    return failed_ ? Result<ForeignPointers>(fail(std::move(*failed_))) : told();
  }

 private:
  static std::uintptr_t address(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }
  [[nodiscard]] std::uintptr_t base() const { return address(segment_.base()); }

  [[nodiscard]] bool is_in_heap(Word word) const {
    const auto& moved = segment_.moved();
    const std::uint64_t bytes = segment_.capacity_bytes();
    return word - base() < bytes || (moved.is_needed() && word - moved.from < bytes);
  }

  // Pages that the version does not hold are zeros, and are not touched.
  [[nodiscard]] bool is_held(std::uint64_t page) {
    const std::uint64_t extent = page / 512;
    if (extent != extent_) {
      auto stored = segment_.stored_from(extent * 512);
      if (!stored) {
        failed_ = std::move(stored.error());
        return false;
      }
      stored_ = *stored;
      extent_ = extent;
    }
    return stored_.test(page % 512);
  }
  template <class Visit>
  void for_each_word(std::uintptr_t begin, std::uint64_t bytes, const Visit& visit) {
    for (std::uint64_t at = 0; at + sizeof(Word) <= bytes && !failed_;) {
      const std::uint64_t left_on_page = kPageBytes - (begin + at) % kPageBytes;
      const std::uint64_t end = std::min(at + left_on_page, bytes / sizeof(Word) * sizeof(Word));
      if (is_held((begin + at - base()) / kPageBytes)) {
        for (std::uint64_t i = at; i < end; i += sizeof(Word)) visit(i, *reinterpret_cast<const Word*>(begin + i));
      }
      at = end;
    }
  }

  // The object whose own bytes the address is among.
  [[nodiscard]] const api::ObjectRecord* object_at(std::uintptr_t at) const {
    auto next = objects_.upper_bound(at);
    if (next == objects_.begin()) return nullptr;
    const api::ObjectRecord* const one = std::prev(next)->second;
    return at - address(one->object) < one->length * one->element_bytes ? one : nullptr;
  }

  void look(std::uintptr_t begin, std::uint64_t bytes, std::uint64_t offset, Word word) {
    if (!looks_like_pointer(word) || is_in_heap(word)) return;
    // What points to tables of virtual functions is put right whenever the heap is opened.
    const api::ObjectRecord* const object = object_at(begin + offset);
    if (object != nullptr && (object->flags & api::ObjectRecord::kPolymorphic) != 0 &&
        (begin + offset - address(object->object)) % object->element_bytes == 0) {
      return;
    }
    ++words_;
    if (found_.size() < kMostWords) found_.push_back({begin, bytes, offset, word});
  }

  // Breadth first, from all objects at once.
  void find_owners() {
    std::deque<std::tuple<std::uintptr_t, std::uint64_t, const api::ObjectRecord*>> next;
    std::unordered_set<std::uintptr_t> seen;
    for (const Found& one : found_) owners_.try_emplace(one.begin);
    for (const auto& [at, one] : objects_) {
      const auto extent = root_.books.object_at(one->object);
      if (extent.begin == nullptr || !seen.insert(address(extent.begin)).second) continue;
      next.emplace_back(at, one->length * one->element_bytes, one);
      if (const auto found = owners_.find(address(extent.begin)); found != owners_.end()) found->second = {one, true};
    }
    while (!next.empty() && !failed_) {
      const auto [begin, bytes, owner] = next.front();
      next.pop_front();
      for_each_word(begin, bytes, [&, by = owner](std::uint64_t, Word word) {
        if (word - base() >= segment_.capacity_bytes() || seen.size() >= kMostFollowed) return;
        const auto extent = root_.books.object_at(reinterpret_cast<const void*>(word));
        if (extent.begin == nullptr || !seen.insert(address(extent.begin)).second) return;
        next.emplace_back(address(extent.begin), extent.bytes, by);
        if (const auto found = owners_.find(address(extent.begin)); found != owners_.end()) found->second = {by, false};
      });
    }
  }

  [[nodiscard]] ForeignPointers told() const {
    using Key = std::tuple<const api::ObjectRecord*, bool, std::uint64_t, std::uint64_t>;
    std::map<Key, ForeignPointers::Place> places;
    for (const Found& one : found_) {
      const api::ObjectRecord* const object = object_at(one.begin + one.offset);
      const Owner owner = object != nullptr ? Owner{object, true} : owners_.at(one.begin);
      const std::uint64_t bytes = owner.is_own ? owner.record->element_bytes : one.bytes;
      const std::uint64_t offset =
          owner.is_own ? (one.begin + one.offset - address(owner.record->object)) % bytes : one.offset;
      // In memory that an object leads to, elements are not known: one place for each size.
      auto& place = places[{owner.record, owner.is_own, bytes, owner.is_own ? offset : 0}];
      if (place.count++ != 0) continue;
      place.is_own = owner.is_own;
      place.bytes = bytes;
      place.offset = offset;
      place.address = one.begin + one.offset;
      place.value = one.value;
      if (owner.record == nullptr) continue;
      place.object = owner.record->name == nullptr ? "" : owner.record->name;
      place.kind = static_cast<ObjectKind>(owner.record->kind);
      place.object_address = address(owner.record->object);
      place.type = owner.record->type;
    }
    ForeignPointers all{.words = words_, .places = {}, .left_out = 0};
    for (auto& [key, place] : places) all.places.push_back(std::move(place));
    std::ranges::stable_sort(all.places, std::ranges::greater(), &ForeignPointers::Place::count);
    if (all.places.size() > kMostPlaces) {
      all.left_out = all.places.size() - kMostPlaces;
      all.places.resize(kMostPlaces);
    }
    return all;
  }

  const segment::KeptSegment& segment_;
  const HeapRoot& root_;
  std::map<std::uintptr_t, const api::ObjectRecord*> objects_;
  std::vector<Found> found_;
  std::uint64_t words_ = 0;
  std::unordered_map<std::uintptr_t, Owner> owners_;  // of allocations with something found
  std::uint64_t extent_ = UINT64_MAX;
  pager::Backing::Stored stored_;
  std::optional<Error> failed_;
};

}  // namespace

Result<ForeignPointers> Heap::foreign_pointers(std::string_view uri) {
  if (Status sound = check(uri); !sound) return fail(std::move(sound.error()));
  auto opened = State::make(uri, {}, State::How::kCheck);
  if (!opened) return fail(std::move(opened.error()));
  const State& state = *opened->state_;
  return PointerSearch(*state.segment, state.root()).run();
}

}  // namespace farheap
