// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known of a kept heap without opening it, and how two of its versions differ: what Heap::look(),
// Heap::usage() and Heap::diff() answer. They read the store only: no addresses are reserved, so they work in any
// process, one that has this heap or another in their place included; beside a writer; and for objects of types that
// this program does not know.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <farheap/heap.hpp>
#include <string>
#include <vector>

namespace farheap {

struct HeapFacts {
  std::string uri;            // of the store, without secrets
  std::string id;             // as Heap::id()
  std::uint32_t format = 0;   // of what the heap's pages hold
  std::string description;    // of the heap; empty: none was given
  std::uint64_t address = 0;  // where it is mapped when it is opened
  std::uint64_t capacity_bytes = 0;
  VersionInfo version;                // that was looked at
  std::vector<VersionInfo> versions;  // by age; the newest commit is the last, and has no name
  std::vector<ObjectInfo> objects;    // by age; `address` is where the object is when the heap is open
};

struct SnapshotUsage {
  VersionInfo version;
  std::uint64_t own_bytes = 0;  // that no other version refers to: what removing it gives back
};

// What a heap takes. Reading it costs a read of the store for every 512 pages that snapshots have and later versions do
// not.
struct HeapUsage {
  VersionInfo version;                   // that was asked for
  std::uint64_t allocated_bytes = 0;     // in it: all that was allocated, by size classes; up to some KiB a thread more
  std::uint64_t page_bytes = 0;          // of its pages that hold anything, the allocator's books among them
  std::uint64_t all_bytes = 0;           // of all versions, and the books of the versions
  std::uint64_t store_bytes = 0;         // on the device
  std::vector<SnapshotUsage> snapshots;  // by age
};

// Words that look like pointers to what is outside of their heap: to a program, its malloc'ed memory, a library or a
// stack, as Linux places them. It is a guess: a number may look so, and pointers into a program that is not
// position-independent do not.
struct ForeignPointers {
  struct Place {
    std::string object;  // in which they are, or that leads to where they are; empty if none does, or it has no name
    ObjectKind kind = ObjectKind::kNamed;
    std::uint64_t object_address = 0;  // 0: no object leads there
    std::string type;                  // of the object
    bool is_own = false;               // in the object's own bytes; otherwise in memory that it leads to
    std::uint64_t bytes = 0;           // of an element of the object, or of the memory
    std::uint64_t offset = 0;          // of the first one, in that
    std::uint64_t count = 0;
    std::uint64_t address = 0, value = 0;  // of the first one
  };
  std::uint64_t words = 0;     // all of them
  std::vector<Place> places;   // those with the most first
  std::uint64_t left_out = 0;  // places: more than 1000 are not listed
};

// An object that two versions, a and b, do not both have, or not alike: its own bytes differ (not what it points to),
// or its address, type, length or description.
struct ObjectDifference {
  enum class What { kOnlyInA, kOnlyInB, kChanged };
  What what = What::kChanged;
  ObjectInfo a, b;            // that of a version that does not have it is empty
  bool bytes_differ = false;  // where both have it
  std::uint64_t pages = 0;    // of those that differ: how many its own bytes have a part of
};

// Pages are compared by their bytes: one that was written again with what it held differs in nothing, and one that a
// version does not hold is zeros.
struct HeapDifference {
  std::string id;
  VersionInfo a, b;
  std::uint64_t pages_only_in_a = 0, pages_only_in_b = 0, pages_changed = 0;
  // The same pages by what lies in them: the allocator's books; bytes of objects in the directory, perhaps beside
  // others; all else, which is what objects point to, and the directory itself.
  std::uint64_t pages_of_books = 0, pages_of_objects = 0, pages_of_others = 0;
  std::vector<ObjectDifference> objects;  // changed ones and those only in a, by age; then those only in b

  [[nodiscard]] bool is_none() const {
    return pages_only_in_a == 0 && pages_only_in_b == 0 && pages_changed == 0 && objects.empty();
  }
};

}  // namespace farheap
