// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A heap that outlives its process: C++ objects in a store, at the same addresses in every run.
//
//   auto heap = farheap::Heap::open_or_create("file:/data/graph", {.memory = 4_GiB}).value();
//   auto* graph = heap.find_or_construct<Graph>("graph")(heap.allocator<std::byte>());
//   graph->add_edge(1, 2);
//   if (const auto status = heap.commit(); !status) complain(status.error().message());
//
// What was committed is there in the next run, whatever ended this one; what was not is not. Pointers, references and
// std:: containers with this heap's allocator stay valid from run to run. Pointers to anything else do not: not to
// malloc'ed memory, globals, functions. Objects with virtual functions cannot live here (their tables lie elsewhere in
// every run); construct() refuses them.
//
// It may be larger than memory: at most HeapOptions::memory of it is resident. This needs userfaultfd (`farheap doctor`
// tells).
//
// Thread-safety: any thread may allocate, construct, find and commit at the same time. Writing to objects while another
// thread commits is fine: what was written before commit() was called is in, what is written after it has returned is
// not, and no page is half; a boundary between two of your own operations is made by pause().
// A forked child does not have the heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <farheap/allocator.hpp>
#include <farheap/result.hpp>
#include <functional>
#include <memory>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace farheap {

inline namespace literals {
// Sizes as HeapOptions wants them: 512_MiB.
constexpr std::uint64_t operator""_KiB(unsigned long long n) { return n << 10; }
constexpr std::uint64_t operator""_MiB(unsigned long long n) { return n << 20; }
constexpr std::uint64_t operator""_GiB(unsigned long long n) { return n << 30; }
}  // namespace literals

struct HeapOptions {
  std::uint64_t memory = 0;  // bytes that may be resident, at least 16 MiB; 0: half of the machine's
  std::uint64_t capacity =
      0;  // of a new heap, in bytes; it costs nothing until it is used. 0: 1 TiB, the most there is
};

enum class ObjectKind : std::uint32_t {
  kNamed = 1,
  kUnique = 2,     // one of its type, known by the type
  kAnonymous = 3,  // known by its address
};
struct UniqueInstance {};
struct AnonymousInstance {};
inline constexpr UniqueInstance unique_instance;
inline constexpr AnonymousInstance anonymous_instance;

struct ObjectInfo {
  ObjectKind kind = ObjectKind::kNamed;
  std::string name;          // empty: anonymous; of a unique one, its type
  std::string type;          // as the compiler names it (typeid)
  std::uint64_t length = 0;  // elements of an array; 1: an object
  std::uint64_t bytes = 0;   // of all elements; what they point to not counted
  std::string description;   // describe()
  void* address = nullptr;
};

struct VersionInfo {
  std::string name;           // empty: the newest one
  std::uint64_t commit = 0;   // counts all commits of this heap
  std::uint64_t time_ns = 0;  // since 1970
  std::uint64_t pages = 0;    // that hold anything, of 4 KiB
};

struct HeapStatistics {
  std::uint64_t memory_bytes = 0;     // resident now
  std::uint64_t allocated_bytes = 0;  // in objects, their size classes' rounding included
  std::uint64_t segment_bytes = 0;    // of addresses handed out to the allocator
  std::uint64_t capacity_bytes = 0;
  std::uint64_t objects = 0;                                    // constructed and not destroyed
  std::uint64_t faults = 0, bytes_read = 0, bytes_written = 0;  // since it was opened
};

// An object is there, but of another type or length than was asked for.
class TypeMismatch : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

class Heap {
 public:
  // In a store that has none yet: kConflict otherwise. The URI is that of a store (see open_store()) which keeps what
  // it is given: "file:FILE", "lmdb:FILE", decorators before it. kConflict, too, when another process has it open; the
  // message names it.
  [[nodiscard]] static Result<Heap> create(std::string_view uri, const HeapOptions& options = {});
  // kNotFound if there is none. Capacity is what it was made with.
  [[nodiscard]] static Result<Heap> open(std::string_view uri, const HeapOptions& options = {});
  [[nodiscard]] static Result<Heap> open_or_create(std::string_view uri, const HeapOptions& options = {});
  // "URI" (the newest commit) or "URI@SNAPSHOT". Many processes may read a heap at once, beside the one that writes,
  // and each keeps the version it has opened; what that needs stays in the store as long. Who writes to its objects
  // ends the program with a message.
  [[nodiscard]] static Result<Heap> open_read_only(std::string_view uri, const HeapOptions& options = {});
  // Removes a heap and its files. kConflict if somebody has it open.
  [[nodiscard]] static Status remove(std::string_view uri);
  // Goes back to the newest snapshot: all that came after it is lost.
  [[nodiscard]] static Status roll_back(std::string_view uri);
  // Reads all books, of versions and of the allocator. kCorrupt with the first thing that is wrong.
  [[nodiscard]] static Status check(std::string_view uri);

  Heap(Heap&& other) noexcept;
  Heap& operator=(Heap&& other) noexcept;
  // Closes it; what was not committed is lost. Requires: no other thread uses it, and nothing of this process points
  // into it any more.
  ~Heap();

  // ---- versions
  // On error the former version stands, the heap goes on in memory, and a later commit takes everything in.
  [[nodiscard]] Status commit();
  // commit(), and the version is kept under that name (1 to 95 bytes, no '@').
  [[nodiscard]] Status snapshot(std::string_view name);
  // A commit, too.
  [[nodiscard]] Status remove_snapshot(std::string_view name);
  // commit(), after everything was dropped that the allocator keeps for the next need: pages that hold nothing leave
  // the store.
  [[nodiscard]] Status compact();
  // By age; the newest committed one is the last, and has no name.
  [[nodiscard]] Result<std::vector<VersionInfo>> versions();
  // While it lives no commit cuts: a boundary around changes that belong together. A thread that has one must not
  // commit; it may take more. It ends in the thread that took it.
  class Pause {
   public:
    Pause(Pause&& other) noexcept : heap_(std::exchange(other.heap_, nullptr)) {}
    Pause& operator=(Pause&&) = delete;
    ~Pause();

   private:
    friend class Heap;
    explicit Pause(Heap& heap);
    Heap* heap_;
  };
  [[nodiscard]] Pause pause() { return Pause(*this); }

  // ---- memory
  // nullptr when the capacity is used up. Requires: alignment a power of two.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = 16) noexcept;
  void deallocate(void* pointer) noexcept;
  // As realloc().
  [[nodiscard]] void* reallocate(void* pointer, std::size_t bytes) noexcept;
  template <class T = std::byte>
  [[nodiscard]] farheap::allocator<T> allocator() const noexcept {
    return farheap::allocator<T>(root());
  }
  // For std::pmr containers that live in the heap: it is at its place again when the heap is opened.
  [[nodiscard]] std::pmr::memory_resource* resource() const noexcept;
  [[nodiscard]] bool owns(const void* pointer) const noexcept;

  // ---- objects
  template <class T, bool kIterate = false>
  class Constructor;
  // construct<T>(name)(arguments...) and construct<T>(name)[n](arguments...), an array of n alike: a pointer to the
  // (first) object; nullptr if there is one of that name. std::bad_alloc when there is no room; what T's constructor
  // throws passes through, and nothing is left.
  // `name`: text, unique_instance or anonymous_instance.
  template <class T, class Name>
  [[nodiscard]] Constructor<T> construct(const Name& name) {
    return Constructor<T>(*this, key<T>(name), false);
  }
  // The one that is there, whatever the arguments. TypeMismatch.
  template <class T, class Name>
  [[nodiscard]] Constructor<T> find_or_construct(const Name& name) {
    return Constructor<T>(*this, key<T>(name), true);
  }
  // Each element from the next value of the iterators: construct_it<T>(name)[n](first...).
  template <class T, class Name>
  [[nodiscard]] Constructor<T, true> construct_it(const Name& name) {
    return Constructor<T, true>(*this, key<T>(name), false);
  }

  template <class T>
  struct Found {
    T* first = nullptr;
    std::size_t length = 0;
  };
  // nullptr if there is none. TypeMismatch.
  template <class T, class Name>
  [[nodiscard]] T* find(const Name& name) const {
    return find_array<T>(name).first;
  }
  template <class T, class Name>
  [[nodiscard]] Found<T> find_array(const Name& name) const {
    const Entry entry = look_up(key<T>(name));
    return {static_cast<T*>(entry.address), entry.length};
  }
  // False if there is none. TypeMismatch.
  template <class T, class Name>
  bool destroy(const Name& name) {
    return destroy_entry<T>(take(key<T>(name), nullptr));
  }
  // Any object that construct() returned. False if it is none.
  template <class T>
  bool destroy_ptr(T* object) {
    return object != nullptr &&
           destroy_entry<T>(take({ObjectKind::kAnonymous, {}, typeid(T).name(), sizeof(T)}, object));
  }

  // A text beside an object: kNotFound if construct() did not return it.
  [[nodiscard]] Status describe(const void* object, std::string_view description);
  // By age. Requires: `visit` neither constructs nor destroys.
  void for_each_object(const std::function<void(const ObjectInfo&)>& visit) const;

  // ---- facts
  [[nodiscard]] std::string uri() const;
  [[nodiscard]] bool is_read_only() const noexcept;
  [[nodiscard]] std::string id() const;  // 32 hexadecimal digits, of this heap for ever
  [[nodiscard]] HeapStatistics statistics();

 private:
  struct State;
  explicit Heap(std::unique_ptr<State> state) noexcept;
  struct Key {
    ObjectKind kind;
    std::string_view name;
    const char* type;
    std::size_t element_bytes;
  };
  struct Entry {
    void* address = nullptr;
    std::size_t length = 0;
  };

  template <class T>
  [[nodiscard]] static Key key(std::string_view name) {
    return {ObjectKind::kNamed, name, typeid(T).name(), sizeof(T)};
  }
  template <class T>
  [[nodiscard]] static Key key(UniqueInstance) {
    return {ObjectKind::kUnique, typeid(T).name(), typeid(T).name(), sizeof(T)};
  }
  template <class T>
  [[nodiscard]] static Key key(AnonymousInstance) {
    return {ObjectKind::kAnonymous, {}, typeid(T).name(), sizeof(T)};
  }
  [[nodiscard]] HeapRoot* root() const noexcept;
  [[nodiscard]] Entry look_up(const Key& key) const;
  // False if there is one of that name already. std::bad_alloc.
  [[nodiscard]] bool enter(const Key& key, void* object, std::size_t length);
  // Out of the directory; the object itself stays. `object`: this one, whatever its name.
  [[nodiscard]] Entry take(const Key& key, const void* object);
  template <class T>
  bool destroy_entry(Entry entry) {
    if (entry.address == nullptr) return false;
    auto* const first = static_cast<T*>(entry.address);
    for (std::size_t i = entry.length; i > 0; --i) first[i - 1].~T();
    deallocate(entry.address);
    return true;
  }

  std::unique_ptr<State> state_;
};

template <class T, bool kIterate>
class Heap::Constructor {
  static_assert(
      !std::is_polymorphic_v<T>,
      "an object with virtual functions cannot outlive its process: the tables lie elsewhere in the next run");

 public:
  [[nodiscard]] Constructor& operator[](std::size_t length) {
    length_ = length;
    return *this;
  }

  template <class... Arguments>
  T* operator()(Arguments&&... arguments) {
    if (const T* const there = find_first()) return find_ ? const_cast<T*>(there) : nullptr;
    if (length_ == 0 || length_ > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
    void* const memory = heap_.allocate(length_ * sizeof(T), alignof(T));
    if (memory == nullptr) throw std::bad_alloc();
    auto* const first = static_cast<T*>(memory);
    std::size_t made = 0;
    try {
      for (; made < length_; ++made) make(first + made, arguments...);
      if (heap_.enter(key_, memory, length_)) return first;
    } catch (...) {
      undo(first, made);
      throw;
    }
    undo(first, made);  // another thread was faster
    return find_ ? static_cast<T*>(heap_.look_up(key_).address) : nullptr;
  }

 private:
  friend class Heap;
  Constructor(Heap& heap, Key key, bool find) : heap_(heap), key_(key), find_(find) {}

  [[nodiscard]] T* find_first() const {
    return key_.kind == ObjectKind::kAnonymous ? nullptr : static_cast<T*>(heap_.look_up(key_).address);
  }
  template <class... Arguments>
  void make(T* at, Arguments&... arguments) {
    if constexpr (kIterate) {
      ::new (static_cast<void*>(at)) T(*arguments++...);
    } else {
      ::new (static_cast<void*>(at)) T(arguments...);
    }
  }
  void undo(T* first, std::size_t made) noexcept {
    for (; made > 0; --made) first[made - 1].~T();
    heap_.deallocate(static_cast<void*>(first));
  }

  Heap& heap_;
  const Key key_;
  const bool find_;
  std::size_t length_ = 1;
};

}  // namespace farheap
