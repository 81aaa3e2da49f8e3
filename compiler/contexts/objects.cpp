// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "objects.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "threads.hpp"

// Its bits are mixed into tags: never 0, so that a slot that was not used yet matches nothing.
std::uint64_t __farheap_objects_epoch = 0x9E3779B97F4A7C15;

namespace farheap::contexts {
namespace {

constexpr unsigned kPageShift = 12, kUnitShift = 4, kAddressBits = 47;
constexpr std::size_t kUnits = std::size_t{1} << (kPageShift - kUnitShift);  // of a page
constexpr std::size_t kPages = std::size_t{1} << (kAddressBits - kPageShift);
constexpr std::size_t kListRoom = std::size_t{1} << 27;  // lists of units, 512 bytes each, as they are used
constexpr std::uint32_t kIsList = 1u << 31;
constexpr std::uint64_t kEpochStep = 0x9E3779B97F4A7C15 * 2;  // an even step from an odd number never meets 0
constexpr std::size_t kTableRoom = std::size_t{1} << 17;
constexpr std::uint32_t kOtherSites = kMostSites + 1;

using Unit = std::atomic<std::uint16_t>;
struct List {
  Unit units[kUnits];
};

std::atomic<std::atomic<std::uint32_t>*> g_pages{nullptr};  // a site, or a list's number
List* g_lists = nullptr;
std::atomic<std::uint32_t> g_lists_made{0};
std::atomic_flag g_is_making = ATOMIC_FLAG_INIT;
bool g_has_failed = false;

Site g_sites[kOtherSites + 1];
std::atomic<std::uint32_t> g_sites_made{0};
std::atomic<std::uint16_t> g_table[kTableRoom];

// Without memory behind it until it is touched.
void* reserve(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, bytes, MADV_DONTDUMP);
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  return memory;
}

void lock() {
  while (g_is_making.test_and_set(std::memory_order_acquire)) sched_yield();
}
void unlock() { g_is_making.clear(std::memory_order_release); }

// nullptr: there are no addresses for them (ulimit -v), and no sites are known.
std::atomic<std::uint32_t>* make_pages() {
  lock();
  auto* made = g_pages.load(std::memory_order_relaxed);
  if (made == nullptr && !g_has_failed) {
    g_lists = static_cast<List*>(reserve(kListRoom * sizeof(List)));
    made = static_cast<std::atomic<std::uint32_t>*>(reserve(kPages * sizeof(std::uint32_t)));
    g_has_failed = g_lists == nullptr || made == nullptr;
    if (g_has_failed) made = nullptr;
    g_pages.store(made, std::memory_order_release);
  }
  unlock();
  return made;
}

std::atomic<std::uint32_t>* pages() {
  auto* const made = g_pages.load(std::memory_order_acquire);
  return made != nullptr ? made : make_pages();
}

bool put(Unit& unit, std::uint16_t site) {
  const std::uint16_t before = unit.load(std::memory_order_relaxed);
  if (before != site) unit.store(site, std::memory_order_relaxed);
  return before != site && before != kNoSite;
}

// A list for the page, which says what the page's word said.
List* list_of(std::atomic<std::uint32_t>& page) {
  std::uint32_t word = page.load(std::memory_order_acquire);
  if ((word & kIsList) != 0) return &g_lists[word & ~kIsList];
  const std::uint32_t number = g_lists_made.fetch_add(1, std::memory_order_relaxed);
  if (number >= kListRoom) return nullptr;
  List* const made = &g_lists[number];
  do {
    if ((word & kIsList) != 0) return &g_lists[word & ~kIsList];  // another thread was faster; this list is lost
    if (word != kNoSite) {
      for (Unit& unit : made->units) unit.store(static_cast<std::uint16_t>(word), std::memory_order_relaxed);
    }
  } while (!page.compare_exchange_weak(word, number | kIsList, std::memory_order_acq_rel, std::memory_order_acquire));
  return made;
}

// True if any of it was another site's.
bool mark_part(std::atomic<std::uint32_t>& page, std::size_t first, std::size_t end, std::uint16_t site) {
  if (page.load(std::memory_order_relaxed) == site) return false;
  List* const list = list_of(page);
  if (list == nullptr) return false;
  bool changes = false;
  for (std::size_t unit = first; unit < end; ++unit) changes |= put(list->units[unit], site);
  return changes;
}

bool mark_whole(std::atomic<std::uint32_t>& page, std::uint16_t site) {
  const std::uint32_t word = page.load(std::memory_order_relaxed);
  if ((word & kIsList) != 0) return mark_part(page, 0, kUnits, site);
  if (word != site) page.store(site, std::memory_order_relaxed);
  return word != site && word != kNoSite;
}

void mark(const void* object, std::size_t bytes, std::uint16_t site) {
  const auto begin = reinterpret_cast<std::uintptr_t>(object);
  if (bytes == 0 || begin + bytes > (std::uintptr_t{1} << kAddressBits)) return;
  auto* const table = pages();
  if (table == nullptr) return;
  const std::uintptr_t first = begin >> kUnitShift, end = ((begin + bytes - 1) >> kUnitShift) + 1;
  bool changes = false;
  for (std::uintptr_t unit = first; unit < end;) {
    const std::uintptr_t page = unit / kUnits;
    const std::uintptr_t last = std::min(end, (page + 1) * kUnits);
    changes |= last - unit == kUnits ? mark_whole(table[page], site)
                                     : mark_part(table[page], unit % kUnits, last - page * kUnits, site);
    unit = last;
  }
  if (changes) std::atomic_ref(__farheap_objects_epoch).fetch_add(kEpochStep, std::memory_order_relaxed);
}

const Node* context_of(std::uint32_t number) {
  return std::atomic_ref(g_sites[number].context).load(std::memory_order_relaxed);
}

std::size_t first_row(const Node* context, std::uintptr_t returns_to) {
  const std::uint64_t mixed =
      (reinterpret_cast<std::uintptr_t>(context) * 31 + returns_to) * std::uint64_t{0x9E3779B97F4A7C15};
  return (mixed >> 32) & (kTableRoom - 1);
}

// The row of the site, or the empty one where it belongs.
std::atomic<std::uint16_t>& row_of(const Node* context, std::uintptr_t returns_to) {
  for (std::size_t row = first_row(context, returns_to);; row = (row + 1) & (kTableRoom - 1)) {
    const std::uint16_t number = g_table[row].load(std::memory_order_acquire);
    if (number == kNoSite) return g_table[row];
    if (context_of(number) == context && g_sites[number].returns_to == returns_to) return g_table[row];
  }
}

std::uint32_t site_for(const Node* context, std::uintptr_t returns_to) {
  if (const std::uint16_t known = row_of(context, returns_to).load(std::memory_order_acquire)) return known;
  lock();
  std::atomic<std::uint16_t>& row = row_of(context, returns_to);
  std::uint32_t number = row.load(std::memory_order_relaxed);
  if (number == kNoSite) {
    const std::uint32_t made = g_sites_made.load(std::memory_order_relaxed);
    number = made < kMostSites ? made + 1 : kOtherSites;
    if (made < kMostSites) {
      g_sites[number].context = context;
      g_sites[number].returns_to = returns_to;
      g_sites_made.store(number, std::memory_order_release);
      row.store(static_cast<std::uint16_t>(number), std::memory_order_release);
    }
  }
  unlock();
  return number;
}

void add(std::uint64_t& to, std::uint64_t more) { std::atomic_ref(to).fetch_add(more, std::memory_order_relaxed); }

}  // namespace

std::uint32_t site_at(std::uint64_t address) {
  const auto* const table = g_pages.load(std::memory_order_acquire);
  if (table == nullptr || address >> kAddressBits != 0) return kNoSite;
  const std::uint32_t word = table[address >> kPageShift].load(std::memory_order_acquire);
  if ((word & kIsList) == 0) return word;
  return g_lists[word & ~kIsList].units[(address >> kUnitShift) % kUnits].load(std::memory_order_relaxed);
}

void allocated(const void* object, std::size_t bytes, std::size_t room, const void* returns_to) {
  if (object == nullptr) return;
  const std::uint32_t number = site_for(current_node(), reinterpret_cast<std::uintptr_t>(returns_to));
  mark(object, bytes == 0 ? 1 : bytes, static_cast<std::uint16_t>(number));
  Site& one = g_sites[number];
  add(one.objects, 1);
  add(one.allocated_bytes, bytes);
  const std::uint64_t live = std::atomic_ref(one.live_bytes).fetch_add(room, std::memory_order_relaxed) + room;
  std::uint64_t peak = std::atomic_ref(one.peak_bytes).load(std::memory_order_relaxed);
  while (peak < live && live >> 63 == 0 && !std::atomic_ref(one.peak_bytes).compare_exchange_weak(peak, live)) {
  }
}

void freed(const void* object, std::size_t room) {
  if (object == nullptr) return;
  freed_of(site_at(reinterpret_cast<std::uintptr_t>(object)), room);
}

void freed_of(std::uint32_t site, std::size_t room) {
  if (site != kNoSite) add(g_sites[site].live_bytes, -std::uint64_t{room});
}

// A row is found by what its site's context was, and matches that no more: where the context above allocates at the
// same call, it has a site of its own.
void SiteNodes::move(const Moved& moved) {
  lock();
  const std::uint32_t made = g_sites_made.load(std::memory_order_relaxed);
  for (std::uint32_t number = 1; number <= made; ++number) {
    const Node* const before = context_of(number);
    const Node* const now = moved.now(before);
    if (now != before) std::atomic_ref(g_sites[number].context).store(now, std::memory_order_relaxed);
  }
  unlock();
}

std::uint32_t sites_made() { return g_sites_made.load(std::memory_order_acquire); }
const Site& site(std::uint32_t number) { return g_sites[number]; }

void forget_allocations() {
  for (std::uint32_t number = 1; number <= sites_made(); ++number) {
    Site& one = g_sites[number];
    one.objects = one.allocated_bytes = 0;
    one.peak_bytes = one.live_bytes;
  }
  unlock();
}

}  // namespace farheap::contexts
