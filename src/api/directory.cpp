// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/directory.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace farheap::api {
namespace {

constexpr std::uint64_t kFirstBuckets = 64;

const char* copy_text(heap::Heap& heap, std::string_view text) {
  auto* const copy = static_cast<char*>(heap.allocate(text.size() + 1));
  if (copy == nullptr) return nullptr;
  std::copy(text.begin(), text.end(), copy);
  copy[text.size()] = '\0';
  return copy;
}

}  // namespace

std::uint64_t Directory::hash_of(std::uint32_t kind, std::string_view name) {
  return XXH3_64bits_withSeed(name.data(), name.size(), kind);
}

ObjectRecord*& Directory::by_address(const void* object) const {
  const std::uint64_t hash = XXH3_64bits(static_cast<const void*>(&object), sizeof object);
  return buckets_[bucket_count_ + (hash & (bucket_count_ - 1))];
}

ObjectRecord* Directory::find(std::uint32_t kind, std::string_view name) const {
  if (bucket_count_ == 0) return nullptr;
  const std::uint64_t hash = hash_of(kind, name);
  for (ObjectRecord* one = by_name(hash); one != nullptr; one = one->next_of_name) {
    if (one->name_hash == hash && one->kind == kind && name == std::string_view(one->name, one->name_bytes)) return one;
  }
  return nullptr;
}

ObjectRecord* Directory::find(const void* object) const {
  if (bucket_count_ == 0) return nullptr;
  for (ObjectRecord* one = by_address(object); one != nullptr; one = one->next_of_address) {
    if (one->object == object) return one;
  }
  return nullptr;
}

void Directory::link(ObjectRecord& record) {
  if (record.name != nullptr) {
    ObjectRecord*& first = by_name(record.name_hash);
    record.next_of_name = first;
    first = &record;
  }
  ObjectRecord*& first = by_address(record.object);
  record.next_of_address = first;
  first = &record;
}

bool Directory::make_room(heap::Heap& heap) {
  if (objects_ < bucket_count_) return true;
  const std::uint64_t count = std::max(kFirstBuckets, bucket_count_ * 4);
  auto* const buckets = static_cast<ObjectRecord**>(heap.allocate_zeroed(2 * count * sizeof(ObjectRecord*)));
  if (buckets == nullptr) return bucket_count_ != 0;  // they may be fuller
  heap.free(static_cast<void*>(buckets_));
  buckets_ = buckets;
  bucket_count_ = count;
  for (ObjectRecord* one = oldest_; one != nullptr; one = one->newer) link(*one);
  return true;
}

// An object's address tells its bucket, so they are filled anew.
void Directory::move(const base::AddressShift& shift) {
  shift(buckets_);
  shift(oldest_);
  shift(newest_);
  if (bucket_count_ != 0) std::fill_n(buckets_, 2 * bucket_count_, nullptr);
  for (ObjectRecord* one = oldest_; one != nullptr; one = one->newer) {
    shift(one->older);
    shift(one->newer);
    shift(one->object);
    shift(one->name);
    shift(one->type);
    shift(one->description);
    one->next_of_name = one->next_of_address = nullptr;
    link(*one);
  }
}

ObjectRecord* Directory::enter(heap::Heap& heap, std::uint32_t kind, std::string_view name, const char* type,
                               std::size_t element_bytes, void* object, std::size_t length, std::uint16_t flags) {
  if (!make_room(heap)) return nullptr;
  void* const memory = heap.allocate(sizeof(ObjectRecord));
  const char* const own_type = copy_text(heap, type);
  const char* const own_name = name.data() == nullptr ? nullptr : copy_text(heap, name);
  if (memory == nullptr || own_type == nullptr || (own_name == nullptr) != (name.data() == nullptr)) {
    heap.free(memory);
    heap.free(const_cast<char*>(own_type));
    heap.free(const_cast<char*>(own_name));
    return nullptr;
  }
  auto* const record = ::new (memory) ObjectRecord;
  record->object = object;
  record->length = length;
  record->element_bytes = element_bytes;
  record->name = own_name;
  record->name_bytes = static_cast<std::uint32_t>(name.size());
  record->name_hash = hash_of(kind, name);
  record->type = own_type;
  record->kind = static_cast<std::uint16_t>(kind);
  record->flags = flags;
  record->older = newest_;
  (newest_ != nullptr ? newest_->newer : oldest_) = record;
  newest_ = record;
  ++objects_;
  if ((flags & ObjectRecord::kPolymorphic) != 0) ++polymorphic_objects_;
  link(*record);
  return record;
}

void Directory::remove(heap::Heap& heap, ObjectRecord* record) {
  if (record->name != nullptr) {
    ObjectRecord** at = &by_name(record->name_hash);
    while (*at != record) at = &(*at)->next_of_name;
    *at = record->next_of_name;
  }
  ObjectRecord** at = &by_address(record->object);
  while (*at != record) at = &(*at)->next_of_address;
  *at = record->next_of_address;
  (record->older != nullptr ? record->older->newer : oldest_) = record->newer;
  (record->newer != nullptr ? record->newer->older : newest_) = record->older;
  --objects_;
  if ((record->flags & ObjectRecord::kPolymorphic) != 0) --polymorphic_objects_;
  for (const char* text : {record->name, record->type, record->description}) heap.free(const_cast<char*>(text));
  heap.free(record);
}

bool Directory::describe(heap::Heap& heap, ObjectRecord& record, std::string_view description) {
  const char* const copy = copy_text(heap, description);
  if (copy == nullptr) return false;
  heap.free(const_cast<char*>(record.description));
  record.description = copy;
  return true;
}

}  // namespace farheap::api
