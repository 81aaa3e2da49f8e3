// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// metall::basic_manager on a kept heap (docs/moving.md). Constructors do not throw: check_sanity() tells whether there
// is a store, and the log why not; all other calls do nothing then. What was changed is committed by flush(),
// snapshot() and the destructor.
//
// Thread-safety: any thread may allocate, construct, find and destroy at the same time; flush(), snapshot() and the
// iterators as in Metall.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <metall/container/fallback_allocator.hpp>
#include <metall/container/scoped_allocator.hpp>
#include <metall/detail/named_proxy.hpp>
#include <metall/kernel/manager_kernel.hpp>
#include <metall/object_attribute_accessor.hpp>
#include <metall/stl_allocator.hpp>
#include <metall/tags.hpp>
#include <metall/version.hpp>
#include <string>
#include <utility>

namespace metall {

namespace kernel {
// Metall's places for other storage; there is one here.
class storage;
class segment_storage;
}  // namespace kernel

template <class Storage = kernel::storage, class SegmentStorage = kernel::segment_storage,
          class ChunkNumber = std::uint32_t, std::size_t kChunkSize = (std::size_t{1} << 21)>
class basic_manager {
 public:
  using manager_kernel_type = kernel::manager_kernel;
  using void_pointer = offset_ptr<void>;
  using char_type = char;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  template <class T>
  using allocator_type = stl_allocator<T, manager_kernel_type>;
  template <class T, class... Inner>
  using scoped_allocator_type = container::scoped_allocator_adaptor<allocator_type<T>, allocator_type<Inner>...>;
  template <class T>
  using fallback_allocator = container::fallback_allocator_adaptor<allocator_type<T>>;
  template <class T>
  using scoped_fallback_allocator_type = container::scoped_allocator_adaptor<fallback_allocator<T>>;
  template <class T>
  using construct_proxy = mtlldetail::named_proxy<T, false>;
  template <class T>
  using construct_iter_proxy = mtlldetail::named_proxy<T, true>;
  using instance_kind = mtlldetail::instance_kind;
  using const_named_iterator = kernel::object_iterator;
  using const_unique_iterator = kernel::object_iterator;
  using const_anonymous_iterator = kernel::object_iterator;
  using named_object_attribute_accessor_type = named_object_attr_accessor;
  using unique_object_attribute_accessor_type = unique_object_attr_accessor;
  using anonymous_object_attribute_accessor_type = anonymous_object_attr_accessor;
  using chunk_number_type = ChunkNumber;
  using path_type = kernel::store_folder::path_type;

  // ---- opening
  basic_manager(open_only_t, const path_type& path) noexcept : kernel_(made([&] { return open(path, false); })) {}
  // Who writes to its objects ends the program with a message.
  basic_manager(open_read_only_t, const path_type& path) noexcept : kernel_(made([&] { return open(path, true); })) {}
  basic_manager(create_only_t, const path_type& path, size_type capacity = METALL_DEFAULT_CAPACITY) noexcept
      : kernel_(made([&] { return manager_kernel_type::create(path, capacity); })) {}
  basic_manager() = delete;
  basic_manager(basic_manager&&) noexcept = default;
  basic_manager& operator=(basic_manager&&) noexcept = default;
  ~basic_manager() noexcept = default;

  // ---- objects
  template <class T>
  construct_proxy<T> construct(kernel::object_name name) {
    return {kernel_.get(), name, false};
  }
  template <class T>
  construct_proxy<T> find_or_construct(kernel::object_name name) {
    return {kernel_.get(), name, true};
  }
  template <class T>
  construct_iter_proxy<T> construct_it(kernel::object_name name) {
    return {kernel_.get(), name, false};
  }
  template <class T>
  construct_iter_proxy<T> find_or_construct_it(kernel::object_name name) {
    return {kernel_.get(), name, true};
  }
  // {nullptr, 0} if there is none. The type is not looked at.
  template <class T>
  std::pair<T*, size_type> find(kernel::object_name name) const noexcept {
    return checked(std::pair<T*, size_type>(nullptr, 0), [&] { return kernel_->template find<T>(name); });
  }
  template <class T>
  bool destroy(const char* name) {
    return check_sanity() && kernel_->template destroy<T>(name);
  }
  template <class T>
  bool destroy(const mtlldetail::unique_instance_t* name) {
    return check_sanity() && kernel_->template destroy<T>(name);
  }
  template <class T>
  bool destroy_ptr(const T* object) {
    return check_sanity() && kernel_->template destroy_ptr<T>(object);
  }

  // ---- attributes
  // nullptr: anonymous, or no object of this store. Valid until the object is destroyed.
  template <class T>
  const char_type* get_instance_name(const T* object) const noexcept {
    const auto entry = entry_of(object);
    return entry && entry->kind != farheap::ObjectKind::kAnonymous ? entry->name.data() : nullptr;
  }
  template <class T>
  instance_kind get_instance_kind(const T* object) const noexcept {
    const auto entry = entry_of(object);
    if (!entry) {
      kernel::log_error(__FILE__, __LINE__, "this is no object of the datastore");
      return {};
    }
    if (entry->kind == farheap::ObjectKind::kAnonymous) return instance_kind::anonymous_kind;
    return entry->kind == farheap::ObjectKind::kUnique ? instance_kind::unique_kind : instance_kind::named_kind;
  }
  template <class T>
  size_type get_instance_length(const T* object) const noexcept {
    const auto entry = entry_of(object);
    return entry ? entry->length : 0;
  }
  template <class T>
  bool is_instance_type(const void* object) const noexcept {
    const auto entry = entry_of(object);
    return entry && entry->type == typeid(T).name();
  }
  template <class T>
  bool get_instance_description(const T* object, std::string* description) const noexcept {
    const auto entry = entry_of(object);
    if (entry) description->assign(entry->description);
    return entry.has_value();
  }
  template <class T>
  bool set_instance_description(const T* object, const std::string& description) noexcept {
    return checked(false, [&] { return kernel_->describe(object, description); });
  }

  size_type get_num_named_objects() const noexcept { return count(farheap::ObjectKind::kNamed); }
  size_type get_num_unique_objects() const noexcept { return count(farheap::ObjectKind::kUnique); }
  size_type get_num_anonymous_objects() const noexcept { return count(farheap::ObjectKind::kAnonymous); }
  // Each begin makes a list: it takes time with the number of objects. An end costs nothing.
  const_named_iterator named_begin() const noexcept { return begin(farheap::ObjectKind::kNamed); }
  const_named_iterator named_end() const noexcept { return {}; }
  const_unique_iterator unique_begin() const noexcept { return begin(farheap::ObjectKind::kUnique); }
  const_unique_iterator unique_end() const noexcept { return {}; }
  const_anonymous_iterator anonymous_begin() const noexcept { return begin(farheap::ObjectKind::kAnonymous); }
  const_anonymous_iterator anonymous_end() const noexcept { return {}; }

  static named_object_attribute_accessor_type access_named_object_attribute(const path_type& path) noexcept {
    return {kernel::store_folder(path), farheap::ObjectKind::kNamed};
  }
  static unique_object_attribute_accessor_type access_unique_object_attribute(const path_type& path) noexcept {
    return {kernel::store_folder(path), farheap::ObjectKind::kUnique};
  }
  static anonymous_object_attribute_accessor_type access_anonymous_object_attribute(const path_type& path) noexcept {
    return {kernel::store_folder(path), farheap::ObjectKind::kAnonymous};
  }

  // ---- memory
  // nullptr when the heap is full, or was opened for reading.
  void* allocate(size_type bytes) noexcept { return check_sanity() ? kernel_->allocate(bytes) : nullptr; }
  // nullptr, too, unless the alignment is a power of two of 8 to chunk_size(), and `bytes` a multiple of it.
  void* allocate_aligned(size_type bytes, size_type alignment) noexcept {
    return check_sanity() ? kernel_->allocate_aligned(bytes, alignment, kChunkSize) : nullptr;
  }
  void deallocate(void* pointer) noexcept {
    if (check_sanity()) kernel_->deallocate(pointer);
  }
  bool all_memory_deallocated() const noexcept {
    return checked(false, [&] { return kernel_->all_memory_deallocated(); });
  }
  template <class T = std::byte>
  allocator_type<T> get_allocator() const noexcept {
    return allocator_type<T>(check_sanity() ? kernel_->root() : nullptr);
  }

  // ---- versions. `clone` and the number of threads are hints that are not needed.
  // Commits, in both forms: when it returns, all is safe.
  void flush([[maybe_unused]] bool synchronous = true) noexcept {
    if (check_sanity()) (void)kernel_->flush();
  }
  // Commits, and copies that version to a datastore of its own, with a UUID of its own. One that is there is replaced.
  bool snapshot(const path_type& path, bool = true, int = 0) noexcept {
    return checked(false, [&] { return kernel_->snapshot(path); });
  }
  static bool copy(const path_type& from, const path_type& to, bool = true, int = 0) noexcept {
    return guarded(false, [&] {
      const kernel::store_folder source(from);
      if (!source.consistent()) {
        kernel::log_error(__FILE__, __LINE__,
                          from.string() + " is not there, is open for writing, or was never closed");
        return false;
      }
      return manager_kernel_type::copy(source, kernel::store_folder(to), source.read_facts().uuid);
    });
  }
  static std::future<bool> copy_async(const path_type& from, const path_type& to, bool = true, int = 0) noexcept {
    return guarded(std::future<bool>(),
                   [&] { return std::async(std::launch::async, [from, to] { return copy(from, to); }); });
  }
  // True if there is none. False while somebody has it open.
  static bool remove(const path_type& path) noexcept {
    return guarded(false, [&] { return kernel::store_folder(path).remove(); });
  }
  static std::future<bool> remove_async(const path_type& path) noexcept {
    return guarded(std::future<bool>(),
                   [&] { return std::async(std::launch::async, [path] { return remove(path); }); });
  }
  // It is there, nobody has it open for writing, and it was flushed or closed once. Not as in Metall, it stays
  // consistent when a program is killed: it opens at its last commit.
  static bool consistent(const path_type& path) noexcept {
    return guarded(false, [&] { return kernel::store_folder(path).consistent(); });
  }

  // ---- facts
  std::string get_uuid() const noexcept {
    return checked(std::string(), [&] { return kernel_->folder().read_facts().uuid; });
  }
  static std::string get_uuid(const path_type& path) noexcept {
    return guarded(std::string(), [&] { return kernel::store_folder(path).read_facts().uuid; });
  }
  version_type get_version() const noexcept {
    return checked(version_type(), [&] { return kernel_->folder().read_facts().version; });
  }
  static version_type get_version(const path_type& path) noexcept {
    return guarded(version_type(), [&] { return kernel::store_folder(path).read_facts().version; });
  }
  bool set_description(const std::string& text) noexcept {
    return checked(false, [&] { return kernel_->folder().write_description(text); });
  }
  static bool set_description(const path_type& path, const std::string& text) noexcept {
    return guarded(false, [&] { return kernel::store_folder(path).write_description(text); });
  }
  // False, and the text is left alone, if there is none.
  bool get_description(std::string* text) const noexcept {
    return checked(false, [&] { return kernel_->folder().read_description(*text); });
  }
  static bool get_description(const path_type& path, std::string* text) noexcept {
    return guarded(false, [&] { return kernel::store_folder(path).read_description(*text); });
  }
  static constexpr size_type chunk_size() noexcept { return kChunkSize; }
  // What offsets of objects are counted from.
  const void* get_address() const noexcept { return check_sanity() ? kernel_->address() : nullptr; }
  size_type get_size() const noexcept {
    return checked(size_type(), [&] { return static_cast<size_type>(kernel_->statistics().capacity_bytes); });
  }
  bool read_only() const noexcept { return !check_sanity() || kernel_->read_only(); }
  bool check_sanity() const noexcept { return kernel_ != nullptr; }
  template <class Stream>
  void profile(Stream* out) noexcept {
    (void)checked(false, [&] {
      const farheap::HeapStatistics found = kernel_->statistics();
      *out << "resident bytes\t" << found.memory_bytes << "\nallocated bytes\t" << found.allocated_bytes
           << "\nsegment bytes\t" << found.segment_bytes << "\ncapacity bytes\t" << found.capacity_bytes
           << "\nobjects\t" << found.objects << "\nfaults\t" << found.faults << "\nbytes read\t" << found.bytes_read
           << "\nbytes written\t" << found.bytes_written << "\n";
      return true;
    });
  }

 private:
  // What is thrown (by std::filesystem, or for want of memory) is said in the log.
  template <class T, class Do>
  static T guarded(T otherwise, const Do& act) noexcept {
    try {
      return act();
    } catch (const std::exception& error) {
      kernel::log_error(__FILE__, __LINE__, error.what());
      return otherwise;
    }
  }
  template <class T, class Do>
  T checked(T otherwise, const Do& act) const noexcept {
    return check_sanity() ? guarded(std::move(otherwise), act) : otherwise;
  }
  template <class Make>
  static std::unique_ptr<manager_kernel_type> made(const Make& make) noexcept {
    return guarded(std::unique_ptr<manager_kernel_type>(), make);
  }
  static std::unique_ptr<manager_kernel_type> open(const path_type& path, bool read_only) {
    return manager_kernel_type::open(path, read_only);
  }

  std::optional<farheap::ObjectEntry> entry_of(const void* object) const noexcept {
    return checked(std::optional<farheap::ObjectEntry>(), [&] { return kernel_->entry(object); });
  }
  size_type count(farheap::ObjectKind kind) const noexcept {
    return checked(size_type(), [&] { return kernel_->count(kind); });
  }
  kernel::object_iterator begin(farheap::ObjectKind kind) const noexcept {
    return checked(kernel::object_iterator(), [&] { return kernel::object_iterator(kernel_->list(kind), 0); });
  }

  std::unique_ptr<manager_kernel_type> kernel_;
};

}  // namespace metall
