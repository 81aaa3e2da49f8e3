// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A map in a heap that many threads use at once.
//
//   using Counts = farheap::concurrent_map<std::uint64_t, std::uint64_t>;
//   auto& counts = *heap.find_or_construct<Counts>("counts")(heap.allocator<std::byte>());
//   counts.edit(key)->second += 1;                        // made if there is none; locked until the end of the line
//   counts.visit(key, [](auto& entry) { entry.second = 0; });
//
// It is kShards tables, chosen by the hash, with a lock each. The locks are this process's, apart from the heap: a
// commit takes no held lock along, and reading changes no page, so it works in a heap that was opened for reading. What
// changes an entry holds back the cut of commits (as Heap::pause()): every commit has whole entries only.
//
// Thread-safety: any thread, but for construction and destruction. Who is inside visit() or for_each(), or has an
// Access, must not use the same map again (it would wait for itself), nor commit; inside those of a const map it must
// change nothing in any heap. Entries stay where they are until they are erased.
#pragma once

#include <boost/unordered_map.hpp>
#include <cstddef>
#include <cstdint>
#include <farheap/allocator.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

namespace farheap {

namespace detail {

// The locks of one map in this process.
struct MapLocks {
  static constexpr std::size_t kCount = 32;
  struct alignas(64) Lock {
    std::shared_mutex mutex;
  };
  Lock of[kCount];
};
// The same for the same address until they are dropped; made when they are first asked for.
[[nodiscard]] MapLocks& map_locks(const void* map);
void drop_map_locks(const void* map) noexcept;

class CommitHold {
 public:
  explicit CommitHold(HeapRoot* root) : root_(root) {
    if (root_ != nullptr) hold_commit(root_);
  }
  CommitHold(CommitHold&& other) noexcept : root_(std::exchange(other.root_, nullptr)) {}
  CommitHold& operator=(CommitHold&&) = delete;
  ~CommitHold() {
    if (root_ != nullptr) let_commit(root_);
  }

 private:
  HeapRoot* root_;
};

}  // namespace detail

// `Allocator`: allocator, offset_allocator, a fallback or a scoped form of them; any other, and commits are not held
// back. Heterogeneous look-up where Hash and Equal are transparent.
template <class Key, class T, class Hash = boost::hash<Key>, class Equal = std::equal_to<>,
          class Allocator = allocator<std::pair<const Key, T>>>
class concurrent_map {
  using Table =
      boost::unordered_map<Key, T, Hash, Equal,
                           typename std::allocator_traits<Allocator>::template rebind_alloc<std::pair<const Key, T>>>;

 public:
  using key_type = Key;
  using mapped_type = T;
  using value_type = std::pair<const Key, T>;
  using size_type = std::size_t;
  using hasher = Hash;
  using key_equal = Equal;
  using allocator_type = typename Table::allocator_type;
  static constexpr std::size_t kShards = detail::MapLocks::kCount;

  explicit concurrent_map(const allocator_type& allocator, const Hash& hash = Hash(), const Equal& equal = Equal())
      : hash_(hash), shards_(make_shards(allocator, hash, equal, std::make_index_sequence<kShards>())) {}
  ~concurrent_map() { detail::drop_map_locks(this); }
  concurrent_map(const concurrent_map&) = delete;
  concurrent_map& operator=(const concurrent_map&) = delete;

  // An entry, locked for others as long as this lives. Empty where there is none.
  class Access {
   public:
    [[nodiscard]] explicit operator bool() const noexcept { return entry_ != nullptr; }
    // Requires: not empty.
    [[nodiscard]] value_type& operator*() const noexcept { return *entry_; }
    [[nodiscard]] value_type* operator->() const noexcept { return entry_; }

   private:
    friend class concurrent_map;
    Access(detail::CommitHold hold, std::unique_lock<std::shared_mutex> lock, value_type* entry) noexcept
        : hold_(std::move(hold)), lock_(std::move(lock)), entry_(entry) {}
    detail::CommitHold hold_;
    std::unique_lock<std::shared_mutex> lock_;
    value_type* entry_;
  };

  // ---- one entry
  // False, and nothing is changed, if there is one of that key.
  bool insert(const value_type& entry) { return try_emplace(entry.first, entry.second); }
  bool insert(value_type&& entry) { return try_emplace(entry.first, std::move(entry.second)); }
  template <class K, class... Arguments>
  bool try_emplace(K&& key, Arguments&&... arguments) {
    const Change change(*this, shard_of(key));
    return change.table.try_emplace(std::forward<K>(key), std::forward<Arguments>(arguments)...).second;
  }
  // True: it is a new one.
  template <class K, class Value>
  bool insert_or_assign(K&& key, Value&& value) {
    const Change change(*this, shard_of(key));
    return change.table.insert_or_assign(std::forward<K>(key), std::forward<Value>(value)).second;
  }
  // The entry of that key, made from `arguments` if there is none.
  template <class K, class... Arguments>
  [[nodiscard]] Access edit(K&& key, Arguments&&... arguments) {
    Change change(*this, shard_of(key));
    value_type* const entry =
        std::to_address(&*change.table.try_emplace(std::forward<K>(key), std::forward<Arguments>(arguments)...).first);
    return Access(std::move(change.hold), std::move(change.lock), entry);
  }
  // The entry of that key if there is one.
  template <class K>
  [[nodiscard]] Access access(const K& key) {
    Change change(*this, shard_of(key));
    const auto found = change.table.find(key);
    value_type* const entry = found == change.table.end() ? nullptr : std::to_address(&*found);
    if (entry == nullptr) change.lock.unlock();
    return Access(std::move(change.hold), std::move(change.lock), entry);
  }
  // visitor(value_type&), locked for others. False, and it is not called, if there is none.
  template <class K, class Visitor>
  bool visit(const K& key, Visitor&& visitor) {
    const Access entry = access(key);
    if (entry) std::forward<Visitor>(visitor)(*entry);
    return static_cast<bool>(entry);
  }
  // visitor(const value_type&), beside others who read.
  template <class K, class Visitor>
  bool visit(const K& key, Visitor&& visitor) const {
    const std::size_t at = shard_of(key);
    const std::shared_lock lock(mutex(at));
    const Table& table = shards_.of[at].table;
    const auto found = table.find(key);
    if (found == table.end()) return false;
    std::forward<Visitor>(visitor)(*found);
    return true;
  }
  template <class K, class Visitor>
  bool visit_const(const K& key, Visitor&& visitor) const {
    return visit(key, std::forward<Visitor>(visitor));
  }
  // A copy of the value.
  template <class K>
  [[nodiscard]] std::optional<T> find(const K& key) const {
    std::optional<T> copy;
    visit(key, [&](const value_type& entry) { copy.emplace(entry.second); });
    return copy;
  }
  template <class K>
  [[nodiscard]] bool contains(const K& key) const {
    return visit(key, [](const value_type&) {});
  }
  // How many there were: 0 or 1.
  template <class K>
  std::size_t erase(const K& key) {
    const Change change(*this, shard_of(key));
    const auto found = change.table.find(key);
    if (found == change.table.end()) return 0;
    change.table.erase(found);
    return 1;
  }

  // ---- all of them, shard by shard: what others do meanwhile is seen or not
  // visitor(value_type&), each locked for others.
  template <class Visitor>
  void for_each(Visitor&& visitor) {
    for (std::size_t at = 0; at < kShards; ++at) {
      const Change change(*this, at);
      for (value_type& entry : change.table) visitor(entry);
    }
  }
  // visitor(const value_type&)
  template <class Visitor>
  void for_each(Visitor&& visitor) const {
    for (std::size_t at = 0; at < kShards; ++at) {
      const std::shared_lock lock(mutex(at));
      for (const value_type& entry : shards_.of[at].table) visitor(entry);
    }
  }
  // Those of which visitor(value_type&) says true; how many.
  template <class Predicate>
  std::size_t erase_if(Predicate&& predicate) {
    std::size_t erased = 0;
    for (std::size_t at = 0; at < kShards; ++at) {
      const Change change(*this, at);
      for (auto i = change.table.begin(); i != change.table.end();) {
        if (predicate(*i)) {
          i = change.table.erase(i);
          ++erased;
        } else {
          ++i;
        }
      }
    }
    return erased;
  }
  void clear() {
    erase_if([](const value_type&) { return true; });
  }
  [[nodiscard]] std::size_t size() const {
    std::size_t entries = 0;
    for (std::size_t at = 0; at < kShards; ++at) {
      const std::shared_lock lock(mutex(at));
      entries += shards_.of[at].table.size();
    }
    return entries;
  }
  [[nodiscard]] bool empty() const { return size() == 0; }
  // Room for that many, spread evenly.
  void reserve(std::size_t entries) {
    for (std::size_t at = 0; at < kShards; ++at) Change(*this, at).table.reserve(entries / kShards + 1);
  }
  [[nodiscard]] allocator_type get_allocator() const { return shards_.of[0].table.get_allocator(); }

 private:
  // On a line of its own: tables beside each other are changed by different threads.
  struct alignas(64) Shard {
    Table table;
  };
  struct Shards {
    Shard of[kShards];
  };
  template <std::size_t... kAt>
  static Shards make_shards(const allocator_type& allocator, const Hash& hash, const Equal& equal,
                            std::index_sequence<kAt...>) {
    return Shards{{((void)kAt, Shard{Table(0, hash, equal, allocator)})...}};
  }

  // Commits first, then the shard: a commit waits for those who hold it back, and these for nobody who waits for it.
  struct Change {
    Change(concurrent_map& map, std::size_t at)
        : hold(map.root()), lock(map.mutex(at)), table(map.shards_.of[at].table) {}
    detail::CommitHold hold;
    std::unique_lock<std::shared_mutex> lock;
    Table& table;
  };

  template <class K>
  [[nodiscard]] std::size_t shard_of(const K& key) const {
    // The upper bits of a mixed hash: boost::hash of a number is that number, and the tables use its lower bits.
    return (static_cast<std::uint64_t>(hash_(key)) * 0x9e37'79b9'7f4a'7c15u >> 32) % kShards;
  }
  [[nodiscard]] std::shared_mutex& mutex(std::size_t at) const { return detail::map_locks(this).of[at].mutex; }
  [[nodiscard]] HeapRoot* root() const {
    if constexpr (requires(const allocator_type& allocator) { allocator.root(); }) {
      return get_allocator().root();
    } else {
      return nullptr;
    }
  }

  [[no_unique_address]] Hash hash_;
  Shards shards_;
};

}  // namespace farheap
