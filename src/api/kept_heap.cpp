// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap::Heap: a kept segment, with an allocator and a directory of objects in it. How it is opened, and what is done
// to one that is not.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "api/heap_state.hpp"
#include "api/new_place.hpp"
#include "api/patience.hpp"
#include "api/virtual_tables.hpp"
#include "base/log.hpp"
#include "base/units.hpp"
#include "base/without_secrets.hpp"
#include "segment/superblock.hpp"
#include "store/bare_file.hpp"

namespace farheap {
namespace {

constexpr char kCannotCreate[] = "cannot create the heap";
constexpr char kAgain[] = "create it again";
constexpr std::uint64_t kLeastMemory = 16 * base::kMiB;

Result<segment::KeptSegment::Settings> settings_of(const HeapOptions& options) {
  segment::KeptSegment::Settings settings{options.memory, options.capacity, options.relocatable,
                                          options.clean_when_idle};
  if (settings.memory_bytes == 0) {
    settings.memory_bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * base::kPageBytes / 2;
  }
  if (settings.memory_bytes < kLeastMemory) {
    return fail(ErrorCode::kInvalidArgument, "cannot open the heap",
                fmt::format("memory = {}", base::format_size(settings.memory_bytes)), "that is too little to work with",
                fmt::format("give it at least {}", base::format_size(kLeastMemory)));
  }
  return settings;
}

// The table of a file's blocks may be lost (empty, as after a copy of half of the files): then the store says that it
// has no blocks, and a new heap would be made over one whose bytes are all there.
Status check_for_lost_table(const api::HeapPlace& place, Store& store) {
  if (!place.uri.starts_with("file:") || access(place.file.c_str(), F_OK) != 0) return {};
  const auto found = segment::read_superblock(store);
  if (found || found.error().code != ErrorCode::kNotFound) return {};
  const auto bare = store::open_bare_file(place.file);
  if (!bare) return {};
  const auto there = segment::read_superblock(**bare);
  if (!there || there->content.is_unfinished()) return {};
  return fail(ErrorCode::kCorrupt, "cannot open the heap", place.uri,
              place.others.front() + " does not tell of its blocks, but there is a heap in the file",
              "`farheap heap check --repair` makes it anew out of what is whole");
}

}  // namespace

// Nothing of it is left on failure.
Result<Heap> Heap::State::make_new(std::string_view uri, const HeapOptions& options,
                                   segment::KeptSegment::Settings& settings, std::chrono::milliseconds wait) {
  auto fresh = api::NewPlace::claim(uri, kCannotCreate, wait);
  if (!fresh) return fail(std::move(fresh.error()));
  auto store = fresh->open();
  if (!store) return fail(fresh->told(std::move(store.error()), kCannotCreate, kAgain));
  settings.leases = &fresh->lock();
  auto heap =
      start(std::make_unique<State>(fresh->place(), nullptr), std::move(*store), options, How::kCreate, settings);
  if (!heap) return fail(fresh->told(std::move(heap.error()), kCannotCreate, kAgain));
  Status status = heap->state_->try_commit(segment::KeptSegment::Kind::kCommit, {});
  if (status) status = fresh->place().set_mode(options.mode);
  if (status) status = fresh->let_readers_in();
  if (!status) return fail(fresh->told(std::move(status.error()), kCannotCreate, kAgain));
  heap->state_->lock = fresh->keep_with_lock();
  return heap;
}

Result<Heap> Heap::State::make(std::string_view uri, const HeapOptions& options, How how) {
  auto settings = settings_of(options);
  if (!settings) return fail(std::move(settings.error()));
  const auto wait = options.wait.value_or(api::Patience::usual());
  if (how == How::kCreate) return make_new(uri, options, *settings, wait);
  auto place = api::HeapPlace::parse(uri);
  if (!place) return fail(std::move(place.error()));
  const bool writes = how == How::kOpen;
  if (!place->snapshot.empty() && writes) {
    return fail(ErrorCode::kInvalidArgument, "cannot open the heap", base::without_secrets(uri),
                fmt::format("'{}' names a snapshot, which never changes", place->snapshot),
                "open it to be read, or leave '@' and the name out");
  }
  if (writes) {
    if (Status writable = place->check_is_writable(); !writable) return fail(std::move(writable.error()));
  }
  using Use = api::HeapPlace::Use;
  using For = api::HeapLock::For;
  if (Status is = place->check_is_heap(writes ? Use::kWrite : Use::kRead); !is) return fail(std::move(is.error()));
  auto lock = api::HeapLock::take(*place, writes ? For::kWriting : For::kReading, wait);
  if (!lock) return fail(std::move(lock.error()));
  auto store = place->open(**lock);
  if (!store) return fail(std::move(store.error()));
  if (writes) {
    if (Status lost = check_for_lost_table(*place, **store); !lost) return fail(std::move(lost.error()));
  }
  settings->leases = lock->get();
  return start(std::make_unique<State>(std::move(*place), std::move(*lock)), std::move(*store), options, how,
               *settings);
}

Result<Heap> Heap::State::start(std::unique_ptr<State> state, std::unique_ptr<Store> store, const HeapOptions& options,
                                How how, const segment::KeptSegment::Settings& settings) {
  using segment::KeptSegment;
  const bool reads = how == How::kRead || how == How::kCheck;
  auto opened = how == How::kCreate ? KeptSegment::create(std::move(store), settings)
                : how == How::kOpen ? KeptSegment::open(std::move(store), settings)
                                    : KeptSegment::open_read_only(std::move(store), state->place.snapshot, settings);
  if (!opened) return fail(std::move(opened.error()));
  state->segment = std::move(*opened);
  KeptSegment& segment = *state->segment;
  if (segment.moved().is_needed()) {
    if (how == How::kCheck) segment.move_books();
    if (how != How::kRead) state->root().books.move(segment.moved());
    state->root().directory.move(segment.moved());
    segment.moved()(state->root().description);
  }
  if (how == How::kCreate) {
    auto* const root = ::new (segment.root()) HeapRoot(segment, segment.tables(), state->gate);
    if (!root->books.usable()) {
      return fail(ErrorCode::kNoSpace, "cannot create a heap", state->place.uri,
                  "its capacity leaves no room for books", "give it a larger one: it costs nothing until it is used");
    }
  } else if (how == How::kOpen) {
    state->root().books.attach(segment, segment.tables(), &state->gate);
  }
  state->attached = !reads;
  ::new (static_cast<void*>(state->root().resource)) api::Resource(state->root(), state->holds, segment);
  if (!options.any_types && how != How::kCheck) {
    if (Status right = state->put_virtual_tables_right(); !right) return fail(std::move(right.error()));
  }
  if (how == How::kRead) state->root().books.attach_to_read();
  if (reads) segment.seal();
  if (state->attached) state->number = state->root().books.number();
  state->options = options;
  state->watch_forks(options.in_children);
  api::OpenHeaps::all().add(segment);
  return Heap(std::move(state));
}

// The parent's pages are not here, nor are its threads: what was the parent's is left to it, and the newest commit is
// opened at the same addresses.
void Heap::State::is_forked_child() noexcept {
  try {
    Status status = read_in_child();
    if (status) return;
    base::log(base::LogLevel::kWarn, "a forked child does not have the heap: {}", status.error().message());
  } catch (const std::exception& error) {
    base::log(base::LogLevel::kWarn, "a forked child does not have the heap: {}", error.what());
  }
}

Status Heap::State::read_in_child() {
  auto settings = settings_of(options);
  if (!settings) return fail(std::move(settings.error()));
  if (segment->moved().is_needed()) {
    return fail(ErrorCode::kUnavailable, "cannot read the heap in a forked child", place.uri,
                "it is not at its own addresses", "open it there");
  }
  auto taken = api::HeapLock::take(place, api::HeapLock::For::kReading);
  if (!taken) return fail(std::move(taken.error()));
  if (lock != nullptr) lock->leave_to_parent();
  lock = std::move(*taken);
  std::construct_at(&directory);  // another thread may have had it
  auto store = place.open(*lock);
  if (!store) return fail(std::move(store.error()));
  settings->leases = lock.get();
  auto opened = segment::KeptSegment::open_read_only(std::move(*store), place.snapshot, *settings);
  if (!opened) return fail(std::move(opened.error()));
  (void)segment.release();
  segment = std::move(*opened);
  if (number >= 0) heap::forget_heap_in_child(std::exchange(number, -1));
  attached = false;
  owner = getpid();
  if (Status ready = ready_to_read(); !ready) return ready;
  segment->seal();
  api::OpenHeaps::all().add(*segment);
  return {};
}

// What this process needs of its own in pages that it does not change otherwise.
Status Heap::State::ready_to_read() {
  root().books.attach_to_read();
  ::new (static_cast<void*>(root().resource)) api::Resource(root(), holds, *segment);
  return options.any_types ? Status{} : put_virtual_tables_right();
}

// Costs a look at every object if there is one that needs it, and nothing otherwise.
Status Heap::State::put_virtual_tables_right() {
  api::Directory& objects = root().directory;
  if (objects.polymorphic_objects() == 0) return {};
  for (api::ObjectRecord* one = objects.oldest(); one != nullptr; one = one->newer) {
    if ((one->flags & api::ObjectRecord::kPolymorphic) == 0) continue;
    const auto tables = api::virtual_tables(one->type, one->element_bytes);
    if (!tables) {
      Error error = tables.error();
      error.what = "cannot open the heap " + place.uri + ": " + error.what;
      return fail(std::move(error));
    }
    api::set_virtual_tables(**tables, one->object, one->length, one->element_bytes);
  }
  return {};
}

Heap::Heap(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Heap::Heap(Heap&& other) noexcept = default;
Heap& Heap::operator=(Heap&& other) noexcept = default;
Heap::~Heap() = default;

Result<Heap> Heap::create(std::string_view uri, const HeapOptions& options) {
  return State::make(uri, options, State::How::kCreate);
}

Result<Heap> Heap::open(std::string_view uri, const HeapOptions& options) {
  return State::make(uri, options, State::How::kOpen);
}

Result<Heap> Heap::open_or_create(std::string_view uri, const HeapOptions& options) {
  auto opened = open(uri, options);
  if (opened || opened.error().code != ErrorCode::kNotFound) return opened;
  auto created = create(uri, options);
  if (created || created.error().code != ErrorCode::kConflict) return created;
  opened = open(uri, options);  // somebody else has just made it
  return opened ? std::move(opened) : std::move(created);
}

Result<Heap> Heap::open_read_only(std::string_view uri, const HeapOptions& options) {
  return State::make(uri, options, State::How::kRead);
}

Status Heap::remove(std::string_view uri) {
  constexpr char kWhat[] = "cannot remove the heap";
  auto place = api::HeapPlace::parse(uri);
  if (!place) return fail(std::move(place.error()));
  if (!place->snapshot.empty()) {
    return fail(ErrorCode::kInvalidArgument, kWhat, base::without_secrets(uri), "this names a snapshot of it",
                "leave '@' and the name out to remove the heap with all of its snapshots");
  }
  if (!place->is_half_removed()) {
    if (Status is = place->check_is_heap(api::HeapPlace::Use::kWrite); !is) {
      is.error().what = kWhat;
      return is;
    }
  }
  auto lock = api::HeapLock::take(*place, api::HeapLock::For::kAlone);
  if (!lock) return fail(std::move(lock.error()));
  if (!place->is_half_removed()) {
    // Only what is a heap is removed, or what somebody was killed in the middle of creating.
    auto store = place->open(**lock);
    if (!store) return fail(std::move(store.error()));
    auto found = segment::read_superblock(**store);
    if (!found && found.error().code != ErrorCode::kNotFound) return fail(std::move(found.error()));
    auto usage = (*store)->usage();
    if (!usage) return fail(std::move(usage.error()));
    if (!found && usage->blocks != 0) {
      return fail(ErrorCode::kInvalidArgument, kWhat, place->uri, "there is a store, and no heap in it",
                  "`farheap store rm` removes stores of any contents");
    }
  }
  if (Status removed = place->remove(**lock); !removed) return removed;
  (*lock)->remove();
  return {};
}

Result<bool> Heap::has_writer(std::string_view uri) {
  auto place = api::HeapPlace::parse(uri);
  if (!place) return fail(std::move(place.error()));
  if (Status there = place->check_is_there(); !there) return fail(std::move(there.error()));
  return api::HeapLock::has_writer(*place);
}

Status Heap::roll_back(std::string_view uri, std::string_view snapshot) {
  auto place = api::HeapPlace::parse(uri);
  if (!place) return fail(std::move(place.error()));
  if (snapshot.empty()) snapshot = place->snapshot;
  if (Status is = place->check_is_heap(api::HeapPlace::Use::kWrite); !is) return is;
  auto lock = api::HeapLock::take(*place, api::HeapLock::For::kWriting);
  if (!lock) return fail(std::move(lock.error()));
  auto store = place->open(**lock);
  if (!store) return fail(std::move(store.error()));
  auto versions = segment::Versions::open(**store, lock->get());
  if (!versions) return fail(std::move(versions.error()));
  return (*versions)->roll_back(snapshot);
}

Status Heap::check(std::string_view uri, const CheckOptions& options) {
  auto place = api::HeapPlace::parse(uri);
  if (!place) return fail(std::move(place.error()));
  if (Status is = place->check_is_heap(api::HeapPlace::Use::kRead); !is) return is;
  {
    // Before it is mapped: what cannot be read when it is touched ends the program.
    auto lock = api::HeapLock::take(*place, api::HeapLock::For::kReading);
    if (!lock) return fail(std::move(lock.error()));
    auto store = place->open(**lock);
    if (!store) return fail(std::move(store.error()));
    if (Status lost = check_for_lost_table(*place, **store); !lost) return lost;
    auto versions = segment::Versions::open_to_read(**store, **lock);
    if (!versions) return fail(std::move(versions.error()));
    const std::uint64_t all = (*versions)->last_commit().taken_slots * base::kPageBytes;
    const auto tell = [&](std::uint64_t slots) {
      if (options.progress) options.progress(slots * base::kPageBytes, all);
    };
    if (Status status = (*versions)->check(options.data, tell); !status) return status;
  }
  auto opened = State::make(uri, {}, State::How::kCheck);
  if (!opened) return fail(std::move(opened.error()));
  State& state = *opened->state_;
  std::string why;
  const heap::KeptRange range = state.range();
  const HeapRoot& root = state.root();
  if (!state.segment->check(why) || !root.books.check(why, range) || !root.directory.check(why, range)) {
    return fail(ErrorCode::kCorrupt, "the heap's books are wrong", state.place.uri, why,
                "`farheap heap check --repair` makes it anew out of the versions that are whole");
  }
  return {};
}

}  // namespace farheap
