// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One open datastore: a heap in its folder, with Metall's conventions on top. Nothing is thrown but what constructors
// and destructors of the user's objects throw; who fails says why in the log.
//
// Thread-safety: as farheap::Heap's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <farheap/heap.hpp>
#include <farheap/heap_facts.hpp>
#include <memory>
#include <metall/defs.hpp>
#include <metall/kernel/object_list.hpp>
#include <metall/kernel/store_folder.hpp>
#include <metall/tags.hpp>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

namespace metall::kernel {

// A name, or one of the tags in its place.
class object_name {
 public:
  object_name(const char* name) noexcept : kind_(farheap::ObjectKind::kNamed), name_(name) {}
  object_name(const mtlldetail::unique_instance_t*) noexcept : kind_(farheap::ObjectKind::kUnique) {}
  object_name(const mtlldetail::anonymous_instance_t*) noexcept : kind_(farheap::ObjectKind::kAnonymous) {}

  [[nodiscard]] farheap::ObjectKind kind() const noexcept { return kind_; }
  [[nodiscard]] bool is_anonymous() const noexcept { return kind_ == farheap::ObjectKind::kAnonymous; }
  [[nodiscard]] std::string_view text(const std::type_info& type) const noexcept {
    if (is_anonymous()) return {};
    return kind_ == farheap::ObjectKind::kUnique ? type.name() : name_ == nullptr ? "" : name_;
  }

 private:
  farheap::ObjectKind kind_;
  const char* name_ = nullptr;
};

class manager_kernel {
 public:
  using path_type = store_folder::path_type;
  static constexpr std::size_t k_min_object_size = 8;  // what allocate_aligned() accepts as an alignment

  // nullptr after a message.
  [[nodiscard]] static std::unique_ptr<manager_kernel> create(const path_type& path, std::size_t capacity) {
    store_folder folder(path);
    if (capacity > METALL_MAX_CAPACITY) return refuse("a capacity of " + std::to_string(capacity) + " is too much");
    if (!folder.remove() || !folder.make(store_folder::new_uuid())) return nullptr;
    auto heap = farheap::Heap::create(folder.uri(), options(capacity));
    if (!heap && heap.error().code == farheap::ErrorCode::kInvalidArgument) {
      heap = farheap::Heap::create(folder.uri(), options(0));  // capacities are hints
    }
    if (!heap) return refuse(heap.error().message());
    return std::unique_ptr<manager_kernel>(new manager_kernel(std::move(folder), std::move(*heap)));
  }

  [[nodiscard]] static std::unique_ptr<manager_kernel> open(const path_type& path, bool read_only) {
    store_folder folder(path);
    const auto facts = folder.read_facts();
    if (!folder.is_complete() || facts.version == 0) return refuse(folder.what_is_missing());
    if (facts.version != METALL_VERSION) {
      return refuse("the datastore " + path.string() + " was made for Metall " + to_version_string(facts.version) +
                    ", this is " + to_version_string(METALL_VERSION));
    }
    auto heap = read_only ? farheap::Heap::open_read_only(folder.uri()) : farheap::Heap::open(folder.uri());
    if (!heap) return refuse(heap.error().message());
    return std::unique_ptr<manager_kernel>(new manager_kernel(std::move(folder), std::move(*heap)));
  }

  manager_kernel(const manager_kernel&) = delete;
  manager_kernel& operator=(const manager_kernel&) = delete;
  ~manager_kernel() {
    if (!read_only()) (void)flush();
  }

  [[nodiscard]] bool read_only() const noexcept { return heap_.is_read_only(); }
  [[nodiscard]] const store_folder& folder() const noexcept { return folder_; }
  [[nodiscard]] farheap::HeapRoot* root() const noexcept { return heap_.allocator().root(); }
  [[nodiscard]] const void* address() const noexcept { return heap_.address(); }
  [[nodiscard]] farheap::HeapStatistics statistics() const { return heap_.statistics(); }

  bool flush() noexcept {
    if (read_only()) return true;
    const auto status = heap_.commit();
    if (!status) log_error(__FILE__, __LINE__, status.error().message());
    return status && folder_.set_complete();
  }

  [[nodiscard]] bool snapshot(const path_type& to) noexcept {
    return (read_only() || flush()) && copy(folder_, store_folder(to), store_folder::new_uuid());
  }
  // What was committed last.
  [[nodiscard]] static bool copy(const store_folder& from, const store_folder& to, const std::string& uuid) {
    if (!to.remove() || !to.make(uuid)) return false;
    if (const auto copied = farheap::Heap::copy(from.uri(), to.uri()); !copied) {
      log_error(__FILE__, __LINE__, copied.error().message());
      return false;
    }
    std::string description;
    if (from.read_description(description) && !to.write_description(description)) return false;
    return to.set_complete();
  }

  // ---- memory
  [[nodiscard]] void* allocate(std::size_t bytes) noexcept { return read_only() ? nullptr : heap_.allocate(bytes); }
  [[nodiscard]] void* allocate_aligned(std::size_t bytes, std::size_t alignment, std::size_t most) noexcept {
    const bool is_power = alignment != 0 && (alignment & (alignment - 1)) == 0;
    if (read_only() || !is_power || alignment < k_min_object_size || alignment > most || bytes % alignment != 0) {
      return nullptr;
    }
    return heap_.allocate(bytes, alignment);
  }
  void deallocate(void* pointer) noexcept {
    if (!read_only()) heap_.deallocate(pointer);
  }
  [[nodiscard]] bool all_memory_deallocated() const {
    const farheap::HeapStatistics found = heap_.statistics();
    return found.objects == 0 && found.allocated_bytes == found.index_bytes;
  }

  // ---- objects. As in Metall the type is not looked at: is_instance_type() tells.
  template <class T>
  [[nodiscard]] std::pair<T*, std::size_t> find(object_name name) const {
    if (name.is_anonymous()) return {nullptr, 0};
    const auto entry = heap_.entry(name.kind(), name.text(typeid(T)));
    if (!entry) return {nullptr, 0};
    return {static_cast<T*>(entry->address), entry->length};
  }

  // make(first): constructs `length` objects there, or throws and leaves none. nullptr if the name is taken, or there
  // is no room.
  template <class T, class Make>
  [[nodiscard]] T* construct(object_name name, std::size_t length, bool find_first, const Make& make) {
    if (T* const there = find<T>(name).first) return find_first ? there : nullptr;
    if (name.kind() == farheap::ObjectKind::kNamed && name.text(typeid(T)).empty()) return nullptr;
    void* const memory = allocate_array<T>(length);
    if (memory == nullptr) return nullptr;
    T* const first = static_cast<T*>(memory);
    try {
      make(first);
    } catch (...) {
      heap_.deallocate(memory);
      throw;
    }
    if (enter(name, typeid(T), length, sizeof(T), first)) return first;
    std::destroy_n(first, length);
    heap_.deallocate(memory);
    return find_first ? find<T>(name).first : nullptr;  // another thread was faster
  }

  template <class T>
  [[nodiscard]] bool destroy(object_name name) {
    if (read_only() || name.is_anonymous()) return false;
    return destroy<T>(heap_.remove_entry(name.kind(), name.text(typeid(T))));
  }
  template <class T>
  [[nodiscard]] bool destroy_ptr(const T* object) {
    return !read_only() && destroy<T>(heap_.remove_entry(object));
  }

  // ---- attributes
  [[nodiscard]] std::optional<farheap::ObjectEntry> entry(const void* object) const { return heap_.entry(object); }
  [[nodiscard]] bool describe(const void* object, const std::string& description) {
    return !read_only() && heap_.describe(object, description).has_value();
  }
  [[nodiscard]] std::size_t count(farheap::ObjectKind kind) const {
    std::size_t found = 0;
    heap_.for_each_object([&](const farheap::ObjectInfo& object) { found += object.kind == kind ? 1 : 0; });
    return found;
  }
  [[nodiscard]] object_list list(farheap::ObjectKind kind) const {
    auto found = std::make_shared<std::vector<object_entry>>();
    const auto base = reinterpret_cast<std::uintptr_t>(heap_.address());
    heap_.for_each_object([&](const farheap::ObjectInfo& object) { add_to(*found, object, kind, base); });
    return found;
  }
  // Of a store that is not opened: as of its last commit.
  [[nodiscard]] static object_list list(const farheap::HeapFacts& facts, farheap::ObjectKind kind) {
    auto found = std::make_shared<std::vector<object_entry>>();
    for (const farheap::ObjectInfo& object : facts.objects) add_to(*found, object, kind, facts.address);
    return found;
  }

 private:
  manager_kernel(store_folder folder, farheap::Heap heap) : folder_(std::move(folder)), heap_(std::move(heap)) {}

  static std::unique_ptr<manager_kernel> refuse(const std::string& why) {
    log_error(__FILE__, __LINE__, why);
    return nullptr;
  }

  static void add_to(std::vector<object_entry>& list, const farheap::ObjectInfo& object, farheap::ObjectKind kind,
                     std::uintptr_t base) {
    if (object.kind != kind) return;
    const auto offset = static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(object.address) - base);
    list.emplace_back(object.name, offset, object.length, type_id_of(object.type), object.description);
  }

  // Room for the heap's own tables is on top; more than a heap can have is cut.
  static farheap::HeapOptions options(std::size_t capacity) {
    constexpr std::size_t kStep = 2 << 20;
    farheap::HeapOptions options{.relocatable = true};
    if (capacity == 0 || capacity >= METALL_DEFAULT_CAPACITY) return options;
    options.capacity =
        std::max<std::size_t>(256 << 20, (capacity + capacity / 16 + (std::size_t{128} << 20)) / kStep * kStep);
    return options;
  }

  template <class T>
  [[nodiscard]] void* allocate_array(std::size_t length) noexcept {
    if (read_only() || length > SIZE_MAX / sizeof(T)) return nullptr;
    return heap_.allocate(length * sizeof(T), alignof(T));
  }
  [[nodiscard]] bool enter(object_name name, const std::type_info& type, std::size_t length, std::size_t element_bytes,
                           void* object) noexcept {
    try {
      return heap_.add_entry({.kind = name.kind(),
                              .name = name.text(type),
                              .type = type.name(),
                              .length = length,
                              .element_bytes = element_bytes,
                              .address = object});
    } catch (const std::exception&) {  // no room for the entry
      return false;
    }
  }
  // The entry has gone already, and the memory stays if a destructor throws: as in Metall.
  template <class T>
  bool destroy(farheap::Heap::Found<void> found) {
    if (found.first == nullptr) return false;
    std::destroy_n(static_cast<T*>(found.first), found.length);
    heap_.deallocate(found.first);
    return true;
  }

  store_folder folder_;
  mutable farheap::Heap heap_;
};

}  // namespace metall::kernel
