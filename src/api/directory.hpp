// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The objects of a kept heap by name, by type and by address: records in the heap, in two hash tables and a list by
// age. All of it is committed with the heap; nothing is rebuilt when it opens. The layout is a part of the format
// (docs/formats.md, "The directory of a heap").
//
// Thread-safety: none; the owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "heap/heap.hpp"

namespace farheap::api {

struct ObjectRecord {
  ObjectRecord* next_of_name = nullptr;     // with the same bucket
  ObjectRecord* next_of_address = nullptr;  // with the same bucket
  ObjectRecord* older = nullptr;
  ObjectRecord* newer = nullptr;
  void* object = nullptr;
  std::uint64_t length = 0;
  std::uint64_t element_bytes = 0;
  std::uint64_t name_hash = 0;
  const char* name = nullptr;  // ended by a zero, as the other texts; nullptr: anonymous
  const char* type = nullptr;
  const char* description = nullptr;
  std::uint32_t name_bytes = 0;
  std::uint16_t kind = 0;  // ObjectKind
  std::uint16_t flags = 0;
  static constexpr std::uint16_t kPolymorphic = 1;  // it points to virtual tables: see virtual_tables.hpp
};
static_assert(sizeof(ObjectRecord) == 96);

class Directory {
 public:
  // A name is one of its kind: an object and the unique one of a type may have the same.
  [[nodiscard]] ObjectRecord* find(std::uint32_t kind, std::string_view name) const;
  [[nodiscard]] ObjectRecord* find(const void* object) const;
  // nullptr when there is no room. Requires: there is none of that name.
  [[nodiscard]] ObjectRecord* enter(heap::Heap& heap, std::uint32_t kind, std::string_view name, const char* type,
                                    std::size_t element_bytes, void* object, std::size_t length, std::uint16_t flags);
  void remove(heap::Heap& heap, ObjectRecord* record);
  // When the heap lies elsewhere than where it was written. Requires: what it refers to is sound.
  void move(const base::AddressShift& shift);
  // False when there is no room.
  [[nodiscard]] bool describe(heap::Heap& heap, ObjectRecord& record, std::string_view description);

  // Whether it agrees with itself; if not, why says where. It may be damaged: nothing outside of `kept` is read.
  // Requires: no other use meanwhile.
  [[nodiscard]] bool check(std::string& why, const heap::KeptRange& kept) const;

  [[nodiscard]] ObjectRecord* oldest() { return oldest_; }
  [[nodiscard]] const ObjectRecord* oldest() const { return oldest_; }
  [[nodiscard]] std::uint64_t objects() const { return objects_; }
  // How many of them have virtual functions.
  [[nodiscard]] std::uint64_t polymorphic_objects() const { return polymorphic_objects_; }
  [[nodiscard]] std::size_t index_bytes(const heap::Heap& heap) const {
    return heap.usable_size(static_cast<const void*>(buckets_));
  }

 private:
  friend class DirectoryCheck;
  friend class DirectoryWatch;
  [[nodiscard]] bool make_room(heap::Heap& heap);
  [[nodiscard]] static std::uint64_t hash_of(std::uint32_t kind, std::string_view name);
  [[nodiscard]] ObjectRecord*& by_name(std::uint64_t hash) const { return buckets_[hash & (bucket_count_ - 1)]; }
  [[nodiscard]] ObjectRecord*& by_address(const void* object) const;
  void link(ObjectRecord& record);

  ObjectRecord** buckets_ = nullptr;  // bucket_count_ by name, then as many by address
  std::uint64_t bucket_count_ = 0;    // a power of two
  std::uint64_t objects_ = 0;
  ObjectRecord* oldest_ = nullptr;
  ObjectRecord* newest_ = nullptr;
  std::uint64_t polymorphic_objects_ = 0;
};
static_assert(sizeof(Directory) == 48);

}  // namespace farheap::api
