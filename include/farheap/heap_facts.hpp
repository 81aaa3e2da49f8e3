// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known of a kept heap without opening it, and how two of its versions differ: what Heap::look() and
// Heap::diff() answer. Both read the store only: no addresses are reserved, so they work in any process, one that has
// this heap or another in their place included; beside a writer; and for objects of types that this program does not
// know.
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
