// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/tier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "pager/leaving.hpp"
#include "store/codec.hpp"

namespace farheap::segment {

using base::kPageBytes;
using pager::PageNumber;
using pager::PageRun;

namespace {

constexpr std::uint32_t kAlone = 8;        // pages of one read; more are a sweep's
constexpr std::size_t kUsualBytes = 1536;  // of a packed page
constexpr std::uint32_t kVain = 64;        // so many pages in a row did not shrink: most of the next are not tried
constexpr std::uint32_t kSkips = 15;       // ... of so many and one, one is
constexpr std::size_t kSlack = 8 * SpanPool::kSpanBytes;  // spans that are begun
constexpr std::uint32_t kMostTogether = 512;
constexpr int kRounds = 16, kMoves = 32;  // of kBackPages pages, and of spans, in one call
constexpr std::size_t kWaste = 8;  // where more than this part of the memory is in no slot, slots are moved together

double microseconds_since(base::Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(base::Clock::now() - since).count();
}

std::uint32_t pages_of(std::span<const pager::Backing::Read> runs) {
  std::uint32_t pages = 0;
  for (const auto& one : runs) pages += one.run.count;
  return pages;
}

}  // namespace

Result<std::unique_ptr<Tier>> Tier::make(pager::Backing& below, pager::Budget& budget, Room room, Written written) {
  if (auto codec = store::find_codec("lz4"); !codec) return fail(std::move(codec.error()));
  const std::uint64_t most_bytes = std::min<std::uint64_t>(room.most_bytes, SpanPool::kMostCapacity / 2);
  auto pool = SpanPool::make(most_bytes);
  if (!pool) return fail(std::move(pool.error()));
  auto index = os::ReservedArray<std::atomic<Word>>::make(room.capacity_pages);
  if (!index) return fail(std::move(index.error()));
  const std::uint64_t most_entries = std::min<std::uint64_t>(most_bytes / SpanPool::kStep, kMostEntries);
  auto entries = os::ReservedArray<Entry>::make(most_entries + 1);  // there is no entry 0
  if (!entries) return fail(std::move(entries.error()));
  auto buffer = os::Mapping::reserve((1 + kBackPages) * kPageBytes, os::Access::kReadWrite);
  if (!buffer) return fail(std::move(buffer.error()));
  return std::unique_ptr<Tier>(new Tier(below, budget, std::move(written), room.least_pages, std::move(*pool),
                                        std::move(*index), std::move(*entries), std::move(*buffer)));
}

Tier::Tier(pager::Backing& below, pager::Budget& budget, Written written, std::uint64_t least_pages, SpanPool pool,
           os::ReservedArray<std::atomic<Word>> index, os::ReservedArray<Entry> entries, os::Mapping buffer)
    : below_(below),
      written_(std::move(written)),
      least_pages_(least_pages),
      tier_budget_(*this, budget),
      buffer_(std::move(buffer)),
      index_(std::move(index)),
      entries_(std::move(entries)),
      pool_(std::move(pool)) {}

std::uint64_t Tier::TierBudget::page_limit(std::uint64_t resident_pages, std::uint64_t coming_pages) {
  const std::uint64_t limit = inner_.page_limit(resident_pages, coming_pages);
  base::LockGuard lock(tier_.mutex_);
  const bool has_room = limit > tier_.least_pages_;
  tier_.share_.memory_is(has_room ? limit + tier_.pool_.held_bytes() / kPageBytes : 0, tier_.least_pages_);
  return limit;
}

// ---- entries

void Tier::push_newest(EntryId id) {
  Entry& entry = entries_[id];
  entry.older = newest_;
  entry.newer = 0;
  (newest_ != 0 ? entries_[newest_].newer : oldest_) = id;
  newest_ = id;
}

void Tier::unlink(EntryId id) {
  const Entry& entry = entries_[id];
  (entry.older != 0 ? entries_[entry.older].newer : oldest_) = entry.newer;
  (entry.newer != 0 ? entries_[entry.newer].older : newest_) = entry.older;
}

bool Tier::put(PageNumber page, std::span<const std::byte> packed, bool is_below) {
  if (pool_.held_bytes() > wanted_bytes() + wanted_bytes() / 4 + kSlack) return share_.spilled(), false;
  EntryId id = free_entries_;
  if (id == 0 && entries_made_ + 1 >= entries_.capacity()) return false;
  if (id == 0) id = entries_made_ + 1;
  const SpanPool::Place place = pool_.take(packed.size(), id);
  if (place == 0) return false;
  id == free_entries_ ? void(free_entries_ = entries_[id].newer) : void(entries_made_ = id);
  std::copy_n(packed.data(), packed.size(), pool_.at(place));
  Entry& entry = entries_[id];
  entry = {};
  entry.page = page;
  entry.place = place;
  entry.stamp = share_.stamp();
  entry.bytes = static_cast<std::uint16_t>(packed.size());
  push_newest(id);
  ++pages_;
  set_word(page, id | (is_below ? kBelow : 0));
  return true;
}

void Tier::release(EntryId id) {
  unlink(id);
  pool_.give_back(entries_[id].place);
  entries_[id] = {};
  entries_[id].newer = free_entries_;
  free_entries_ = id;
  --pages_;
}

void Tier::remove(PageNumber page) {
  const Word word = word_of(page);
  if (word == kBusy) return;
  if (is_entry(word) && entries_[entry_of(word)].leaving) {
    entries_[entry_of(word)].dead = true;
    return set_word(page, kBusy);
  }
  set_word(page, 0);
  if (is_entry(word)) release(entry_of(word));
}

Status Tier::unpack(EntryId id, std::byte* into) const {
  const Entry& entry = entries_[id];
  if (store::unpack({pool_.at(entry.place), entry.bytes}, {into, kPageBytes})) return {};
  return fail(ErrorCode::kCorrupt, "cannot unpack a page", fmt::format("page {}", entry.page),
              "its packed bytes in memory have changed", "check the machine's memory; --set tier=off goes without");
}

bool Tier::renew(PageNumber page) {
  base::LockGuard lock(mutex_);
  const Word word = word_of(page);
  if (!is_entry(word)) return false;
  unlink(entry_of(word));
  entries_[entry_of(word)].stamp = share_.stamp();
  push_newest(entry_of(word));
  return true;
}

// ---- the way out

std::span<const std::byte> Tier::pack(const std::byte* page) {
  if (vain_ >= kVain && ++skipped_ <= kSkips) return {};
  skipped_ = 0;
  const auto since = base::Clock::now();
  const std::size_t size =
      store::pack(store::Codec::kLz4, 1, {page, kPageBytes}, {buffer_.data(), SpanPool::kMostBytes});
  vain_ = size != 0 ? 0 : vain_ + 1;
  const double took = microseconds_since(since);
  base::LockGuard lock(mutex_);
  share_.packed(took);
  return {buffer_.data(), size};
}

bool Tier::take(PageNumber page, const std::byte* bytes, bool is_below) {
  const auto packed = is_open_ ? pack(bytes) : std::span<const std::byte>();
  base::LockGuard lock(mutex_);
  remove(page);
  if (!packed.empty() && put(page, packed, is_below)) return true;
  const bool could_be_here = !is_open_ || !packed.empty();
  went_past(page, could_be_here);
  return false;
}

// The tier keeps no stamp of a page that it would not have if it were larger, either.
void Tier::went_past(PageNumber page, bool could_be_here) {
  const std::uint32_t stamp = share_.stamp();
  set_word(page, could_be_here ? kGone | stamp : 0);
}

Status Tier::write(std::span<const Write> runs) {
  base::UniqueLock turn(writing_);
  const bool takes = flushes_ == 0 && !below_.has_owners();  // a commit does not know what only this one has
  std::size_t soon = 0;
  for (const Write& one : runs) soon += takes && one.soon ? one.run.count : 0;
  if (Status made = make_room(soon * kUsualBytes); !made) return made;
  std::vector<Write> past;
  for (const Write& one : runs) {
    if (!takes || !one.soon) {
      base::LockGuard lock(mutex_);
      for (std::uint32_t i = 0; i < one.run.count; ++i) {
        remove(one.run.first + i);
        went_past(one.run.first + i, !takes && one.soon);
      }
      past.push_back(one);
      continue;
    }
    for (std::uint32_t i = 0; i < one.run.count; ++i) {
      const std::byte* const bytes = one.from + i * kPageBytes;
      if (take(one.run.first + i, bytes, false)) continue;
      pager::add_page(past, one.run.first + i, bytes, kMostTogether, true);
    }
  }
  turn.unlock();
  Status written = past.empty() ? Status{} : below_.write(past);
  for (const Write& one : past) {
    if (written && one.soon) written_(one.run);
  }
  return written;
}

void Tier::offer(std::span<const Write> runs) {
  base::LockGuard turn(writing_);
  std::size_t pages = 0;
  for (const Write& one : runs) pages += one.run.count;
  if (!make_room(pages * kUsualBytes)) return;  // below, they are already; the next write() tells what is wrong
  for (const Write& one : runs) {
    for (std::uint32_t i = 0; i < one.run.count; ++i) {
      // Where it is packed already, it was touched while it was written, and has not changed since.
      if (!renew(one.run.first + i)) (void)take(one.run.first + i, one.from + i * kPageBytes, true);
    }
  }
}

// Not all at once where much is to go: faults wait for who is here, and so do forks.
Status Tier::make_room(std::size_t bytes) {
  for (int round = 0; round < kRounds; ++round) {
    std::size_t chosen = 0;
    {
      base::LockGuard lock(mutex_);
      const std::uint32_t oldest_age = oldest_ == 0 ? 0 : share_.age_of(entries_[oldest_].stamp);
      share_.look(pages_, pool_.held_bytes() / kPageBytes, oldest_age);
      const std::size_t wanted = wanted_bytes();
      is_open_ = wanted != 0;
      const std::size_t room = std::min(bytes, wanted / 4);
      // Free slots may be of other sizes than what comes.
      const auto is_wasteful = [&] {
        const std::size_t held = pool_.held_bytes();
        return held + room > wanted && held - pool_.taken_bytes() > held / kWaste;
      };
      const auto moved = [&](EntryId id, SpanPool::Place place) { entries_[id].place = place; };
      for (int moves = 0; moves < kMoves && readers_ == 0 && is_wasteful(); ++moves) {
        if (!pool_.move_together(moved)) break;
      }
      pool_.drop_empty(wanted == 0 ? 0 : SpanPool::kSpare);
      if (pool_.taken_bytes() + room <= wanted - wanted / kWaste && pool_.held_bytes() <= wanted + wanted / kWaste) {
        return {};
      }
      leaving_.clear();
      share_.spilled();
      chosen = choose_oldest();
    }
    if (chosen == 0) return {};
    if (leaving_.empty()) continue;
    if (Status written = write_chosen(false); !written) return written;
  }
  return {};
}

Status Tier::write_chosen(bool to_keep) {
  back_.clear();
  std::byte* into = buffer_.data() + kPageBytes;
  Status status;
  for (const EntryId id : leaving_) {
    if (status = unpack(id, into); !status) break;
    pager::add_page(back_, entries_[id].page, into, kMostTogether);
    into += kPageBytes;
  }
  if (status && !back_.empty()) status = below_.write(back_);
  for (const Write& one : back_) {
    if (status) written_(one.run);
  }
  // Until it is forgotten there, it counts as being written.
  base::UniqueLock lock(mutex_);
  for (std::size_t i = 0; i < leaving_.size();) {
    Entry& entry = entries_[leaving_[i]];
    if (!std::exchange(entry.forgotten, false)) {
      ++i;
      continue;
    }
    const PageNumber page = entry.page;
    lock.unlock();
    below_.forget({page, 1});
    lock.lock();
    i = 0;  // more may have been forgotten meanwhile
  }
  settle_back(status.has_value(), to_keep);
  return status;
}

// The oldest, those that rest below too among them: these go at once. Returns how many that were.
std::size_t Tier::choose_oldest() {
  std::size_t chosen = 0;
  for (EntryId id = oldest_; id != 0 && chosen < kBackPages;) {
    const Entry& entry = entries_[id];
    const EntryId next = entry.newer;
    if (!entry.reading) {
      ++chosen;
      if ((word_of(entry.page) & kBelow) != 0) {
        set_word(entry.page, kGone | entry.stamp);
        release(id);
      } else {
        choose(id);
      }
    }
    id = next;
  }
  return chosen;
}

// What is only here, from this entry on; also what is being read, for a read may fail and leave it here.
void Tier::choose_to_keep(EntryId& from) {
  for (; from <= entries_made_ && leaving_.size() < kBackPages; ++from) {
    const Entry& entry = entries_[from];
    if (entry.bytes != 0 && (word_of(entry.page) & kBelow) == 0) choose(from);
  }
}

// In the order of pages, so that what lies together is written together.
void Tier::choose(EntryId id) {
  entries_[id].leaving = true;
  const auto by_page = [&](EntryId a, EntryId b) { return entries_[a].page < entries_[b].page; };
  leaving_.insert(std::upper_bound(leaving_.begin(), leaving_.end(), id, by_page), id);
}

void Tier::settle_back(bool written, bool to_keep) {
  for (const EntryId id : leaving_) {
    Entry& entry = entries_[id];
    entry.leaving = false;
    if (entry.dead) {
      set_word(entry.page, 0);
      release(id);
    } else if (written) {
      set_word(entry.page, id | kBelow);
      if (to_keep || entry.reading) continue;
      set_word(entry.page, kGone | entry.stamp);
      release(id);
    }
  }
  leaving_.clear();
}

Status Tier::flush_some(std::uint64_t& from) {
  base::LockGuard turn(writing_);
  EntryId next = static_cast<EntryId>(from) + 1;  // there is no entry 0
  {
    base::LockGuard lock(mutex_);
    leaving_.clear();
    choose_to_keep(next);
  }
  if (leaving_.empty()) {
    from = kFlushed;
    return {};
  }
  if (Status written = write_chosen(true); !written) return written;
  from = next - 1;
  return {};
}

// ---- the way in

void Tier::note_touch(Word word) {
  if (is_entry(word)) {
    share_.touched(share_.age_of(entries_[entry_of(word)].stamp));
  } else if (word != 0 && word != kBusy) {
    share_.missed(share_.age_of(word & ~kGone));
  }
}

Status Tier::read(std::span<const Read> runs) {
  const std::uint32_t pages = pages_of(runs);
  bool any = false;
  {
    base::LockGuard lock(mutex_);
    for (const Read& one : runs) {
      for (std::uint32_t i = 0; i < one.run.count; ++i) {
        const PageNumber page = one.run.first + i;
        const Word word = word_of(page);
        if (pages <= kAlone && i == 0) note_touch(word);  // one fault brings the run
        if (is_entry(word)) {
          entries_[entry_of(word)].reading = any = true;
        } else if (word != 0) {
          set_word(page, 0);
        }
      }
    }
    readers_ += any;
  }
  if (any) return read_mixed(runs);
  const auto since = base::Clock::now();
  Status status = below_.read(runs);
  if (pages > kAlone) return status;
  const double took = microseconds_since(since);
  base::LockGuard lock(mutex_);
  share_.read_took(took);
  return status;
}

// What is to be read from here is marked. First all that can fail, then nothing is kept of it.
Status Tier::read_mixed(std::span<const Read> runs) {
  const auto each_here = [&](const auto& visit) {
    for (const Read& one : runs) {
      for (std::uint32_t i = 0; i < one.run.count; ++i) {
        const Word word = word_of(one.run.first + i);
        if (is_entry(word)) visit(one.run.first + i, entry_of(word), one.into + i * kPageBytes);
      }
    }
  };
  std::vector<Read> below;
  for (const Read& one : runs) {
    for (std::uint32_t i = 0; i < one.run.count; ++i) {
      if (is_entry(word_of(one.run.first + i))) continue;
      std::byte* const into = one.into + i * kPageBytes;
      const bool follows = !below.empty() && below.back().run.first + below.back().run.count == one.run.first + i &&
                           below.back().into + below.back().run.count * kPageBytes == into;
      follows ? void(++below.back().run.count) : below.push_back({{one.run.first + i, 1}, into});
    }
  }
  Status status;
  each_here([&](PageNumber, EntryId id, std::byte* into) {
    if (status) status = unpack(id, into);
  });
  {
    base::LockGuard lock(mutex_);
    --readers_;  // the store may take its time
  }
  if (status && !below.empty()) status = below_.read(below);
  base::LockGuard lock(mutex_);
  each_here([&](PageNumber page, EntryId id, std::byte*) {
    mutex_.assume_held();
    entries_[id].reading = false;
    if (status) remove(page);
  });
  return status;
}

pager::Backing::Rest Tier::where(PageRun run) const {
  Rest rest = below_.where(run);
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const Word word = word_of(run.first + i);
    if (!is_entry(word)) continue;
    ++rest.in_memory;
    if ((word & kBelow) == 0) rest.stays = false;
  }
  return rest;
}

const std::byte* Tier::at_rest(PageRun run) {
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const Word word = word_of(run.first + i);
    if (is_entry(word) || word == kBusy) return nullptr;
  }
  return below_.at_rest(run);
}

// Below, nobody forgets a page while it is being written.
void Tier::forget(PageRun run) {
  PageNumber from = run.first;  // what is not forgotten below yet
  const PageNumber end = run.first + run.count;
  const auto forget_below = [&](PageNumber until) {
    if (until > from) below_.forget({from, static_cast<std::uint32_t>(until - from)});
  };
  for (PageNumber page = run.first; page < end; ++page) {
    if (word_of(page) == 0) continue;
    bool leaving = false;
    {
      base::LockGuard lock(mutex_);
      leaving = is_leaving(page);
      remove(page);
    }
    if (!leaving) continue;
    forget_below(page);
    from = page + 1;
  }
  forget_below(end);
}

// Not while an entry is being written below: it would arrive there afterwards. (What goes past is the pager's
// business.)
void Tier::invalidate(PageRun run) {
  {
    base::LockGuard one(writing_);
    base::LockGuard lock(mutex_);
    for (PageNumber page = run.first; page < run.first + run.count; ++page) remove(page);
  }
  below_.invalidate(run);
}

bool Tier::is_leaving(PageNumber page) {
  for (const EntryId id : leaving_) {
    if (entries_[id].page != page) continue;
    entries_[id].forgotten = true;
    return true;
  }
  return false;
}

class Tier::InFlight final : public Reads {
 public:
  InFlight(Tier& tier, std::unique_ptr<Reads> below, unsigned most)
      : tier_(tier), below_(std::move(below)), began_(most) {}

  bool begin(unsigned number, const Read& read) override {
    if (tier_.where(read.run).in_memory != 0) return false;
    if (!below_->begin(number, read)) return false;
    began_[number] = {};
    if (read.run.count > kAlone) return true;
    began_[number] = base::Clock::now();
    base::LockGuard lock(tier_.mutex_);
    for (std::uint32_t i = 0; i < read.run.count; ++i) {
      const Word word = tier_.word_of(read.run.first + i);
      if (i == 0) tier_.note_touch(word);
      if (word != 0) tier_.set_word(read.run.first + i, 0);
    }
    return true;
  }
  std::optional<Answer> take() override {
    const auto answer = below_->take();
    if (answer && began_[answer->number] != base::Clock::time_point{}) {
      base::LockGuard lock(tier_.mutex_);
      tier_.share_.read_took(microseconds_since(began_[answer->number]));
    }
    return answer;
  }
  int descriptor() const override { return below_->descriptor(); }

 private:
  Tier& tier_;
  std::unique_ptr<Reads> below_;
  std::vector<base::Clock::time_point> began_;
};

std::unique_ptr<pager::Backing::Reads> Tier::reads_in_flight(unsigned most) {
  auto below = below_.reads_in_flight(most);
  return below ? std::make_unique<InFlight>(*this, std::move(below), most) : nullptr;
}

// ---- the rest

void Tier::lock_for_fork() {
  writing_.lock();
  mutex_.lock();
}

void Tier::unlock_in_parent() {
  mutex_.unlock();
  writing_.unlock();
}

// Who flushed is not here.
void Tier::unlock_in_child() {
  flushes_ = 0;
  unlock_in_parent();
}

Tier::Facts Tier::facts() const {
  base::LockGuard lock(mutex_);
  return {pages_, pool_.held_bytes(), wanted_bytes()};
}

std::string Tier::check() const {
  base::LockGuard lock(mutex_);
  std::uint64_t pages = 0;
  EntryId older = 0;
  for (EntryId id = oldest_; id != 0; older = id, id = entries_[id].newer, ++pages) {
    const Entry& entry = entries_[id];
    if (entry.older != older) return fmt::format("entry {} does not follow {}", id, older);
    if (entry.reading || entry.leaving || entry.dead) return fmt::format("entry {} is on its way", id);
    const Word word = word_of(entry.page);
    if (!is_entry(word) || entry_of(word) != id) return fmt::format("page {} does not name its entry", entry.page);
  }
  if (newest_ != older) return "the queue does not end with its newest entry";
  if (pages != pages_) return fmt::format("{} entries, {} counted", pages, pages_);
  return {};
}

}  // namespace farheap::segment
