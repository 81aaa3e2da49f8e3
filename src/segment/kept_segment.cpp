// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/kept_segment.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/random_number.hpp"
#include "segment/address_slots.hpp"
#include "segment/at_the_tables.hpp"
#include "store/aligned_buffer.hpp"

namespace farheap::segment {

using base::kPageBytes;

namespace {

constexpr std::uint32_t kBlockPages = 256;  // 1 MiB: read and written in one piece
constexpr unsigned kHandlers = 2;
constexpr unsigned kReaders = 2;

// What cannot be read, or written to make room, ends the program: there is no one to tell.
[[noreturn]] void give_up(const Error& error) {
  base::log(base::LogLevel::kError, "{}", error.message());
  const bool is_lost = error.code == ErrorCode::kCorrupt;
  base::log(base::LogLevel::kError, "the program is ended; {}",
            is_lost ? "`farheap heap check` tells what is left of its heap" : "its heap opens at the last commit");
  _exit(base::kStatusNotKept);
}

// Of several slots in a row, where they are free in this process.
Result<os::Mapping> reserve_several_slots(std::uint64_t capacity) {
  const std::uint64_t places = (kEndOfLarge - kFirstLargeAddress - capacity) / kSlotBytes + 1;
  const std::uint64_t first = base::random_number();
  Result<os::Mapping> range;
  for (std::uint64_t i = 0; i < places; ++i) {
    const std::uint64_t at = kFirstLargeAddress + (first + i) % places * kSlotBytes;
    range = os::Mapping::reserve_at(at, capacity, os::Access::kReadWrite);
    if (range || range.error().code != ErrorCode::kConflict) break;
  }
  return range;
}

// In some slot that is free in this process: slot 0 is the one of programs under `farheap run`.
Result<os::Mapping> reserve_slot(std::uint64_t capacity) {
  if (capacity > kSlotBytes) return reserve_several_slots(capacity);
  const auto first = static_cast<std::uint32_t>(base::random_number() % (kAddressSlots - 1));
  Result<os::Mapping> range;
  for (std::uint32_t i = 0; i < kAddressSlots - 1; ++i) {
    const std::uint32_t slot = 1 + (first + i) % (kAddressSlots - 1);
    range = os::Mapping::reserve_at(slot_address(slot), capacity, os::Access::kReadWrite);
    if (range || range.error().code != ErrorCode::kConflict) break;
  }
  return range;
}

}  // namespace

KeptSegment::KeptSegment(std::unique_ptr<Store> store, std::unique_ptr<Versions> versions, const Settings& settings)
    : store_(std::move(store)), versions_(std::move(versions)), limit_(settings.memory_bytes) {}

// The allocator's tables take 1.9 % at the most, when every page is in use.
std::size_t KeptSegment::table_bytes(std::size_t capacity) {
  return base::round_up(capacity / 32 + 64 * base::kMiB, base::kHugePageBytes);
}

bool KeptSegment::is_unfinished(const Versions& versions) { return versions.last_commit().is_unfinished(); }

Result<std::unique_ptr<KeptSegment>> KeptSegment::create(std::unique_ptr<Store> store, const Settings& settings) {
  const std::uint64_t capacity = settings.capacity_bytes == 0 ? kSlotBytes : settings.capacity_bytes;
  if (capacity % base::kHugePageBytes != 0 || capacity > kLargestSegment || capacity < 256 * base::kMiB) {
    return fail(ErrorCode::kInvalidArgument, "cannot create a heap", store->describe(),
                fmt::format("its capacity cannot be {}", base::format_size(capacity)),
                fmt::format("take 256M to {}, a multiple of 2M: it costs nothing until it is used",
                            base::format_size(kLargestSegment)));
  }
  if (auto begun = Versions::open(*store, settings.leases); begun && is_unfinished(**begun)) {
    // Who began to create it was killed before it had a heap: its addresses are ours.
    const Superblock content = (*begun)->last_commit();
    auto range =
        os::Mapping::reserve_at(content.base_address, content.capacity_pages * kPageBytes, os::Access::kReadWrite);
    if (!range) return fail(std::move(range.error()));
    return make_new(std::move(store), std::move(*begun), settings, std::move(*range));
  }
  auto range = reserve_slot(capacity);
  if (!range) return fail(std::move(range.error()));
  auto versions = Versions::create(
      *store,
      {.base_address = reinterpret_cast<std::uintptr_t>(range->data()), .capacity_pages = capacity / kPageBytes},
      settings.leases);
  if (!versions) return fail(std::move(versions.error()));
  return make_new(std::move(store), std::move(*versions), settings, std::move(*range));
}

Result<std::unique_ptr<KeptSegment>> KeptSegment::make_new(std::unique_ptr<Store> store,
                                                           std::unique_ptr<Versions> versions, const Settings& settings,
                                                           os::Mapping range) {
  auto made = start(std::move(store), std::move(versions), settings, std::move(range), {}, false);
  if (!made) return made;
  KeptSegment& segment = **made;
  const std::size_t capacity = segment.capacity_bytes();
  auto* const books = reinterpret_cast<KeptBooks*>(segment.base());
  ::new (static_cast<void*>(books)) KeptBooks(segment.base(), capacity, table_bytes(capacity),
                                              settings.relocatable ? KeptBooks::kRelocatable : 0, segment.tables());
  return made;
}

Result<std::unique_ptr<KeptSegment>> KeptSegment::open(std::unique_ptr<Store> store, const Settings& settings) {
  auto versions = Versions::open(*store, settings.leases);
  if (!versions) return fail(std::move(versions.error()));
  auto made = start(std::move(store), std::move(*versions), settings, {}, {}, false);
  if (!made) return made;
  (*made)->move_books();
  (*made)->books().runs.attach((*made)->tables());
  return made;
}

Result<std::unique_ptr<KeptSegment>> KeptSegment::open_read_only(std::unique_ptr<Store> store,
                                                                 std::string_view snapshot, const Settings& settings) {
  auto versions = Versions::open_to_read(*store, *settings.leases);
  if (!versions) return fail(std::move(versions.error()));
  return start(std::move(store), std::move(*versions), settings, {}, snapshot, true);
}

Result<std::unique_ptr<KeptSegment>> KeptSegment::start(std::unique_ptr<Store> store,
                                                        std::unique_ptr<Versions> versions, const Settings& settings,
                                                        os::Mapping range, std::string_view snapshot, bool read_only) {
  const bool is_new = range.size() != 0;
  std::unique_ptr<KeptSegment> made(new KeptSegment(std::move(store), std::move(versions), settings));
  made->range_ = std::move(range);
  made->read_only_ = read_only;
  made->relocatable_ = settings.relocatable;
  if (!read_only && settings.clean_when_idle) made->cleaner_.emplace(*made->versions_);
  if (!is_new) {
    if (is_unfinished(*made->versions_)) {
      return fail(ErrorCode::kNotFound, "cannot open the heap", made->store_->describe(),
                  "who began to create it did not end that", "create it again, or remove its files");
    }
    Status status = made->choose_version(snapshot);
    if (status) status = made->look_at_books();
    if (status) status = made->take_addresses();
    if (!status) return fail(std::move(status.error()));
  }
  if (Status started = made->start_paging(); !started) return fail(std::move(started.error()));
  return made;
}

void KeptSegment::move_books() {
  if (!moved_.is_needed()) return;
  books().runs.move(moved_);
  books().address = moved_.to;
}

Status KeptSegment::choose_version(std::string_view snapshot) {
  if (snapshot.empty()) return {};
  auto all = versions_->snapshots();
  if (!all) return fail(std::move(all.error()));
  std::string names;
  for (const Snapshot& one : *all) {
    if (snapshot == one.name) snapshot_ = one;
    names += names.empty() ? one.name : std::string(", ") + one.name;
  }
  if (snapshot_) return {};
  return fail(ErrorCode::kNotFound, "cannot open the heap", store_->describe() + "@" + std::string(snapshot),
              "it has no snapshot of that name", names.empty() ? "it has none at all" : "its snapshots are " + names);
}

// Before anything is mapped, while errors can be told.
Status KeptSegment::look_at_books() {
  const store::AlignedBuffer buffer(kPageBytes);
  if (!buffer.is_there()) return fail(ErrorCode::kNoSpace, "cannot open the heap", store_->describe(), "no memory");
  const pager::Backing::Read first{{0, 1}, buffer.part(0, kPageBytes).data()};
  Status read = snapshot_ ? versions_->read(*snapshot_, {&first, 1}) : versions_->read({&first, 1});
  if (!read) return read;
  const auto& found = *reinterpret_cast<const KeptBooks*>(first.into);
  if (found.magic != KeptBooks::kMagic) {
    return fail(ErrorCode::kCorrupt, "cannot open the heap", store_->describe(), "its first page is not one of a heap",
                "`farheap heap check` looks at all of it");
  }
  if (found.format > KeptBooks::kFormat) {
    return fail(ErrorCode::kUnavailable, "cannot open the heap", store_->describe(),
                fmt::format("its format is {}, this Farheap reads 1 to {}", found.format, KeptBooks::kFormat),
                "use a newer Farheap");
  }
  const Superblock content = versions_->last_commit();
  relocatable_ = (found.flags & KeptBooks::kRelocatable) != 0;
  moved_.from = found.address != 0 ? found.address : content.base_address;
  moved_.bytes = content.capacity_pages * kPageBytes;
  if (moved_.from % base::kHugePageBytes == 0) return {};
  return fail(ErrorCode::kCorrupt, "cannot open the heap", store_->describe(),
              fmt::format("its first page says that it lies at {:#x}", moved_.from),
              "`farheap heap check` looks at all of it");
}

// Where it lay last, if that can be.
Status KeptSegment::take_addresses() {
  auto range = os::Mapping::reserve_at(moved_.from, moved_.bytes, os::Access::kReadWrite);
  if (!range && range.error().code == ErrorCode::kConflict && relocatable_) range = reserve_slot(moved_.bytes);
  if (range) {
    range_ = std::move(*range);
    moved_.to = reinterpret_cast<std::uintptr_t>(range_.data());
    return {};
  }
  Error error = std::move(range.error());
  error.what = "cannot open the heap " + store_->describe() + ": " + error.what;
  if (error.code == ErrorCode::kConflict) {
    error.remedy = relocatable_
                       ? "close heaps that are open in this process: all places for one are taken"
                       : "a heap lies at the same addresses in every process: close the other one first (it "
                         "may be this heap, opened twice), or open it in another process; only a heap that was made "
                         "relocatable may lie elsewhere";
  }
  return fail(std::move(error));
}

Status KeptSegment::start_paging() {
  syscall(SYS_madvise, range_.data(), range_.size(), MADV_DONTDUMP);
  auto memory = os::Mapping::reserve(base::round_up(sizeof(base::RunPage), kPageBytes), os::Access::kReadWrite);
  if (!memory) return fail(std::move(memory.error()));
  run_page_memory_ = std::move(*memory);
  run_page_ = ::new (run_page_memory_.data()) base::RunPage;
  backing_ = std::make_unique<KeptBacking>(*versions_, snapshot_ ? &*snapshot_ : nullptr);
  auto made = Paging::make(range_, {}, 1, *run_page_);
  if (!made) return fail(std::move(made.error()));
  paging_ = std::move(*made);
  PagingSettings wanted;
  wanted.handlers = kHandlers;
  wanted.ends = true;
  wanted.pager.block_max_pages = kBlockPages;
  wanted.pager.track_changes = true;
  wanted.pager.readers = kReaders;
  wanted.pager.evictors = evictors_for(0, "");  // its writes wait for each other
  wanted.pager.keep_changes = read_only_;
  // Not in the tables: what they reserve, they touch here and there.
  wanted.pager.huge_from = table_bytes(range_.size()) / kPageBytes;
  wanted.pager.lost = give_up;
  return paging_->start(*backing_, limit_, std::move(wanted),
                        [this] { return pager::KernelView::Runs{{range_.data(), range_.size()}}; });
}

void* KeptSegment::reserve(std::size_t bytes) noexcept {
  KeptBooks& mine = books();
  bytes = base::round_up(bytes, kPageBytes);
  std::atomic_ref next(mine.next_table);
  std::uint64_t at = next.load();
  do {
    if (at > mine.end_of_tables || bytes > mine.end_of_tables - at) return nullptr;
  } while (!next.compare_exchange_weak(at, at + bytes));
  return base() + at;
}

std::byte* KeptSegment::obtain(std::size_t bytes, std::size_t alignment) {
  std::byte* at = nullptr;
  {
    base::LockGuard lock(runs_mutex_);
    at = books().runs.obtain(bytes, alignment);
  }
  if (at == nullptr || bytes > base::kHugePageBytes) return at;  // of what is larger not all may be touched
  (void)hint(pager::HintKind::kExpect, at, bytes);
  return at;
}

bool KeptSegment::extend(std::byte* at, std::size_t bytes, std::size_t new_bytes) {
  base::LockGuard lock(runs_mutex_);
  return books().runs.extend(at, bytes, new_bytes);
}

void KeptSegment::discard(std::byte* at, std::size_t bytes) { paging_->discard(at, bytes); }

void KeptSegment::give_back(std::byte* at, std::size_t bytes) {
  discard(at, bytes);
  base::LockGuard lock(runs_mutex_);
  books().runs.give_back(at, bytes);
}

// Also where nothing has changed: what left memory before belongs to it, and nothing that leaves later may come in.
// No signal comes meanwhile: its handler could touch a page, and wait for what this thread holds.
Status KeptSegment::commit(Kind kind, std::string_view name, const std::function<void()>& at_cut) {
  base::LockGuard one(commit_mutex_);
  AtTheTables working;
  const store::AlignedBuffer buffer(pager::Pager::kCommitPages * kPageBytes);
  if (!buffer.is_there()) return fail(ErrorCode::kNoSpace, "cannot commit", store_->describe(), "no memory");
  if (cleaner_) cleaner_->begin_commit();
  pager::Pager& pager = paging_->pager();
  pager.begin_commit([&] { backing_->hold(); });
  at_cut();
  Status status = pager.take_commit(
      buffer.part(0, pager::Pager::kCommitPages * kPageBytes).data(),
      [&](std::span<const pager::PageRun> runs, const std::byte* bytes) { return backing_->take(runs, bytes); });
  if (status) {
    switch (kind) {
      case Kind::kCommit: status = versions_->commit(); break;
      case Kind::kSnapshot: status = versions_->snapshot(name); break;
      case Kind::kRemoval: status = versions_->remove(name); break;
    }
  }
  backing_->go_on(status.has_value());
  pager.end_commit(status.has_value());
  if (cleaner_) cleaner_->end_commit();
  return status;
}

void KeptSegment::keep_changed(std::vector<std::uint64_t>& pages) const {
  AtTheTables working;
  std::vector<pager::PageNumber> written = pages;
  backing_->keep_written(written);
  paging_->pager().keep_changed(pages);
  pages.insert(pages.end(), written.begin(), written.end());
}

bool KeptSegment::check_head(std::string& why) const {
  const KeptBooks& mine = books();
  if (mine.magic != KeptBooks::kMagic || mine.format == 0 || mine.format > KeptBooks::kFormat) {
    why = fmt::format("its first page says {:#x}, of format {}", mine.magic, mine.format);
    return false;
  }
  const std::byte* const tables = base() + KeptBooks::kBytes + KeptBooks::kRootBytes;
  if (mine.end_of_tables != table_bytes(capacity_bytes()) || mine.next_table > mine.end_of_tables ||
      mine.next_table < static_cast<std::uint64_t>(tables - base())) {
    why = fmt::format("tables reach to {} of {}, which cannot be", mine.next_table, mine.end_of_tables);
    return false;
  }
  return true;
}

bool KeptSegment::check(std::string& why) const {
  if (!check_head(why)) return false;
  const KeptBooks& mine = books();
  const std::byte* const tables = base() + KeptBooks::kBytes + KeptBooks::kRootBytes;
  return mine.runs.check(why, {base() + mine.end_of_tables, base() + capacity_bytes()},
                         {tables, base() + mine.next_table});
}

Status KeptSegment::gather(const Progress& progress) {
  constexpr std::size_t kLeafBytes = Versions::kPagesPerLeaf * kPageBytes;
  const store::AlignedBuffer buffer(kLeafBytes);
  if (!buffer.is_there()) return fail(ErrorCode::kNoSpace, "cannot compact", store_->describe(), "no memory");
  {
    AtTheTables working;
    if (Status trimmed = versions_->trim(); !trimmed) return trimmed;
  }
  const auto leaves = versions_->scattered_leaves();
  if (!leaves) return fail(leaves.error());
  for (std::size_t i = 0; i < leaves->size(); ++i) {
    {
      AtTheTables working;
      const auto moved = versions_->gather((*leaves)[i], buffer.part(0, kLeafBytes).data());
      if (!moved) return fail(moved.error());
    }
    if (progress) progress((i + 1) * kLeafBytes, leaves->size() * kLeafBytes);
  }
  return {};
}

std::uint64_t KeptSegment::resident_bytes() const { return paging_->pager().resident_pages() * kPageBytes; }

std::uint64_t KeptSegment::handed_out_bytes() {
  base::LockGuard lock(runs_mutex_);
  return capacity_bytes() - books().end_of_tables - books().runs.free_bytes();
}

}  // namespace farheap::segment
