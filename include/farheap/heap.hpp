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
// malloc'ed memory, globals, functions. Objects with virtual functions need their type registered: their tables lie
// elsewhere in every run (farheap/polymorphic.hpp); construct() refuses others.
//
// It may be larger than memory: at most HeapOptions::memory of it is resident. This needs userfaultfd (`farheap doctor`
// tells).
//
// Thread-safety: any thread may allocate, construct, find and commit at the same time. Writing to objects while another
// thread commits is fine: what was written before commit() was called is in, what is written after it has returned is
// not, and no page is half; a boundary between two of your own operations is made by pause().
// A forked child does not have the heap, but for HeapOptions::in_children.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <farheap/allocator.hpp>
#include <farheap/file_uri.hpp>
#include <farheap/may_live_in_heap.hpp>
#include <farheap/polymorphic.hpp>
#include <farheap/result.hpp>
#include <farheap/type_name.hpp>
#include <functional>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
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
  // Of a new heap, in bytes; it costs nothing until it is used. At most 32 TiB; 0: 1 TiB.
  std::uint64_t capacity = 0;
  // A new heap is to hold no plain pointers into itself, only those of farheap::offset_allocator (offset_ptr): then it
  // may be opened at other addresses, when its own are taken, as by a copy of it that is open in the same process.
  // Opening it there reads and changes the allocator's books, once.
  bool relocatable = false;
  // When nothing was committed for a second, pages that commits have scattered over the store are brought together
  // again, by a thread of the heap's own.
  bool clean_when_idle = true;
  // Opens a heap with objects of types that have virtual functions and are not registered in this program: to look at
  // it, commit, or make snapshots. Nobody may call functions of such objects.
  bool any_types = false;
  // A forked child has the heap, too: the newest commit, at the same addresses, to be read as after open_read_only().
  // Each fork() then opens it again in the child, which costs about a millisecond and three threads. A store that is in
  // use by its parent alone (lmdb:) cannot be read there; then, and without this, a child does not have the heap.
  bool in_children = false;
  // For how long opening a heap in files waits for a process that has it open; then the error names it. Nothing: a
  // second. A process that was killed and is being taken down is waited for up to ten seconds longer. On a server the
  // lease decides instead.
  std::optional<std::chrono::milliseconds> wait = {};
  // Of the files of a new heap, less the process's umask: 0640 lets the group read it. Reading takes no right to write.
  // Of the other ways to keep a heap than file: the store decides.
  unsigned mode = 0600;
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

// An object as the directory has it. The texts lie in the heap, each ended by a zero: they are there until the object
// is destroyed or described anew.
struct ObjectEntry {
  ObjectKind kind = ObjectKind::kNamed;
  std::string_view name;  // empty: anonymous; of a unique one, its type
  std::string_view type;
  std::string_view description;
  std::uint64_t length = 0;
  std::uint64_t element_bytes = 0;
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
  std::uint64_t index_bytes = 0;      // of these, in the table of names; it stays when objects go
  std::uint64_t segment_bytes = 0;    // of addresses handed out to the allocator
  std::uint64_t capacity_bytes = 0;
  std::uint64_t objects = 0;                                    // constructed and not destroyed
  std::uint64_t faults = 0, bytes_read = 0, bytes_written = 0;  // since it was opened
};

// Bytes that are done, of how many: a guess until the last call, which has both alike. Called by the thread that works;
// a repair looks at the heap first, and begins anew then.
using HeapProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

struct CopyOptions {
  bool newest_only = false;  // without the snapshots
  // Where the file system can: the copy shares the bytes of the heap's file until one of the two changes, and costs no
  // time. It has the same versions then, and lies as the heap does; a copy of bytes lies in the order of addresses.
  bool share_bytes = true;
  HeapProgress progress = {};
  // Asked between two pieces: true ends the copy with kUnavailable, and what was begun of it is removed.
  std::function<bool()> stop = {};
};

struct CheckOptions {
  bool data = false;  // read all pages of all versions, too: a store with checksums tells which are damaged
  HeapProgress progress = {};
};

struct RepairReport {
  bool was_sound = false;              // nothing was done then
  std::vector<VersionInfo> kept;       // by age; the last is the newest, and has no name
  std::vector<std::string> lost;       // a sentence each: which version, and what is wrong with it
  std::vector<std::string> old_files;  // the damaged heap's, under their new names
};
struct HeapFacts;        // heap_facts.hpp
struct HeapUsage;        // heap_facts.hpp
struct HeapDifference;   // heap_facts.hpp
struct ForeignPointers;  // heap_facts.hpp

// An object is there, but of another type or length than was asked for.
class TypeMismatch : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};
// A heap that was opened for reading was to be changed.
class ReadOnlyHeap : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};
// There is no room, and what() says where, for what and what to do.
class HeapFull : public std::bad_alloc {
 public:
  explicit HeapFull(std::string_view text) noexcept { text_[text.copy(text_, sizeof text_ - 1)] = '\0'; }
  [[nodiscard]] const char* what() const noexcept override { return text_; }

 private:
  char text_[400];
};

class Heap {
 public:
  // In a store that has none yet: kConflict otherwise. On error nothing is left there. The URI is that of a store (see
  // open_store()) which keeps what it is given: "file:FILE", "lmdb:FILE", decorators before it; file_uri() makes one
  // out of a path. kConflict, too, when another process has it open; the message names it.
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
  // Makes a heap at `to`, where none is (kConflict), out of `from`: "URI", the newest commit with all snapshots, or
  // "URI@SNAPSHOT", that version alone. The two may be in stores of different kinds. The copy has an id of its own, and
  // the same address. `from` may be in use meanwhile, in this process too: the newest commit is copied, and nobody
  // waits, but that bytes are not shared then. Takes a few MiB of memory and no addresses. On error nothing is left;
  // who is killed leaves what opens as no heap, and what create() and copy() replace.
  [[nodiscard]] static Status copy(std::string_view from, std::string_view to, const CopyOptions& options = {});
  // Goes back to a snapshot, the newest one if it is not named (here or as "URI@SNAPSHOT"): all that came after it is
  // lost, newer snapshots too. One commit: whoever is killed leaves the heap as it was, or gone back. kNotFound.
  [[nodiscard]] static Status roll_back(std::string_view uri, std::string_view snapshot = {});
  // Whether somebody, this process too, has it open for writing. kNotFound if there is none.
  [[nodiscard]] static Result<bool> has_writer(std::string_view uri);
  // Reads all books, of versions and of the allocator. kCorrupt with the first thing that is wrong.
  [[nodiscard]] static Status check(std::string_view uri, const CheckOptions& options = {});
  // check(), and then what looks like pointers out of the heap: a guess, by their values. Reads all that is allocated.
  [[nodiscard]] static Result<ForeignPointers> foreign_pointers(std::string_view uri);
  // Makes a damaged heap anew out of its intact versions; the newest of them is the newest of the heap then. It keeps
  // its id and its address. The damaged files stay, as FILE.damaged. kCorrupt if no version is intact.
  [[nodiscard]] static Result<RepairReport> repair(std::string_view uri, const HeapProgress& progress = {});
  // What is in "URI" or "URI@SNAPSHOT", without opening it: nothing is mapped, and a writer may have it open.
  [[nodiscard]] static Result<HeapFacts> look(std::string_view uri);
  // How many bytes it takes, and what each snapshot takes alone. As look().
  [[nodiscard]] static Result<HeapUsage> usage(std::string_view uri);
  // How two versions of one heap differ. The cost follows what differs, and how many objects there are. Two stores may
  // be named if one is a copy of the other, of its files or by copy(), or both are of a third; then all pages are read.
  // kInvalidArgument for two different heaps.
  [[nodiscard]] static Result<HeapDifference> diff(std::string_view uri_a, std::string_view uri_b);

  Heap(Heap&& other) noexcept;
  Heap& operator=(Heap&& other) noexcept;
  // Closes it; what was not committed is lost. Requires: no other thread uses it, and nothing of this process points
  // into it any more.
  ~Heap();

  // ---- versions
  // On error the former version stands, the heap goes on in memory, and a later commit takes everything in. kCorrupt:
  // something has written over the books of the heap or its table of objects since the last commit; no commit makes
  // that last, and the heap opens again at the one before.
  [[nodiscard]] Status commit();
  // commit(), and the version is kept under that name (1 to 95 bytes, no '@').
  [[nodiscard]] Status snapshot(std::string_view name);
  // A commit, too.
  [[nodiscard]] Status remove_snapshot(std::string_view name);
  // commit(), after everything was dropped that the allocator keeps for the next need: pages that hold nothing leave
  // the store. Then pages that lie scattered in it are brought together, and that is committed, too.
  [[nodiscard]] Status compact(const HeapProgress& progress = {});
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
  // nullptr when the capacity is used up, or the heap was opened for reading. Requires: alignment a power of two.
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
  // (first) object; nullptr if there is one of that name. A container that is given no allocator gets this heap's.
  // HeapFull when there is no room, ReadOnlyHeap if it was opened for reading; what T's constructor throws passes
  // through, and nothing is left.
  // `name`: text, unique_instance or anonymous_instance.
  template <class T, class Name>
  [[nodiscard]] Constructor<T> construct(const Name& name) {
    return Constructor<T>(*this, key<T>(name), false);
  }
  // The one that is there, whatever the arguments. TypeMismatch if it is of another type; with [n], too, if it has
  // another length: find_array() tells which.
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
  // nullptr if there is none. TypeMismatch. find_array() tells how many elements there are, too.
  template <class T, class Name>
  [[nodiscard]] T* find(const Name& name) const {
    return find_array<T>(name).first;
  }
  template <class T, class Name>
  [[nodiscard]] Found<T> find_array(const Name& name) const {
    const Entry entry = look_up(key<T>(name));
    return {static_cast<T*>(entry.address), entry.length};
  }
  // False if there is none. TypeMismatch, ReadOnlyHeap.
  template <class T, class Name>
  bool destroy(const Name& name) {
    return destroy_entry<T>(take(key<T>(name), nullptr));
  }
  // Any object that construct() returned. False if it is none. TypeMismatch, ReadOnlyHeap.
  template <class T>
  bool destroy_ptr(T* object) {
    return object != nullptr && destroy_entry<T>(take(key<T>(anonymous_instance), object));
  }

  // A text beside an object: kNotFound if construct() did not return it.
  [[nodiscard]] Status describe(const void* object, std::string_view description);
  // By age. Requires: `visit` neither constructs nor destroys.
  void for_each_object(const std::function<void(const ObjectInfo&)>& visit) const;

  // ---- objects of types the compiler does not see: what other interfaces to a heap are built on. No type is checked,
  // nothing constructed or freed.
  [[nodiscard]] std::optional<ObjectEntry> entry(ObjectKind kind, std::string_view name) const;
  [[nodiscard]] std::optional<ObjectEntry> entry(const void* object) const;
  // Puts memory of this heap into the directory; its description is left out. False if there is one of that name.
  // HeapFull, ReadOnlyHeap. Requires: the type's text is ended by a zero.
  [[nodiscard]] bool add_entry(const ObjectEntry& entry);
  // Takes an object out of it; the memory stays. nullptr if there is none. ReadOnlyHeap.
  [[nodiscard]] Found<void> remove_entry(ObjectKind kind, std::string_view name);
  [[nodiscard]] Found<void> remove_entry(const void* object);

  // ---- facts
  [[nodiscard]] std::string uri() const;
  [[nodiscard]] bool is_read_only() const noexcept;
  [[nodiscard]] const void* address() const noexcept;  // where its first byte is mapped now
  [[nodiscard]] bool is_relocatable() const noexcept;
  [[nodiscard]] std::string id() const;  // 32 hexadecimal digits, of this heap for ever
  // A text about the heap as a whole; empty at first. kNoSpace when the heap is full.
  [[nodiscard]] std::string description() const;
  [[nodiscard]] Status set_description(std::string_view description);
  // The number of the commit that was opened, or made last.
  [[nodiscard]] std::uint64_t last_commit() const;
  [[nodiscard]] std::uint32_t format() const noexcept;  // docs/formats.md, "A heap in a kept segment"
  [[nodiscard]] HeapStatistics statistics();

 private:
  struct State;
  explicit Heap(std::unique_ptr<State> state) noexcept;
  struct Key {
    ObjectKind kind;
    std::string_view name;
    const char* type;
    std::size_t element_bytes;
    bool polymorphic;
    std::size_t length = 0;  // that was asked for; 0: any
  };
  struct Entry {
    void* address = nullptr;
    std::size_t length = 0;
  };

  template <class T>
  [[nodiscard]] static Key key(std::string_view name) {
    return {ObjectKind::kNamed, name, detail::type_name<T>(), sizeof(T), std::is_polymorphic_v<T>, 0};
  }
  template <class T>
  [[nodiscard]] static Key key(UniqueInstance) {
    return {ObjectKind::kUnique, detail::type_name<T>(),   detail::type_name<T>(),
            sizeof(T),           std::is_polymorphic_v<T>, 0};
  }
  template <class T>
  [[nodiscard]] static Key key(AnonymousInstance) {
    return {ObjectKind::kAnonymous, {}, detail::type_name<T>(), sizeof(T), std::is_polymorphic_v<T>, 0};
  }
  [[nodiscard]] HeapRoot* root() const noexcept;
  [[nodiscard]] Entry look_up(const Key& key) const;
  // For so many elements of that object. HeapFull, ReadOnlyHeap, std::bad_array_new_length.
  [[nodiscard]] void* room_for(const Key& key, std::size_t length, std::size_t alignment);
  // False if there is one of that name already. HeapFull.
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

namespace detail {

// Whether T takes memory from a heap, and these arguments do not say from which.
template <class T, class... Arguments>
[[nodiscard]] constexpr bool lacks_allocator() {
  if constexpr (requires { typename T::allocator_type; }) {
    using Allocator = typename T::allocator_type;
    constexpr bool kTakesOne = std::is_constructible_v<Allocator, const allocator<std::byte>&> ||
                               std::is_constructible_v<Allocator, std::pmr::memory_resource*>;
    constexpr bool kHasOne =
        ((std::is_constructible_v<Allocator, Arguments> || std::is_same_v<std::remove_cvref_t<Arguments>, T>) || ...);
    return kTakesOne && !kHasOne;
  } else {
    return false;
  }
}

}  // namespace detail

template <class T, bool kIterate>
class Heap::Constructor : private detail::LivesInHeap<T> {
  static_assert(!std::is_polymorphic_v<T> || polymorphic<T>::value,
                "an object with virtual functions outlives its process only if its type is registered: "
                "FARHEAP_POLYMORPHIC(T), see farheap/polymorphic.hpp");

 public:
  [[nodiscard]] Constructor& operator[](std::size_t length) {
    length_ = key_.length = length;
    return *this;
  }

  template <class... Arguments>
  T* operator()(Arguments&&... arguments) {
    if (T* const there = find_first()) return find_ ? there : nullptr;
    Made made(heap_, static_cast<T*>(heap_.room_for(key_, length_, alignof(T))));
    for (; made.count < length_; ++made.count) make(made.first + made.count, arguments...);
    if (heap_.enter(key_, static_cast<void*>(made.first), length_)) return made.keep();
    return find_ ? static_cast<T*>(heap_.look_up(key_).address) : nullptr;  // another thread was faster
  }

 private:
  friend class Heap;
  Constructor(Heap& heap, Key key, bool find) : heap_(heap), key_(key), find_(find) {}

  // What was made goes again, unless it is kept.
  struct Made {
    Made(Heap& its_heap, T* room) : heap(its_heap), first(room) {}
    Made(const Made&) = delete;
    Made& operator=(const Made&) = delete;
    ~Made() {
      if (first == nullptr) return;
      for (; count > 0; --count) first[count - 1].~T();
      heap.deallocate(static_cast<void*>(first));
    }
    [[nodiscard]] T* keep() { return std::exchange(first, nullptr); }

    Heap& heap;
    T* first;
    std::size_t count = 0;
  };

  // Whatever the length, if a new one is asked for: it is in the way.
  [[nodiscard]] T* find_first() const {
    if (key_.kind == ObjectKind::kAnonymous) return nullptr;
    Key there = key_;
    if (!find_) there.length = 0;
    return static_cast<T*>(heap_.look_up(there).address);
  }
  template <class... Arguments>
  void make(T* at, Arguments&... arguments) {
    if constexpr (kIterate) {
      make_one(at, *arguments++...);
    } else {
      make_one(at, arguments...);
    }
  }
  template <class... Arguments>
  void make_one(T* at, Arguments&&... arguments) {
    auto* const place = static_cast<void*>(at);
    if constexpr (!detail::lacks_allocator<T, Arguments...>()) {  // NOLINT(bugprone-branch-clone): of some T only two
      ::new (place) T(std::forward<Arguments>(arguments)...);
    } else if constexpr (std::is_constructible_v<T, Arguments..., const farheap::allocator<std::byte>&>) {
      ::new (place) T(std::forward<Arguments>(arguments)..., heap_.allocator<std::byte>());
    } else if constexpr (std::is_constructible_v<T, Arguments..., std::pmr::memory_resource*>) {
      ::new (place) T(std::forward<Arguments>(arguments)..., heap_.resource());
    } else {
      ::new (place) T(std::forward<Arguments>(arguments)...);
    }
  }

  Heap& heap_;
  Key key_;
  const bool find_;
  std::size_t length_ = 1;
};

}  // namespace farheap
