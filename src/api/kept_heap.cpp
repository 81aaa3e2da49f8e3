// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap::Heap: a kept segment, with an allocator and a directory of objects in it.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <farheap/farheap.hpp>
#include <mutex>
#include <new>
#include <shared_mutex>

#include "api/commit_holds.hpp"
#include "api/directory.hpp"
#include "api/forked_children.hpp"
#include "api/heap_place.hpp"
#include "api/virtual_tables.hpp"
#include "base/log.hpp"
#include "base/units.hpp"
#include "segment/kept_segment.hpp"

namespace farheap {

// What the root of a kept segment holds (docs/formats.md, "A heap"). The heap's own books come first: all of it is
// found again by the segment's address alone.
struct HeapRoot {
  heap::Heap books;
  alignas(64) api::Directory directory;
  alignas(64) std::byte resource[64];  // a Resource, made anew by every process
  const char* description = nullptr;   // of the heap; ended by a zero

  HeapRoot(segment::PageSpace& space, base::MetadataSource& tables, base::Gate& gate)
      : books(space, kMostWaiting, tables, &gate) {}
  // Freed large objects that keep their pages: they would be committed. None.
  static constexpr std::size_t kMostWaiting = 0;
};
static_assert(sizeof(HeapRoot) <= segment::KeptBooks::kRootBytes);

namespace {

class Resource final : public std::pmr::memory_resource {
 public:
  Resource(HeapRoot& root, api::CommitHolds& holds) : root_(root), holds_(holds) {}
  // By way of the heap's root: for what lives in the heap and has nothing else.
  [[nodiscard]] api::CommitHolds& commit_holds() const { return holds_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* const memory = root_.books.allocate_aligned(bytes, alignment);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }
  void do_deallocate(void* pointer, std::size_t, std::size_t) override { root_.books.free(pointer); }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  HeapRoot& root_;
  api::CommitHolds& holds_;
};
static_assert(sizeof(Resource) <= sizeof(HeapRoot::resource));

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

}  // namespace

struct Heap::State final : api::ForkWatcher {
  State(api::HeapPlace its_place, api::HeapLock its_lock) : place(std::move(its_place)), lock(std::move(its_lock)) {}
  ~State() {
    watch_forks(false);
    if (owner != getpid()) {  // in a forked child nothing of it is there; all is the parent's
      (void)segment.release();
      lock.leave_to_parent();
      return;
    }
    if (attached) root().books.detach();
  }
  [[nodiscard]] Status commit(segment::KeptSegment::Kind kind, std::string_view name);
  [[nodiscard]] Status put_virtual_tables_right();
  void is_forked_child() noexcept override;
  [[nodiscard]] Status read_in_child();
  [[nodiscard]] Status ready_to_read();
  [[nodiscard]] HeapRoot& root() const { return *reinterpret_cast<HeapRoot*>(segment->root()); }

  api::HeapPlace place;
  api::HeapLock lock;
  std::unique_ptr<segment::KeptSegment> segment;
  base::Gate gate;                      // closed: the allocator's books are at rest
  api::CommitHolds holds;               // inside: no commit cuts
  mutable std::shared_mutex directory;  // guards the directory's records
  bool attached = false;
  pid_t owner = getpid();
  int binding = -1;  // of the allocator's threads
  HeapOptions options;

  enum class How { kCreate, kOpen, kRead, kCheck };  // kCheck: as kRead, with the allocator's books
  static Result<Heap> make(std::string_view uri, const HeapOptions& options, How how);
};

Result<Heap> Heap::State::make(std::string_view uri, const HeapOptions& options, How how) {
  auto settings = settings_of(options);
  if (!settings) return fail(std::move(settings.error()));
  auto place = api::HeapPlace::parse(uri);
  if (!place) return fail(std::move(place.error()));
  const bool reads = how == How::kRead || how == How::kCheck;
  if (!place->snapshot.empty() && !reads) {
    return fail(ErrorCode::kInvalidArgument, "cannot open the heap", std::string(uri), "a snapshot never changes",
                "open it with open_read_only()");
  }
  if (how != How::kCreate && !place->is_there()) return place->not_there();
  using For = api::HeapLock::For;
  auto lock = api::HeapLock::take(*place, how == How::kCreate ? For::kAlone
                                          : how == How::kOpen ? For::kWriting
                                                              : For::kReading);
  if (!lock) return fail(std::move(lock.error()));
  if (how == How::kCreate && place->is_half_removed()) {
    if (Status removed = place->remove_files(); !removed) return fail(std::move(removed.error()));
  }
  auto store = place->open();
  if (!store) return fail(std::move(store.error()));
  auto state = std::make_unique<State>(std::move(*place), std::move(*lock));
  settings->leases = &state->lock;
  using segment::KeptSegment;
  auto opened = how == How::kCreate ? KeptSegment::create(std::move(*store), *settings)
                : how == How::kOpen ? KeptSegment::open(std::move(*store), *settings)
                                    : KeptSegment::open_read_only(std::move(*store), state->place.snapshot, *settings);
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
  ::new (static_cast<void*>(state->root().resource)) Resource(state->root(), state->holds);
  if (!options.any_types && how != How::kCheck) {
    if (Status right = state->put_virtual_tables_right(); !right) return fail(std::move(right.error()));
  }
  if (how == How::kRead) state->root().books.attach_to_read();
  if (reads) segment.seal();
  if (state->attached) state->binding = state->root().books.binding();
  state->options = options;
  state->watch_forks(options.in_children);
  Heap heap(std::move(state));
  if (how == How::kCreate) {
    Status status = heap.commit();
    if (status) status = heap.state_->lock.let_readers_in();
    if (!status) return fail(std::move(status.error()));
  }
  return heap;
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
  lock.leave_to_parent();
  std::destroy_at(&lock);
  std::construct_at(&lock, std::move(*taken));
  std::construct_at(&directory);  // another thread may have had it
  auto store = place.open();
  if (!store) return fail(std::move(store.error()));
  settings->leases = &lock;
  auto opened = segment::KeptSegment::open_read_only(std::move(*store), place.snapshot, *settings);
  if (!opened) return fail(std::move(opened.error()));
  (void)segment.release();
  segment = std::move(*opened);
  heap::Heap::forget_in_child(std::exchange(binding, -1));
  attached = false;
  owner = getpid();
  if (Status ready = ready_to_read(); !ready) return ready;
  segment->seal();
  return {};
}

// What this process needs of its own in pages that it does not change otherwise.
Status Heap::State::ready_to_read() {
  root().books.attach_to_read();
  ::new (static_cast<void*>(root().resource)) Resource(root(), holds);
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
  return create(uri, options);
}

Result<Heap> Heap::open_read_only(std::string_view uri, const HeapOptions& options) {
  return State::make(uri, options, State::How::kRead);
}

Status Heap::remove(std::string_view uri) {
  auto place = api::HeapPlace::parse(uri);
  if (!place) return fail(std::move(place.error()));
  if (!place->snapshot.empty()) {
    return fail(ErrorCode::kInvalidArgument, "cannot remove the heap", std::string(uri), "this names a snapshot of it",
                "remove_snapshot() removes that alone");
  }
  if (!place->is_there() && !place->is_half_removed()) return place->not_there();
  auto lock = api::HeapLock::take(*place, api::HeapLock::For::kAlone);
  if (!lock) return fail(std::move(lock.error()));
  if (!place->is_half_removed()) {
    // Only what is a heap is removed.
    auto store = place->open();
    if (!store) return fail(std::move(store.error()));
    auto found = segment::read_superblock(**store);
    if (!found && found.error().code != ErrorCode::kNotFound) return fail(std::move(found.error()));
  }
  if (Status removed = place->remove_files(); !removed) return removed;
  if (unlink(place->lock_file().c_str()) == 0 || errno == ENOENT) return {};
  return fail(errno_error(errno, "cannot remove the heap", place->lock_file()));
}

Result<bool> Heap::has_writer(std::string_view uri) {
  auto place = api::HeapPlace::parse(uri);
  if (!place) return fail(std::move(place.error()));
  if (!place->is_there()) return place->not_there();
  return api::HeapLock::has_writer(*place);
}

Status Heap::roll_back(std::string_view uri, std::string_view snapshot) {
  auto place = api::HeapPlace::parse(uri);
  if (!place) return fail(std::move(place.error()));
  if (snapshot.empty()) snapshot = place->snapshot;
  if (!place->is_there()) return place->not_there();
  auto lock = api::HeapLock::take(*place, api::HeapLock::For::kWriting);
  if (!lock) return fail(std::move(lock.error()));
  auto store = place->open();
  if (!store) return fail(std::move(store.error()));
  auto versions = segment::Versions::open(**store, &*lock);
  if (!versions) return fail(std::move(versions.error()));
  return (*versions)->roll_back(snapshot);
}

Status Heap::check(std::string_view uri, const CheckOptions& options) {
  auto place = api::HeapPlace::parse(uri);
  if (!place) return fail(std::move(place.error()));
  if (!place->is_there()) return place->not_there();
  {
    // Before it is mapped: what cannot be read when it is touched ends the program.
    auto lock = api::HeapLock::take(*place, api::HeapLock::For::kReading);
    if (!lock) return fail(std::move(lock.error()));
    auto store = place->open();
    if (!store) return fail(std::move(store.error()));
    auto versions = segment::Versions::open_to_read(**store, *lock);
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
  const heap::KeptRange range{state.segment->base(), state.segment->base() + state.segment->capacity_bytes()};
  const HeapRoot& root = state.root();
  if (!state.segment->check(why) || !root.books.check(why, range) || !root.directory.check(why, range)) {
    return fail(ErrorCode::kCorrupt, "the heap's books are wrong", state.place.uri, why,
                "`farheap heap check --repair` makes it anew out of the versions that are whole");
  }
  return {};
}

// ---- versions

// Who allocates, enters a name or pauses waits until the cut is made, and no longer. Those who pause by turns, or look
// up names without an end, do not keep a commit waiting for ever: a closed gate lets nobody in, and the directory,
// which has to be at rest, is shared with them.
Status Heap::State::commit(segment::KeptSegment::Kind kind, std::string_view name) {
  if (segment->read_only()) {
    return fail(ErrorCode::kInvalidArgument, "cannot commit", place.uri, "it was opened for reading", "use open()");
  }
  if (owner != getpid()) {
    return fail(ErrorCode::kUnavailable, "cannot commit", place.uri, "this is a forked child, which does not have it",
                "commit in the process that has opened it");
  }
  holds.stop();
  std::shared_lock no_names(directory);
  gate.close();
  bool open = false;
  const auto at_cut = [&] {
    open = true;
    gate.open();
    no_names.unlock();
    holds.resume();
  };
  Status status = segment->commit(kind, name, at_cut);
  if (!open) at_cut();
  return status;
}

Status Heap::commit() { return state_->commit(segment::KeptSegment::Kind::kCommit, {}); }

Status Heap::snapshot(std::string_view name) {
  if (name.find('@') != name.npos) {
    return fail(ErrorCode::kInvalidArgument, "cannot make a snapshot", std::string(name), "'@' cannot be in its name");
  }
  return state_->commit(segment::KeptSegment::Kind::kSnapshot, name);
}

// What is gathered gives its old places back with the second commit.
Status Heap::compact(const HeapProgress& progress) {
  if (state_->attached) {
    root()->books.flush_thread_cache();
    root()->books.purge();
  }
  Status status = commit();
  if (status) status = state_->segment->gather(progress);
  return status ? commit() : status;
}

Status Heap::remove_snapshot(std::string_view name) {
  return state_->commit(segment::KeptSegment::Kind::kRemoval, name);
}

Result<std::vector<VersionInfo>> Heap::versions() {
  segment::Versions& versions = state_->segment->versions();
  auto snapshots = versions.snapshots();
  if (!snapshots) return fail(std::move(snapshots.error()));
  std::vector<VersionInfo> all;
  for (const auto& one : *snapshots) all.push_back({one.name, one.commit, one.time_ns, one.pages});
  const segment::Superblock newest = versions.last_commit();
  all.push_back({{}, newest.commit, newest.time_ns, newest.pages});
  return all;
}

Heap::Pause::Pause(Heap& heap) : heap_(&heap) { heap.state_->holds.enter(); }
Heap::Pause::~Pause() {
  if (heap_ != nullptr) heap_->state_->holds.leave();
}

// ---- memory

void* detail::allocate(HeapRoot* root, std::size_t bytes, std::size_t alignment) noexcept {
  return alignment <= 16 ? root->books.allocate(bytes) : root->books.allocate_aligned(bytes, alignment);
}

void detail::deallocate(HeapRoot* root, void* pointer) noexcept { root->books.free(pointer); }

void detail::hold_commit(HeapRoot* root) { reinterpret_cast<Resource*>(root->resource)->commit_holds().enter(); }
void detail::let_commit(HeapRoot* root) noexcept {
  reinterpret_cast<Resource*>(root->resource)->commit_holds().leave();
}

HeapRoot* Heap::root() const noexcept { return &state_->root(); }

void* Heap::allocate(std::size_t bytes, std::size_t alignment) noexcept {
  return detail::allocate(root(), bytes, alignment);
}

void Heap::deallocate(void* pointer) noexcept { root()->books.free(pointer); }
void* Heap::reallocate(void* pointer, std::size_t bytes) noexcept { return root()->books.reallocate(pointer, bytes); }

std::pmr::memory_resource* Heap::resource() const noexcept { return reinterpret_cast<Resource*>(root()->resource); }

bool Heap::owns(const void* pointer) const noexcept {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - state_->segment->base());
  return offset < state_->segment->capacity_bytes();
}

// ---- objects

namespace {

void check_type(const api::ObjectRecord& record, std::string_view type, std::size_t element_bytes) {
  if (record.type == type && record.element_bytes == element_bytes) return;
  throw TypeMismatch(fmt::format("the object '{}' is of type {} with {} bytes, and was asked for as {} with {}",
                                 record.name == nullptr ? "" : record.name, record.type, record.element_bytes, type,
                                 element_bytes));
}

}  // namespace

Heap::Entry Heap::look_up(const Key& key) const {
  std::shared_lock lock(state_->directory);
  const api::ObjectRecord* const record = root()->directory.find(static_cast<std::uint32_t>(key.kind), key.name);
  if (record == nullptr) return {};
  check_type(*record, key.type, key.element_bytes);
  return {record->object, record->length};
}

bool Heap::enter(const Key& key, void* object, std::size_t length) {
  if (key.polymorphic) {  // told now, not when it is opened
    const auto tables = api::virtual_tables(key.type, key.element_bytes);
    if (!tables) throw TypeMismatch(tables.error().message());
  }
  std::unique_lock lock(state_->directory);
  api::Directory& directory = root()->directory;
  const auto kind = static_cast<std::uint32_t>(key.kind);
  if (key.kind != ObjectKind::kAnonymous && directory.find(kind, key.name) != nullptr) return false;
  if (directory.enter(root()->books, kind, key.name, key.type, key.element_bytes, object, length,
                      key.polymorphic ? api::ObjectRecord::kPolymorphic : std::uint16_t{0}) == nullptr) {
    throw std::bad_alloc();
  }
  return true;
}

Heap::Entry Heap::take(const Key& key, const void* object) {
  std::unique_lock lock(state_->directory);
  api::Directory& directory = root()->directory;
  api::ObjectRecord* const record =
      object != nullptr ? directory.find(object) : directory.find(static_cast<std::uint32_t>(key.kind), key.name);
  if (record == nullptr) return {};
  check_type(*record, key.type, key.element_bytes);
  const Entry entry{record->object, record->length};
  directory.remove(root()->books, record);
  return entry;
}

Status Heap::describe(const void* object, std::string_view description) {
  std::unique_lock lock(state_->directory);
  api::ObjectRecord* const record = root()->directory.find(object);
  if (record == nullptr) {
    return fail(ErrorCode::kNotFound, "cannot describe an object", fmt::format("{}", object),
                "construct() did not return it, or it was destroyed");
  }
  if (root()->directory.describe(root()->books, *record, description)) return {};
  return fail(ErrorCode::kNoSpace, "cannot describe an object", uri(), "the heap is full");
}

void Heap::for_each_object(const std::function<void(const ObjectInfo&)>& visit) const {
  std::shared_lock lock(state_->directory);
  for (const api::ObjectRecord* one = root()->directory.oldest(); one != nullptr; one = one->newer) {
    visit({static_cast<ObjectKind>(one->kind), std::string(one->name == nullptr ? "" : one->name, one->name_bytes),
           one->type, one->length, one->length * one->element_bytes,
           one->description == nullptr ? "" : one->description, one->object});
  }
}

namespace {

ObjectEntry entry_of(const api::ObjectRecord& record) {
  const auto text = [](const char* from) { return from == nullptr ? std::string_view() : std::string_view(from); };
  return {.kind = static_cast<ObjectKind>(record.kind),
          .name = {record.name == nullptr ? "" : record.name, record.name_bytes},
          .type = text(record.type),
          .description = text(record.description),
          .length = record.length,
          .element_bytes = record.element_bytes,
          .address = record.object};
}

}  // namespace

std::optional<ObjectEntry> Heap::entry(ObjectKind kind, std::string_view name) const {
  std::shared_lock lock(state_->directory);
  const api::ObjectRecord* const record = root()->directory.find(static_cast<std::uint32_t>(kind), name);
  if (record == nullptr) return std::nullopt;
  return entry_of(*record);
}

std::optional<ObjectEntry> Heap::entry(const void* object) const {
  std::shared_lock lock(state_->directory);
  const api::ObjectRecord* const record = root()->directory.find(object);
  if (record == nullptr) return std::nullopt;
  return entry_of(*record);
}

bool Heap::add_entry(const ObjectEntry& entry) {
  const std::string_view name = entry.kind == ObjectKind::kAnonymous ? std::string_view() : entry.name;
  return enter({entry.kind, name, entry.type.data(), entry.element_bytes}, entry.address, entry.length);
}

namespace {

Heap::Found<void> remove_from(HeapRoot& root, api::ObjectRecord* record) {
  if (record == nullptr) return {};
  const Heap::Found<void> found{record->object, record->length};
  root.directory.remove(root.books, record);
  return found;
}

}  // namespace

Heap::Found<void> Heap::remove_entry(ObjectKind kind, std::string_view name) {
  std::unique_lock lock(state_->directory);
  return remove_from(*root(), root()->directory.find(static_cast<std::uint32_t>(kind), name));
}

Heap::Found<void> Heap::remove_entry(const void* object) {
  std::unique_lock lock(state_->directory);
  return remove_from(*root(), root()->directory.find(object));
}

// ---- facts

std::string Heap::uri() const {
  const std::string store = state_->segment->store().describe();
  return state_->place.snapshot.empty() ? store : store + "@" + state_->place.snapshot;
}

const void* Heap::address() const noexcept { return state_->segment->base(); }

bool Heap::is_relocatable() const noexcept { return state_->segment->relocatable(); }

bool Heap::is_read_only() const noexcept { return state_->segment->read_only(); }

std::string Heap::id() const {
  std::string text;
  for (const std::byte byte : state_->segment->versions().last_commit().id) {
    text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return text;
}

std::string Heap::description() const {
  std::shared_lock lock(state_->directory);
  return root()->description == nullptr ? "" : root()->description;
}

Status Heap::set_description(std::string_view description) {
  auto* const text = static_cast<char*>(allocate(description.size() + 1));
  if (text == nullptr) return fail(ErrorCode::kNoSpace, "cannot describe the heap", uri(), "it is full");
  std::copy(description.begin(), description.end(), text);
  text[description.size()] = '\0';
  std::unique_lock lock(state_->directory);
  deallocate(const_cast<char*>(std::exchange(root()->description, text)));
  return {};
}

std::uint64_t Heap::last_commit() const { return state_->segment->versions().last_commit().commit; }

std::uint32_t Heap::format() const noexcept { return state_->segment->format(); }

HeapStatistics Heap::statistics() {
  HeapStatistics found;
  found.memory_bytes = state_->segment->resident_bytes();
  if (state_->attached) found.allocated_bytes = root()->books.statistics().live_bytes;
  found.segment_bytes = state_->segment->handed_out_bytes();
  found.capacity_bytes = state_->segment->capacity_bytes();
  {
    std::shared_lock lock(state_->directory);
    found.objects = root()->directory.objects();
    if (state_->attached) found.index_bytes = root()->directory.index_bytes(root()->books);
  }
  const base::RunCounters& counters = state_->segment->counters();
  found.faults = counters.faults;
  found.bytes_read = counters.bytes_read;
  found.bytes_written = counters.bytes_written;
  return found;
}

}  // namespace farheap
