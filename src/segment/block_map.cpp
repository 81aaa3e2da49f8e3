// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/block_map.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/units.hpp"

namespace farheap::segment {

using base::kPageBytes;
using pager::PageNumber;

Result<std::unique_ptr<BlockMap>> BlockMap::make(Store& store, std::uint64_t capacity_pages) {
  auto extents = os::ReservedArray<Extent*>::make(capacity_pages / kPages + 1);
  if (!extents) return fail(std::move(extents.error()));
  // Room for the segment and for what forked children still refer to.
  const std::uint64_t capacity = std::min<std::uint64_t>(2 * capacity_pages, std::uint64_t{1} << 31);
  auto* const copied = store::copied_by_fork(store);
  auto slots = SlotTable::make(capacity, copied == nullptr);
  if (!slots) return fail(std::move(slots.error()));
  auto family = copied == nullptr ? Family::make(capacity) : Result<std::unique_ptr<Family>>(Family::none());
  if (!family) return fail(std::move(family.error()));
  return std::unique_ptr<BlockMap>(
      new BlockMap(store, copied, std::move(*extents), std::move(*slots), std::move(*family)));
}

BlockMap::BlockMap(Store& store, store::CopiedByFork* copied, os::ReservedArray<Extent*> extents, SlotTable slots,
                   std::unique_ptr<Family> family)
    : store_(store),
      copied_(copied),
      extents_(std::move(extents)),
      slots_(std::move(slots)),
      family_(std::move(family)) {}

BlockMap::~BlockMap() {
  for (std::uint64_t i = 0; i < extents_end_; ++i) {
    if (extents_[i] != nullptr) forget({i * kPages, kPages});
    if (extents_[i] != nullptr) drop_extent(i);  // nothing was stored there any more
  }
}

BlockMap::Extent& BlockMap::extent(std::uint64_t number) {
  if (extents_[number] == nullptr) {
    extents_[number] = new Extent;
    extents_end_ = std::max(extents_end_, number + 1);
  }
  return *extents_[number];
}

template <class VisitGroup, class VisitSlot>
void BlockMap::for_each_reference(VisitGroup visit_group, VisitSlot visit_slot) {
  for (std::uint64_t i = 0; i < extents_end_; ++i) {
    if (extents_[i] == nullptr) continue;
    for (const SlotGroup group : extents_[i]->groups) visit_group(group);
    for (std::uint32_t page = 0; page < kPages; ++page) {
      if (extents_[i]->stored[page]) visit_slot(extents_[i]->slot(page));
    }
  }
}

Result<pager::Backing::Stored> BlockMap::stored_from(PageNumber first) {
  base::LockGuard lock(mutex_);
  const Extent* const extent = extents_[first / kPages];
  return extent != nullptr ? extent->stored : Stored();
}

Slot BlockMap::slot_of(PageNumber page) const {
  base::LockGuard lock(mutex_);
  const Extent* extent = extents_[page / kPages];
  if (extent == nullptr || !extent->stored[page % kPages]) return kNoSlot;
  return extent->slot(page % kPages);
}

bool BlockMap::take_in_group(Extent& extent, std::uint16_t group, std::uint32_t index) {
  const Slot slot = extent.groups[group] * kGroupSlots + index;
  if (!slots_.take(slot)) return false;
  family_->note(family_->self(), slot);
  if (group != 0 && !extent.stray) extent.stray = std::make_unique<std::uint16_t[]>(kPages);
  if (extent.stray) extent.stray[index] = group;
  extent.stored.set(index);
  return true;
}

// A slot of its own for a page that is about to be written: the one it has, if nobody else refers to that; the
// nearest to home otherwise. kNoSlot when the store's numbers are used up.
Slot BlockMap::place(Extent& extent, std::uint32_t index) {
  if (extent.stored[index]) {
    const Slot slot = extent.slot(index);
    if (!slots_.is_shared(slot)) return slot;
    extent.stored.reset(index);
    // Released by the others between the look and now: free, and taken again below.
    if (release(slot, family_->self()))
      base::log(base::LogLevel::kDebug, "slot {} became free while it was left", slot);
  }
  for (std::size_t group = 0; group < 65536; ++group) {
    if (group == extent.groups.size()) {
      const SlotGroup taken = slots_.take_group(last_group_);
      if (taken == kNoGroup) return kNoSlot;
      last_group_ = taken;
      family_->note_group(family_->self(), taken);
      extent.groups.push_back(taken);
    }
    if (take_in_group(extent, static_cast<std::uint16_t>(group), index)) return extent.slot(index);
  }
  return kNoSlot;
}

Status BlockMap::check_usable() const {
  if (!cut_off_) return {};
  return fail(ErrorCode::kUnavailable, "cannot go on in a forked process", store_.describe(),
              "this kind of store does not survive fork()", "run programs that fork with the store file:DIR");
}

void BlockMap::unlock_in_child() {
  cut_off_ = !has(store_.capabilities(), Capability::kForks);
  if (copied_ != nullptr) copied_->after_fork_in_child();
  family_->arrive();
  mutex_.unlock();
}

Status BlockMap::read(std::span<const Read> runs) {
  if (Status usable = check_usable(); !usable) return usable;
  const std::size_t largest = longest_read(store_);
  std::vector<SlotRead> entries;
  {
    base::LockGuard lock(mutex_);
    for (const Read& one : runs) {
      for (std::uint32_t i = 0; i < one.run.count; ++i) {
        const PageNumber page = one.run.first + i;
        const Extent* extent = extents_[page / kPages];
        if (extent == nullptr || !extent->stored[page % kPages]) {
          return fail(ErrorCode::kCorrupt, "cannot read a page", fmt::format("page {}", page), "it is in no slot");
        }
        append(entries, extent->slot(page % kPages), one.into + i * kPageBytes, largest);
      }
    }
  }
  return read_slots(store_, entries);
}

Slot BlockMap::slots_in_sequence(pager::PageRun run) const {
  base::LockGuard lock(mutex_);
  Slot first = kNoSlot;
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const PageNumber page = run.first + i;
    const Extent* extent = extents_[page / kPages];
    if (extent == nullptr || !extent->stored[page % kPages]) return kNoSlot;
    const Slot slot = extent->slot(page % kPages);
    if (i == 0) first = slot;
    if (slot != first + i) return kNoSlot;
  }
  return first;
}

// Nobody writes to a slot that a page of ours is in: what forked processes have in common with us is written anew,
// elsewhere, by who changes it.
const std::byte* BlockMap::at_rest(pager::PageRun run) {
  if (cut_off_) return nullptr;
  const Slot first = slots_in_sequence(run);
  return first == kNoSlot ? nullptr : store_.find_in_memory(first, run.count);
}

// One entry of the store a read: what is scattered over several runs of slots is left to read().
class BlockMap::InFlight final : public Reads {
 public:
  InFlight(const BlockMap& map, std::unique_ptr<GetsInFlight> gets, unsigned most)
      : map_(map), gets_(std::move(gets)), entries_(most) {}

  bool begin(unsigned number, const Read& read) override {
    if (map_.cut_off_) return false;
    const Slot first = map_.slots_in_sequence(read.run);
    if (first == kNoSlot) return false;
    entries_[number] = {.block = first, .into = {read.into, read.run.count * kPageBytes}};
    return gets_->begin(entries_[number]);
  }

  std::optional<Answer> take() override {
    const Get* answered = gets_->take();
    if (answered == nullptr) return {};
    return Answer{static_cast<unsigned>(answered - entries_.data()), answered->outcome == Outcome::kOk};
  }

  int descriptor() const override { return gets_->descriptor(); }

 private:
  const BlockMap& map_;
  std::unique_ptr<GetsInFlight> gets_;
  std::vector<Get> entries_;
};

std::unique_ptr<pager::Backing::Reads> BlockMap::reads_in_flight(unsigned most) {
  auto gets = store_.gets_in_flight(most);
  return gets ? std::make_unique<InFlight>(*this, std::move(gets), most) : nullptr;
}

Status BlockMap::write(std::span<const Write> runs) {
  if (Status usable = check_usable(); !usable) return usable;
  std::vector<SlotWrite> entries;
  const bool placed = place_all(runs, entries);
  Status status = placed
                      ? write_slots(store_, entries)
                      : fail(ErrorCode::kNoSpace, "cannot write a page", store_.describe(), "all its slots are taken");
  for (const auto& entry : entries) {
    for (std::uint32_t i = 0; i < entry.count; ++i) family_->end_write(static_cast<Slot>(entry.first + i));
  }
  return status;
}

// False when the store's numbers are used up.
bool BlockMap::place_all(std::span<const Write> runs, std::vector<SlotWrite>& entries) {
  const std::size_t largest = longest_write(store_);
  base::LockGuard lock(mutex_);
  take_back_from_the_dead();
  for (const Write& one : runs) {
    for (std::uint32_t i = 0; i < one.run.count; ++i) {
      const PageNumber page = one.run.first + i;
      const Slot slot = place(extent(page / kPages), page % kPages);
      if (slot == kNoSlot) return false;
      family_->begin_write(slot);
      note_slot(page, slot);
      append(entries, slot, one.from + i * kPageBytes, largest);
    }
  }
  return true;
}

// Lets go of a page's slot. A slot that is ours alone joins `freed`; it stays taken until its bytes are erased, so
// that no forked child can take it and write to it in between.
void BlockMap::give_up(Extent& extent, std::uint32_t index, std::vector<Slot>& freed) {
  const Slot slot = extent.slot(index);
  extent.stored.reset(index);
  if (extent.stray) extent.stray[index] = 0;
  if (slots_.is_shared(slot)) {
    (void)release(slot, family_->self());
  } else {
    freed.push_back(slot);
  }
}

void BlockMap::erase(Slot first, std::uint64_t count) {
  if (cut_off_) return;
  if (Status status = store_.erase(first, count); !status) {
    base::log(base::LogLevel::kWarn, "{}", status.error().message());  // space is lost, no data
  }
}

bool BlockMap::release(Slot slot, Family::Member holder) {
  family_->forget(holder, slot);
  return slots_.release(slot);
}

void BlockMap::erase_and_release(std::vector<Slot>& freed, Family::Member holder) {
  std::sort(freed.begin(), freed.end());
  for (std::size_t i = 0; i < freed.size();) {
    std::size_t end = i + 1;
    while (end < freed.size() && freed[end] == freed[end - 1] + 1) ++end;
    // Small holes go when the whole group does.
    if (end - i >= kLeastHole) erase(freed[i], end - i);
    for (; i < end; ++i) (void)release(freed[i], holder);
  }
  freed.clear();
}

void BlockMap::release_group(SlotGroup group, Family::Member holder) {
  if (slots_.is_empty_and_mine_alone(group)) erase(group * kGroupSlots, kGroupSlots);
  family_->forget_group(holder, group);
  slots_.release_group(group);
}

void BlockMap::drop_extent(std::uint64_t number) {
  Extent* extent = extents_[number];
  for (const SlotGroup group : extent->groups) release_group(group, family_->self());
  delete extent;
  extents_[number] = nullptr;
}

void BlockMap::forget(pager::PageRun run) {
  std::vector<Slot> freed;
  base::LockGuard lock(mutex_);
  const PageNumber end = run.first + run.count;
  for (PageNumber page = run.first; page < end;) {
    const PageNumber stop = std::min<PageNumber>((page / kPages + 1) * kPages, end);
    if (Extent* extent = extents_[page / kPages]; extent != nullptr) {
      for (PageNumber one = page; one < stop; ++one) {
        if (!extent->stored[one % kPages]) continue;
        give_up(*extent, one % kPages, freed);
        note_slot(one, kNoSlot);
      }
      erase_and_release(freed, family_->self());
      if (extent->stored.none()) drop_extent(page / kPages);
    }
    page = stop;
  }
}

void BlockMap::take_back_from_the_dead() {
  for (Family::Member dead; (dead = family_->find_dead()) != Family::kUnknown;) {
    std::vector<Slot> freed;
    family_->each_slot(dead, [&](Slot slot) {
      if (slots_.is_shared(slot)) {
        (void)release(slot, dead);
      } else {
        freed.push_back(slot);
      }
    });
    erase_and_release(freed, dead);
    family_->each_group(dead, [&](SlotGroup group) {
      if (!family_->holds_any_of(dead, group)) release_group(group, dead);
    });
    family_->bury(dead);
  }
}

void BlockMap::lock_for_fork() {
  mutex_.lock();
  if (copied_ != nullptr) return copied_->before_fork();
  take_back_from_the_dead();
  const Family::Member child = family_->expect_child();
  for_each_reference(
      [&](SlotGroup group) {
        slots_.share_group(group);
        family_->note_group(child, group);
      },
      [&](Slot slot) {
        slots_.share(slot);
        family_->note(child, slot);
      });
}

void BlockMap::unlock_after_fork(bool forked) {
  if (copied_ != nullptr) {
    copied_->after_fork_in_parent(forked);
  } else if (!forked) {
    const Family::Member child = family_->child();
    for_each_reference([&](SlotGroup group) { release_group(group, child); },
                       [&](Slot slot) { (void)release(slot, child); });
    family_->give_up_child();
  }
  mutex_.unlock();
}

}  // namespace farheap::segment
