// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: a site's live bytes are kSamplePageBytes for each page that owners_ says it has.
#include "profile/recorder.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <ranges>

#include "base/clock.hpp"
#include "base/inside_runtime.hpp"
#include "base/log.hpp"
#include "base/raise_to.hpp"
#include "base/units.hpp"
#include "heap/size_classes.hpp"
#include "os/copy_memory.hpp"
#include "os/drop_memory.hpp"
#include "profile/page_sampler.hpp"
#include "segment/at_the_tables.hpp"

namespace farheap::profile {

namespace {

constexpr std::uint64_t kObjectUnit = 16;
constexpr unsigned kMostFrames = 32;   // of an allocation's stack
constexpr int kMostRecordings = 1000;  // of one process number: a program that executes another keeps it
constexpr auto kRelaxed = std::memory_order_relaxed;

// A look takes about five microseconds: so many are less than a hundredth of the time.
constexpr std::uint32_t kMostLooks = 20;  // in a period
constexpr std::int64_t kPeriodNs = 10'000'000;
constexpr std::uint32_t kMostOneInLog2 = 8;

// For touches of small objects.
constexpr std::int64_t kNsOfWeight = 1000, kMostNsBetween = 100'000'000, kTouchesOfMean = 64;

// What begun() answers for ended(): the place, how many faults it speaks for, and that it was looked at.
constexpr unsigned kWeightShift = 24;
constexpr std::uint32_t kLookedAt = 1u << 31;
constexpr std::uint32_t kPlaceMask = (1u << kWeightShift) - 1;

// Who took something back while the recorder was attached anew may have taken it from what never had it: below zero.
void add_live(std::atomic<std::uint64_t>& live, std::atomic<std::uint64_t>& peak, std::uint64_t bytes) {
  const std::uint64_t value = live.fetch_add(bytes, kRelaxed) + bytes;
  if (static_cast<std::int64_t>(value) > 0) base::raise_to(peak, value);
}

// Whether an object of less than a page is the first that begins on its page, and the last. It has a slot.
std::array<bool, 2> edges_of(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t slot = heap::kSizeClasses[heap::class_of(bytes)].slot_bytes;
  const std::uint64_t in_page = offset % kSamplePageBytes;
  return {in_page < slot, in_page + slot >= kSamplePageBytes};
}

bool is_of_sample(std::uint64_t offset) { return is_sampled(offset / kSamplePageBytes, PageSampler::kFirstOneInLog2); }

// True: a sampled page has some of an object of less than a page.
bool is_on_sampled_page(std::uint64_t offset, std::uint64_t bytes) {
  return bytes != 0 && bytes < kSamplePageBytes && (is_of_sample(offset) || is_of_sample(offset + bytes - 1));
}

// Whether a call instruction ends at the address. (Intel's manual, volume 2, CALL: e8 with 32 bits, or ff /2.)
bool follows_a_call(std::uintptr_t address) {
  std::byte code[7];
  if (!os::copy_memory(code, reinterpret_cast<const std::byte*>(address) - sizeof code, sizeof code)) return false;
  if (code[2] == std::byte{0xe8}) return true;
  const auto is_indirect = [&](std::size_t bytes) {
    return code[sizeof code - bytes] == std::byte{0xff} &&
           (code[sizeof code - bytes + 1] & std::byte{0x38}) == std::byte{0x10};
  };
  return is_indirect(2) || is_indirect(3) || is_indirect(4) || is_indirect(6) || is_indirect(7);
}

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::make(std::string folder, std::span<const std::byte> heap,
                                                 RecordingRoom room, Now now) {
  auto sites = CallSites::make({.tree_frames = room.sites - 1, .frames = kMostFrames});
  if (!sites) return fail(std::move(sites.error()));
  auto owners = Owners::make(heap.size() / kSamplePageBytes + 1);
  if (!owners) return fail(std::move(owners.error()));
  std::array<Owners, 2> at_edges;
  for (Owners& one : at_edges) {
    auto made = Owners::make(heap.size() / kSamplePageBytes + 1);
    if (!made) return fail(std::move(made.error()));
    one = std::move(*made);
  }
  auto unit_sites = UnitSites::make(heap.size() / kSamplePageBytes + 1, 1u << PageSampler::kFirstOneInLog2);
  if (!unit_sites) return fail(std::move(unit_sites.error()));
  auto is_begun = os::ReservedArray<std::atomic<bool>>::make(heap.size() / kSamplePageBytes + 1);
  if (!is_begun) return fail(std::move(is_begun.error()));
  auto live = os::ReservedArray<std::atomic<std::uint64_t>>::make(room.sites);
  if (!live) return fail(std::move(live.error()));
  return std::unique_ptr<Recorder>(new Recorder(std::move(folder), heap, room, std::move(*sites), std::move(*owners),
                                                std::move(at_edges), std::move(*unit_sites), std::move(*is_begun),
                                                std::move(*live), now));
}

Recorder::Recorder(std::string folder, std::span<const std::byte> heap, RecordingRoom room, CallSites sites,
                   Owners owners, std::array<Owners, 2> at_edges, UnitSites unit_sites,
                   os::ReservedArray<std::atomic<bool>> is_begun, os::ReservedArray<std::atomic<std::uint64_t>> live,
                   Now now)
    : heap_(heap),
      room_(room),
      now_(now),
      sites_(std::move(sites)),
      owners_(std::move(owners)),
      at_edges_(std::move(at_edges)),
      unit_sites_(std::move(unit_sites)),
      is_begun_(std::move(is_begun)),
      live_(std::move(live)),
      folder_(std::move(folder)) {}

// ---- the tables

Result<os::SharedFile> Recorder::make_file() {
  for (int number = 0;; ++number) {
    path_ = number == 0 ? fmt::format("{}/{}.recording", folder_, getpid())
                        : fmt::format("{}/{}.{}.recording", folder_, getpid(), number);
    if (access(path_.c_str(), F_OK) == 0 && number < kMostRecordings) continue;
    auto made = os::SharedFile::create(path_, RecordingTables::bytes(room_));
    if (made || access(path_.c_str(), F_OK) != 0 || number >= kMostRecordings) return made;
  }
}

std::string Recorder::sample_path() {
  if (tables() == nullptr || !making_.try_lock()) return {};
  base::LockGuard lock(making_, std::adopt_lock);
  return path_ + kTouches;
}

RecordingTables* Recorder::make_tables() {
  if (!making_.try_lock()) return nullptr;
  base::LockGuard lock(making_, std::adopt_lock);
  if (has_failed_ || tables_.load(kRelaxed) != nullptr) return tables_.load(kRelaxed);
  const segment::AtTheTables working;
  const int before = errno;
  if (const Status made = make_recording(); !made) {
    has_failed_ = true;
    base::log(base::LogLevel::kWarn, "process {} is not in the profile: {}", getpid(), made.error().message());
  }
  errno = before;
  return tables_.load(kRelaxed);
}

Status Recorder::make_recording() {
  auto file = make_file();
  if (!file) return fail(std::move(file.error()));
  // Tables stay where they are: who came for those of before may still be at them.
  if (file_.data() != nullptr) {
    if (Status moved = file->move_over(file_); !moved) return moved;
  }
  file_ = std::move(*file);
  const RecordingTables made = RecordingTables::over(file_.data(), room_);
  if (made.header != made_.header) made_ = made;
  fill_begin(made_);
  tables_.store(&made_, std::memory_order_release);
  return {};
}

template <class T>
static void make_zeros(const os::ReservedArray<T>& array) {
  (void)os::drop_though_locked(reinterpret_cast<std::byte*>(&array[0]),
                               base::round_up(array.capacity() * sizeof(T), base::kPageBytes));
}

Status Recorder::attach(std::string folder) {
  base::LockGuard lock(making_);
  folder_ = std::move(folder);
  is_attached_ = true;
  make_zeros(owners_);
  for (const Owners& one : at_edges_) make_zeros(one);
  unit_sites_.forget();
  make_zeros(is_begun_);
  make_zeros(live_);
  touch_order_.begin_anew();
  {
    base::LockGuard code(code_mutex_);  // they name what stood in the tables before
    places_.clear();
    code_ = {};
  }
  Status made = make_recording();
  has_failed_ = !made;
  return made;
}

void Recorder::end() {
  base::LockGuard lock(making_);
  has_failed_ = true;
  tables_.store(nullptr);
  file_.leave_file();
  make_zeros(owners_);
}

// A file without the magic was never begun.
void Recorder::fill_begin(RecordingTables& to) {
  making_.assume_held();
  RecordingHeader& header = *to.header;
  header.format = RecordingHeader::kFormat;
  header.process = getpid();
  header.parent = getppid();
  header.site_room = room_.sites;
  header.place_room = room_.places;
  header.stall_room = room_.stalls;
  header.object_room = room_.objects;
  header.touch_room = room_.touches;
  header.module_room = room_.module_bytes;
  header.is_attached = is_attached_ ? 1 : 0;
  header.heap_address = reinterpret_cast<std::uintptr_t>(heap_.data());
  std::strncpy(header.name.data(), program_invocation_short_name, header.name.size() - 1);
  const std::uint32_t sites = sites_.tree_frames() + 1;
  for (SiteId site = 1; site < sites; ++site) {  // in a forked child: what it has from its parent
    const std::uint64_t live = live_[site].load(kRelaxed);
    if (live == 0) continue;
    keep_stack(to, site);
    add_live(to.figures[site].live_bytes, to.figures[site].peak_bytes, live);
    add_live(header.live_bytes, header.peak_bytes, live);
  }
  std::atomic_signal_fence(std::memory_order_release);  // a kill in between leaves no magic
  header.magic = RecordingHeader::kMagic;
}

// Not analysed: the child's locks are new.
void Recorder::begin_in_child() FARHEAP_NO_THREAD_SAFETY_ANALYSIS {
  new (&making_) base::Mutex;
  new (&code_mutex_) base::Mutex;
  new (&touch_order_) TouchOrder;
  // Another thread of the parent may have been in the middle of changing them: what they hold is left alone.
  new (&code_) CodeRanges;
  new (&places_) decltype(places_);
  new (&path_) std::string;
  tables_.store(nullptr);
  for (const Owners& one : at_edges_) make_zeros(one);  // they count for the parent
  unit_sites_.forget();
  has_failed_ = is_attached_;  // then nobody records it yet
  if (is_attached_) new (&folder_) std::string;
  file_ = {};
}

// ---- allocations

std::optional<std::uint64_t> Recorder::offset_of(const void* at) const {
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - heap_.data());
  return offset < heap_.size() ? std::optional(offset) : std::nullopt;
}

void Recorder::allocated(const void* object, std::size_t bytes, const void* caller, const void* frame) {
  const auto offset = offset_of(object);
  if (!offset || base::t_inside_runtime || offset_of(frame)) return;
  const std::uint64_t inside = std::min<std::uint64_t>(bytes, heap_.size() - *offset);
  const SampledPages pages = sampled_pages(*offset, inside);
  const bool is_small_sampled = is_on_sampled_page(*offset, inside);
  if (pages.count() == 0 && !is_small_sampled) return;
  RecordingTables* const to = tables();
  if (to == nullptr) return;
  const SiteId site = site_of(*to, caller, frame);
  if (site == CallSites::kNoSite) {
    to->header->without_room.fetch_add(1, kRelaxed);
    return;
  }
  const std::uint64_t units = (bytes + kObjectUnit - 1) / kObjectUnit;
  const Owner owner = {static_cast<std::uint16_t>(site),
                       static_cast<std::uint16_t>(std::min<std::uint64_t>(units, kManyUnits)),
                       static_cast<std::uint32_t>(*offset / kObjectUnit)};
  if (is_small_sampled) note_edges(*to, *offset, inside, owner);
  note_units(*offset, inside, is_small_sampled ? owner.site : CallSites::kNoSite);
  if (pages.count() == 0) return;
  SiteFigures& figures = to->figures[owner.site];
  const std::uint64_t sampled = pages.count() * kSamplePageBytes;
  figures.allocated_bytes.fetch_add(sampled, kRelaxed);
  // Points are multiples of 16: an object is met as often as it has begun such pieces.
  figures.objects.fetch_add(sampled * SiteFigures::kPerObject / (units * kObjectUnit), kRelaxed);
  give(*to, pages, owner);
  note_object(*to, *offset, bytes, owner.site);
}

void Recorder::note_edges(RecordingTables& to, std::uint64_t offset, std::uint64_t bytes, Owner owner) {
  if (!is_of_sample(offset)) return;
  const auto edges = edges_of(offset, bytes);
  for (std::size_t edge = 0; edge < edges.size(); ++edge) {
    if (!edges[edge]) continue;
    at_edges_[edge][offset / kSamplePageBytes].store(owner, kRelaxed);
    to.figures[owner.site].edges[edge].objects.fetch_add(1, kRelaxed);
  }
}

// On its first page and its last: what lies between has no small objects.
void Recorder::note_units(std::uint64_t offset, std::uint64_t bytes, SiteId site) {
  const std::uint64_t in_first = std::min(bytes, kSamplePageBytes - offset % kSamplePageBytes);
  if (is_of_sample(offset)) unit_sites_.note(offset, in_first, site);
  const std::uint64_t last = (offset + bytes - 1) / kSamplePageBytes * kSamplePageBytes;
  if (last > offset && is_of_sample(last)) unit_sites_.note(last, offset + bytes - last, site);
}

void Recorder::note_object(RecordingTables& to, std::uint64_t offset, std::uint64_t bytes, SiteId site) {
  if (bytes < kLargeObjectBytes) return;
  const std::uint32_t number =
      to.header->objects.load(kRelaxed) < room_.objects ? to.header->objects.fetch_add(1, kRelaxed) : room_.objects;
  if (number >= room_.objects) {
    to.header->without_room.fetch_add(1, kRelaxed);
    return;
  }
  RecordedObject& object = to.objects[number];
  object.first = offset;
  object.bytes = bytes;
  object.site = site;
  object.born.store(births_and_deaths_.fetch_add(1, kRelaxed) + 1, std::memory_order_release);
}

void Recorder::end_objects(std::uint64_t offset, std::uint64_t bytes) {
  RecordingTables* const to = tables();
  if (to == nullptr) return;
  const std::uint32_t made = std::min(to->header->objects.load(kRelaxed), room_.objects);
  for (std::uint32_t i = 0; i < made; ++i) {
    RecordedObject& object = to->objects[i];
    if (object.born.load(std::memory_order_acquire) == 0 || object.died.load(kRelaxed) != 0) continue;
    if (object.first - offset < bytes) object.died.store(births_and_deaths_.fetch_add(1, kRelaxed) + 1, kRelaxed);
  }
}

// What a page had before was given back unseen.
void Recorder::give(RecordingTables& to, SampledPages pages, Owner owner) {
  for (std::uint64_t page = pages.first; page < pages.end; ++page) {
    const Owner before = owners_[page].exchange(owner, kRelaxed);
    if (before.site != CallSites::kNoSite) take_back(before, 1);
  }
  const std::uint64_t bytes = pages.count() * kSamplePageBytes;
  live_[owner.site].fetch_add(bytes, kRelaxed);
  add_live(to.figures[owner.site].live_bytes, to.figures[owner.site].peak_bytes, bytes);
  add_live(to.header->live_bytes, to.header->peak_bytes, bytes);
}

// The tables first: those of a forked child begin with all that it has from its parent.
void Recorder::take_back(Owner owner, std::uint64_t pages) {
  RecordingTables* const to = tables();
  live_[owner.site].fetch_sub(pages * kSamplePageBytes, kRelaxed);
  if (to == nullptr) return;
  to->figures[owner.site].live_bytes.fetch_sub(pages * kSamplePageBytes, kRelaxed);
  to->header->live_bytes.fetch_sub(pages * kSamplePageBytes, kRelaxed);
}

// Its sampled pages follow each other, from its first or second on.
void Recorder::freed(const void* object) {
  const auto offset = offset_of(object);
  if (!offset || base::t_inside_runtime) return;
  const auto number = static_cast<std::uint32_t>(*offset / kObjectUnit);
  const std::uint64_t first = *offset / kSamplePageBytes;
  Owner owner = {};
  std::uint64_t pages = 0;
  for (std::uint64_t page = first; page < owners_.capacity(); ++page) {
    const Owner found = owners_[page].load(kRelaxed);
    if (found.site == CallSites::kNoSite || found.object != number) {
      if (page == first) continue;
      break;
    }
    owner = found;
    owners_[page].store({}, kRelaxed);
    ++pages;
  }
  if (pages != 0) take_back(owner, pages);
  if ((pages + 1) * kSamplePageBytes >= kLargeObjectBytes) end_objects(*offset, 1);
}

void Recorder::unmapped(const void* at, std::size_t bytes) {
  const auto offset = offset_of(at);
  if (!offset || base::t_inside_runtime) return;
  const std::uint64_t past = *offset + std::min<std::uint64_t>(bytes, heap_.size() - *offset);
  const std::uint64_t end = (past + kSamplePageBytes - 1) / kSamplePageBytes;
  std::uint64_t pages = 0;
  for (std::uint64_t page = *offset / kSamplePageBytes; page < end; ++page) {
    if (owners_[page].load(kRelaxed).site == CallSites::kNoSite) continue;
    const Owner before = owners_[page].exchange({}, kRelaxed);
    if (before.site == CallSites::kNoSite) continue;
    take_back(before, 1);
    ++pages;
  }
  if (pages != 0) end_objects(*offset, past - *offset);
}

// What is new takes locks, for as long as it takes to unwind a stack and to read what is mapped. Whoever is stopped by
// a signal (as garbage collectors do) must not hold them.
SiteId Recorder::site_of(RecordingTables& to, const void* caller, const void* frame) {
  const auto is_kept = [&](SiteId site) { return to.frames[site].address.load(std::memory_order_acquire) != 0; };
  const SiteId known = sites_.known_site_of(caller, frame);
  if (known != CallSites::kNoSite && is_kept(known)) return known;
  const segment::AtTheTables working;
  const SiteId site = sites_.site_of(caller, frame);
  if (site != CallSites::kNoSite && !is_kept(site)) keep_stack(to, site);
  return site;
}

// The innermost frame first: whoever finds one in the table finds those that it called.
void Recorder::keep_stack(RecordingTables& to, SiteId site) {
  base::LockGuard lock(code_mutex_);
  for (const CallSites::Frame& frame : sites_.frames(site) | std::views::reverse) {
    RecordedFrame& kept = to.frames[frame.site];
    if (kept.address.load(kRelaxed) != 0) continue;
    kept.inner = frame.inner;
    kept.address.store(frame.address, std::memory_order_release);
    (void)file_of_code(to, frame.address);
  }
}

int Recorder::file_of_code(RecordingTables& to, std::uintptr_t address) {
  std::string fresh;
  const int file = code_.file_at(address, fresh);
  const std::uint32_t used = to.header->module_bytes.load(kRelaxed);
  if (fresh.empty()) return file;
  if (fresh.size() > room_.module_bytes - used) {
    to.header->without_room.fetch_add(1, kRelaxed);
    return file;
  }
  std::memcpy(to.modules + used, fresh.data(), fresh.size());
  to.header->module_bytes.store(used + static_cast<std::uint32_t>(fresh.size()), std::memory_order_release);
  return file;
}

// ---- faults

// The share of faults that are looked at: halved while there are many, doubled while there are few.
void Recorder::choose_sample() {
  const std::int64_t now = base::Clock::now().time_since_epoch().count();
  std::int64_t since = sampled_since_ns_.load(kRelaxed);
  if (now - since < kPeriodNs || !sampled_since_ns_.compare_exchange_strong(since, now, kRelaxed)) return;
  const std::uint32_t looks = looks_.exchange(0, kRelaxed);
  const std::uint32_t log2 = one_in_log2_.load(kRelaxed);
  const bool is_long = now - since > 2 * kPeriodNs;  // nobody looked for a while
  if (looks > kMostLooks && !is_long && log2 < kMostOneInLog2) one_in_log2_.store(log2 + 1, kRelaxed);
  if ((looks < kMostLooks / 4 || is_long) && log2 > 0) one_in_log2_.store(log2 - 1, kRelaxed);
}

// By a hash of the fault's number: programs fault in rhythms.
bool Recorder::is_looked_at(unsigned one_in_log2) {
  std::uint64_t value = faults_.fetch_add(1, kRelaxed) * 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93u;
  return (value >> 40 & ((std::uint64_t{1} << one_in_log2) - 1)) == 0;
}

bool Recorder::Owner::has(std::uint64_t unit) const {
  const std::uint32_t behind = static_cast<std::uint32_t>(unit) - object;
  return site != CallSites::kNoSite &&
         (behind < units || (units == kManyUnits && static_cast<std::int32_t>(behind) >= 0));
}

// Of pages whose uses are sampled: others are seen to be touched when they come, and never again. The first touch of a
// page makes it, and tells nothing of how often it is used.
void Recorder::note_touch(RecordingTables& to, std::uintptr_t at) {
  const auto offset = offset_of(reinterpret_cast<const void*>(at));
  if (!offset || !is_of_sample(*offset)) return;
  const std::uint64_t page = *offset / kSamplePageBytes, unit = *offset / kObjectUnit;
  if (!is_begun_[page].exchange(true, kRelaxed)) return;
  const std::uint32_t weight = weight_of_touch();
  const Owner large = owners_[page].load(kRelaxed);
  if (large.units >= kSamplePageBytes / kObjectUnit && large.has(unit)) {
    to.figures[large.site].large_touches.fetch_add(1, kRelaxed);
    return;
  }
  for (std::size_t edge = 0; edge < at_edges_.size(); ++edge) {
    const Owner owner = at_edges_[edge][page].load(kRelaxed);
    if (!owner.has(unit)) continue;
    to.figures[owner.site].edges[edge].touches.fetch_add(1, kRelaxed);
  }
  const SiteId site = unit_sites_.at(*offset);
  if (site != CallSites::kNoSite) touch_order_.note({to.header->touches, {to.touches, room_.touches}}, site, weight);
}

// In the order of touches each weighs as much time as passes between two of them, in the mean of the last ones: a touch
// that is seen stands for those that were not. The first thousands are all seen, later ones come in short bursts
// (page_sampler.hpp). Threads that count at once may lose some of the mean.
std::uint32_t Recorder::weight_of_touch() {
  const std::int64_t now = now_().time_since_epoch().count();
  const std::int64_t last = last_touch_ns_.exchange(now, kRelaxed);
  const std::int64_t passed = last != 0 ? std::clamp<std::int64_t>(now - last, 0, kMostNsBetween) : 0;
  const std::int64_t before = between_touches_ns_.load(kRelaxed);
  const std::int64_t mean = before == 0 ? passed : before + (passed - before) / kTouchesOfMean;
  between_touches_ns_.store(mean, kRelaxed);
  return static_cast<std::uint32_t>(std::max<std::int64_t>(mean / kNsOfWeight, 1));
}

std::uint32_t Recorder::begun(std::uint32_t thread, std::uintptr_t touched) {
  if (RecordingTables* const to = tables_.load(std::memory_order_acquire)) note_touch(*to, touched);
  choose_sample();
  const unsigned one_in_log2 = one_in_log2_.load(kRelaxed);
  if (!is_looked_at(one_in_log2)) return 0;
  const std::uint32_t unknown = kLookedAt | one_in_log2 << kWeightShift;
  looks_.fetch_add(1, kRelaxed);
  RecordingTables* const to = tables();
  if (to == nullptr) return 0;
  const auto where = thread != 0 ? os::waiting_place(thread) : std::nullopt;
  if (!where || !code_mutex_.try_lock()) {
    to->header->faults_without_place.fetch_add(std::uint64_t{1} << one_in_log2, kRelaxed);
    return unknown;
  }
  base::LockGuard lock(code_mutex_, std::adopt_lock);
  return unknown | place_at(*to, *where);
}

std::uint32_t Recorder::place_at(RecordingTables& to, os::WaitingPlace where) {
  const std::uintptr_t caller = caller_in_other_file(to, where);
  const auto [found, is_new] = places_.try_emplace({where.instruction, caller}, 0);
  if (!is_new) return found->second;
  const std::uint32_t place = to.header->places.load(kRelaxed) + 1;
  if (place >= room_.places) {
    to.header->without_room.fetch_add(1, kRelaxed);
    return 0;
  }
  to.places[place] = {where.instruction, caller};
  to.header->places.store(place, std::memory_order_release);
  found->second = place;
  return place;
}

// What the C library copies or compares it does without a frame: its caller is where the program waits. The word at
// the stack pointer is a return address only then, so it has to look like one.
std::uintptr_t Recorder::caller_in_other_file(RecordingTables& to, os::WaitingPlace where) {
  const int file = file_of_code(to, where.instruction);
  std::uintptr_t word = 0;
  // A stack in the heap may be out of view, and nobody but this thread would bring it.
  if (file == CodeRanges::kNone || offset_of(reinterpret_cast<const void*>(where.stack))) return 0;
  if (!os::copy_memory(reinterpret_cast<std::byte*>(&word), reinterpret_cast<const std::byte*>(where.stack),
                       sizeof word)) {
    return 0;
  }
  const int callers = code_.known_file_at(word);
  return callers != CodeRanges::kNone && callers != file && follows_a_call(word) ? word : 0;
}

void Recorder::ended(pager::PageNumber page, std::uint32_t place, std::chrono::nanoseconds stalled,
                     std::uint32_t pages_read) {
  RecordingTables* const to = tables();
  if (to == nullptr) return;
  const auto stalled_ns = static_cast<std::uint64_t>(stalled.count());
  to->header->faults.fetch_add(1, kRelaxed);
  to->header->stalled_ns.fetch_add(stalled_ns, kRelaxed);
  to->header->pages_read.fetch_add(pages_read, kRelaxed);
  if ((place & kLookedAt) == 0) return;
  const SiteId site = page < owners_.capacity() ? owners_[page].load(kRelaxed).site : CallSites::kNoSite;
  StallFigures* const figures = stalls_of(*to, stall_key(place & kPlaceMask, site));
  if (figures == nullptr) {
    to->header->without_room.fetch_add(1, kRelaxed);
    return;
  }
  const std::uint64_t weight = std::uint64_t{1} << ((place & ~kLookedAt) >> kWeightShift);
  figures->faults.fetch_add(weight, kRelaxed);
  figures->stalled_ns.fetch_add(weight * stalled_ns, kRelaxed);
  figures->pages_read.fetch_add(weight * pages_read, kRelaxed);
}

StallFigures* Recorder::stalls_of(RecordingTables& to, std::uint64_t key) const {
  constexpr unsigned kMostSteps = 64;
  std::uint64_t hash = (key ^ (key >> 29)) * 0xd6e8feb86659fd93u;
  hash ^= hash >> 32;
  for (unsigned step = 0; step < kMostSteps; ++step) {
    StallFigures& one = to.stalls[(hash + step) % room_.stalls];
    std::uint64_t found = one.key.load(kRelaxed);
    if (found == 0 && one.key.compare_exchange_strong(found, key, kRelaxed)) return &one;
    if (found == key) return &one;
  }
  return nullptr;
}

}  // namespace farheap::profile
