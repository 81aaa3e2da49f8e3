// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is in an open heap: memory, objects by name and by address, facts.
#include <fmt/format.h>

#include <algorithm>

#include "api/heap_state.hpp"
#include "api/type_text.hpp"
#include "api/virtual_tables.hpp"
#include "base/mutex.hpp"
#include "base/units.hpp"

namespace farheap {

// ---- memory

void* detail::allocate(HeapRoot* root, std::size_t bytes, std::size_t alignment) noexcept {
  return alignment <= 16 ? root->books.allocate(bytes) : root->books.allocate_aligned(bytes, alignment);
}

void* detail::allocate_array(HeapRoot* root, std::size_t count, std::size_t element_bytes, std::size_t alignment) {
  if (count > SIZE_MAX / element_bytes) throw std::bad_array_new_length();
  void* const memory = allocate(root, count * element_bytes, alignment);
  if (memory == nullptr) reinterpret_cast<api::Resource*>(root->resource)->refuse(count * element_bytes);
  return memory;
}

void api::Resource::refuse(std::size_t bytes) const {
  const std::string uri = segment_.store().describe();
  if (segment_.read_only()) {
    throw ReadOnlyHeap(
        fmt::format("cannot allocate in a heap: {}: it was opened for reading; open it with Heap::open() "
                    "to change it",
                    uri));
  }
  throw HeapFull(
      fmt::format("the heap is full: {}: no room for {} of its {}; make it with a larger capacity, or free "
                  "something",
                  uri, base::format_size(bytes), base::format_size(segment_.capacity_bytes())));
}

void Heap::State::must_be_writable(const char* what, std::string_view name) const {
  if (!segment->read_only()) return;
  throw ReadOnlyHeap(
      fmt::format("cannot {} '{}': the heap {} was opened for reading; open it with Heap::open() to "
                  "change it",
                  what, name, place.uri));
}

void detail::deallocate(HeapRoot* root, void* pointer) noexcept { root->books.free(pointer); }

void detail::hold_commit(HeapRoot* root) { reinterpret_cast<api::Resource*>(root->resource)->commit_holds().enter(); }
void detail::let_commit(HeapRoot* root) noexcept {
  reinterpret_cast<api::Resource*>(root->resource)->commit_holds().leave();
}

HeapRoot* Heap::root() const noexcept { return &state_->root(); }

void* Heap::allocate(std::size_t bytes, std::size_t alignment) noexcept {
  return detail::allocate(root(), bytes, alignment);
}

void Heap::deallocate(void* pointer) noexcept { root()->books.free(pointer); }
void* Heap::reallocate(void* pointer, std::size_t bytes) noexcept { return root()->books.reallocate(pointer, bytes); }

std::pmr::memory_resource* Heap::resource() const noexcept {
  return reinterpret_cast<api::Resource*>(root()->resource);
}

bool Heap::owns(const void* pointer) const noexcept {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - state_->segment->base());
  return offset < state_->segment->capacity_bytes();
}

// ---- objects

namespace {

std::string_view name_of(const api::ObjectRecord& record) {
  return {record.name == nullptr ? "" : record.name, record.name_bytes};
}

std::string type_and_bytes(std::string_view type, std::size_t bytes) {
  return fmt::format("{} of {} byte{}", api::short_type(type), bytes, bytes == 1 ? "" : "s");
}

// A length of 0: whatever it is.
void check_type(const api::ObjectRecord& record, std::string_view type, std::size_t element_bytes,
                std::size_t length = 0) {
  const bool is_unique = static_cast<ObjectKind>(record.kind) == ObjectKind::kUnique;
  const std::string which = is_unique ? "the unique object" : fmt::format("the object '{}'", name_of(record));
  if (record.element_bytes != element_bytes || !api::is_same_type(record.type, type)) {
    const bool alike = api::short_type(record.type) == api::short_type(type);
    throw TypeMismatch(fmt::format(
        "{} is of type {}, and was asked for as {}{}", which, type_and_bytes(record.type, record.element_bytes),
        type_and_bytes(type, element_bytes),
        alike && record.element_bytes == element_bytes
            ? fmt::format(" (in full: {}, and {})", api::readable_type(record.type), api::readable_type(type))
            : ""));
  }
  if (length == 0 || record.length == length) return;
  throw TypeMismatch(
      fmt::format("{} has {} element{} of type {}, and was asked for with {}; find_array() tells how many "
                  "there are",
                  which, record.length, record.length == 1 ? "" : "s", api::short_type(type), length));
}

}  // namespace

Heap::Entry Heap::look_up(const Key& key) const {
  base::SharedGuard lock(state_->directory);
  const api::ObjectRecord* const record = root()->directory.find(static_cast<std::uint32_t>(key.kind), key.name);
  if (record == nullptr) return {};
  check_type(*record, key.type, key.element_bytes, key.length);
  return {record->object, record->length};
}

void* Heap::room_for(const Key& key, std::size_t length, std::size_t alignment) {
  state_->must_be_writable("construct the object", key.name);
  if (length == 0) throw std::bad_array_new_length();
  return detail::allocate_array(root(), length, key.element_bytes, alignment);
}

bool Heap::enter(const Key& key, void* object, std::size_t length) {
  if (key.polymorphic) {  // told now, not when it is opened
    const auto tables = api::virtual_tables(key.type, key.element_bytes);
    if (!tables) throw TypeMismatch(tables.error().message());
  }
  state_->must_be_writable("enter the object", key.name);
  base::LockGuard lock(state_->directory);
  api::Directory& directory = root()->directory;
  const auto kind = static_cast<std::uint32_t>(key.kind);
  if (key.kind != ObjectKind::kAnonymous && directory.find(kind, key.name) != nullptr) return false;
  const api::ObjectRecord* const record =
      directory.enter(root()->books, kind, key.name, key.type, key.element_bytes, object, length,
                      key.polymorphic ? api::ObjectRecord::kPolymorphic : std::uint16_t{0});
  if (record == nullptr) static_cast<api::Resource*>(resource())->refuse(sizeof *record + key.name.size());
  state_->watch.add(*record);
  return true;
}

Heap::Entry Heap::take(const Key& key, const void* object) {
  state_->must_be_writable("destroy the object", key.name);
  base::LockGuard lock(state_->directory);
  api::Directory& directory = root()->directory;
  api::ObjectRecord* const record =
      object != nullptr ? directory.find(object) : directory.find(static_cast<std::uint32_t>(key.kind), key.name);
  if (record == nullptr) return {};
  check_type(*record, key.type, key.element_bytes);
  const Entry entry{record->object, record->length};
  state_->watch.remove(*record);
  directory.remove(root()->books, record);
  return entry;
}

namespace {

Status opened_for_reading(const char* what, std::string uri) {
  return fail(ErrorCode::kInvalidArgument, what, std::move(uri), "the heap was opened for reading",
              "open it with Heap::open() to change it");
}

}  // namespace

Status Heap::describe(const void* object, std::string_view description) {
  if (is_read_only()) return opened_for_reading("cannot describe an object", uri());
  base::LockGuard lock(state_->directory);
  api::ObjectRecord* const record = root()->directory.find(object);
  if (record == nullptr) {
    return fail(ErrorCode::kNotFound, "cannot describe an object", fmt::format("{}", object),
                "construct() did not return it, or it was destroyed");
  }
  state_->watch.remove(*record);
  const bool described = root()->directory.describe(root()->books, *record, description);
  state_->watch.add(*record);
  if (described) return {};
  return fail(ErrorCode::kNoSpace, "cannot describe an object", uri(), "the heap is full");
}

void Heap::for_each_object(const std::function<void(const ObjectInfo&)>& visit) const {
  base::SharedGuard lock(state_->directory);
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
  base::SharedGuard lock(state_->directory);
  const api::ObjectRecord* const record = root()->directory.find(static_cast<std::uint32_t>(kind), name);
  if (record == nullptr) return std::nullopt;
  return entry_of(*record);
}

std::optional<ObjectEntry> Heap::entry(const void* object) const {
  base::SharedGuard lock(state_->directory);
  const api::ObjectRecord* const record = root()->directory.find(object);
  if (record == nullptr) return std::nullopt;
  return entry_of(*record);
}

bool Heap::add_entry(const ObjectEntry& entry) {
  const std::string_view name = entry.kind == ObjectKind::kAnonymous ? std::string_view() : entry.name;
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): it is ended by a zero, as required
  const Key key{entry.kind, name, entry.type.data(), entry.element_bytes, false};
  return enter(key, entry.address, entry.length);
}

namespace {

Heap::Found<void> remove_from(HeapRoot& root, api::DirectoryWatch& watch, api::ObjectRecord* record) {
  if (record == nullptr) return {};
  const Heap::Found<void> found{record->object, record->length};
  watch.remove(*record);
  root.directory.remove(root.books, record);
  return found;
}

}  // namespace

Heap::Found<void> Heap::remove_entry(ObjectKind kind, std::string_view name) {
  state_->must_be_writable("remove the object", name);
  base::LockGuard lock(state_->directory);
  return remove_from(*root(), state_->watch, root()->directory.find(static_cast<std::uint32_t>(kind), name));
}

Heap::Found<void> Heap::remove_entry(const void* object) {
  state_->must_be_writable("remove the object", "");
  base::LockGuard lock(state_->directory);
  return remove_from(*root(), state_->watch, root()->directory.find(object));
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
  base::SharedGuard lock(state_->directory);
  return root()->description == nullptr ? "" : root()->description;
}

Status Heap::set_description(std::string_view description) {
  if (is_read_only()) return opened_for_reading("cannot describe the heap", uri());
  auto* const text = static_cast<char*>(allocate(description.size() + 1));
  if (text == nullptr) return fail(ErrorCode::kNoSpace, "cannot describe the heap", uri(), "it is full");
  std::copy(description.begin(), description.end(), text);
  text[description.size()] = '\0';
  base::LockGuard lock(state_->directory);
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
    base::SharedGuard lock(state_->directory);
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
