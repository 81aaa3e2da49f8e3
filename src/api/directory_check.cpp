// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Records are looked at first, from the oldest on, and chains may only lead to records that were found.
#include "api/directory_check.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace farheap::api {
namespace {

constexpr std::size_t kLongestName = 1 << 20;  // of a type or a description

template <class T>
bool holds_one(const heap::KeptRange& kept, const T* at) {
  return reinterpret_cast<std::uintptr_t>(at) % alignof(T) == 0 && kept.holds(at, sizeof(T));
}

}  // namespace

bool DirectoryCheck::all() { return head() && records() && chains(); }

bool DirectoryCheck::is_text(const char* text, std::size_t longest) const {
  if (!kept_.holds(text, 1)) return false;
  const auto room = static_cast<std::size_t>(reinterpret_cast<const char*>(kept_.end) - text);
  const std::size_t most = std::min(room, longest);
  return strnlen(text, most) < most;
}

bool DirectoryCheck::head() {
  const std::uint64_t count = directory_.bucket_count_;
  if (count == 0) {
    const bool empty = directory_.objects_ == 0 && directory_.oldest_ == nullptr && directory_.newest_ == nullptr;
    return empty || wrong("it has no buckets, and {} objects", directory_.objects_);
  }
  if (!std::has_single_bit(count) || count > std::uint64_t{1} << 40 ||
      reinterpret_cast<std::uintptr_t>(directory_.buckets_) % alignof(ObjectRecord*) != 0 ||
      !kept_.holds(static_cast<const void*>(directory_.buckets_), 2 * count * sizeof(ObjectRecord*))) {
    return wrong("{} buckets at {} cannot be", count, fmt::ptr(directory_.buckets_));
  }
  return true;
}

bool DirectoryCheck::record(const ObjectRecord& one) {
  const auto kind = one.kind;
  if (kind < 1 || kind > 3) return wrong("an object is of kind {}", kind);
  if ((one.name == nullptr) != (kind == 3) || (one.name == nullptr && one.name_bytes != 0)) {
    return wrong("an object of kind {} {} a name", kind, one.name == nullptr ? "lacks" : "has");
  }
  if (one.name != nullptr) {
    if (!kept_.holds(one.name, one.name_bytes + std::size_t{1}) || one.name[one.name_bytes] != '\0') {
      return wrong("a name of {} bytes does not lie in the heap", one.name_bytes);
    }
    if (one.name_hash != Directory::hash_of(kind, {one.name, one.name_bytes})) {
      return wrong("the name '{}' has another hash", std::string_view(one.name, one.name_bytes));
    }
    ++named_;
  }
  if (!is_text(one.type, kLongestName)) return wrong("a type does not lie in the heap");
  if (one.description != nullptr && !is_text(one.description, std::size_t{1} << 40)) {
    return wrong("a description does not lie in the heap");
  }
  if (one.length == 0 || one.element_bytes == 0 || one.length > ~std::uint64_t{0} / one.element_bytes ||
      !kept_.holds(one.object, one.length * one.element_bytes)) {
    return wrong("{} elements of {} bytes at {} do not lie in the heap", one.length, one.element_bytes,
                 fmt::ptr(one.object));
  }
  return true;
}

bool DirectoryCheck::records() {
  const ObjectRecord* older = nullptr;
  for (const ObjectRecord* one = directory_.oldest_; one != nullptr; one = one->newer) {
    if (!holds_one(kept_, one) || one->older != older || !records_.insert(one).second) {
      return wrong("the list by age is broken behind {} records", records_.size());
    }
    if (!record(*one)) return false;
    older = one;
  }
  if (older != directory_.newest_ || records_.size() != directory_.objects_) {
    return wrong("{} objects are counted, there are {}", directory_.objects_, records_.size());
  }
  return true;
}

// A record that is met twice would make a chain go on for ever: no more are met than there are.
bool DirectoryCheck::chains() {
  std::size_t by_name = 0, by_address = 0;
  for (std::uint64_t i = 0; i < 2 * directory_.bucket_count_; ++i) {
    const bool names = i < directory_.bucket_count_;
    std::size_t& met = names ? by_name : by_address;
    for (const ObjectRecord* one = directory_.buckets_[i]; one != nullptr;
         one = names ? one->next_of_name : one->next_of_address) {
      if (!records_.contains(one) || ++met > records_.size()) return wrong("bucket {} leads astray", i);
      const ObjectRecord* const* const right =
          names ? &directory_.by_name(one->name_hash) : &directory_.by_address(one->object);
      if (right != &directory_.buckets_[i] || (names && one->name == nullptr)) {
        return wrong("an object is in bucket {}, where it is not looked for", i);
      }
    }
  }
  if (by_name == named_ && by_address == records_.size()) return true;
  return wrong("{} of {} names and {} of {} addresses are found", by_name, named_, by_address, records_.size());
}

bool Directory::check(std::string& why, const heap::KeptRange& kept) const {
  return DirectoryCheck(*this, kept, why).all();
}

}  // namespace farheap::api
