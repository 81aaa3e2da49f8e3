// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/directory_watch.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "api/directory_check.hpp"

namespace farheap::api {
namespace {

std::uint64_t page_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at) / base::kPageBytes; }

std::uint64_t hash_of(const char* type) { return XXH3_64bits(type, std::strlen(type)); }

}  // namespace

template <class Visit>
void DirectoryWatch::for_each_page(const ObjectRecord& record, const Visit& visit) {
  const auto range = [&](const void* from, std::size_t bytes) {
    const auto* const first = static_cast<const std::byte*>(from);
    for (std::uint64_t page = page_of(first); page <= page_of(first + bytes - 1); ++page) visit(page);
  };
  range(&record, sizeof record);
  if (record.name != nullptr) range(record.name, record.name_bytes + std::size_t{1});
  range(record.type, std::strlen(record.type) + 1);
  if (record.description != nullptr) range(record.description, std::strlen(record.description) + 1);
}

void DirectoryWatch::note(const ObjectRecord& record) {
  for_each_page(record, [&](std::uint64_t page) {
    auto& on_page = by_page_[page];
    if (on_page.empty() || on_page.back() != &record) on_page.push_back(&record);
  });
  types_.insert(hash_of(record.type));
  ++records_;
}

// Without memory it learns again at the next commit.
void DirectoryWatch::add(const ObjectRecord& record) noexcept {
  if (!has_learned_) return;
  try {
    note(record);
  } catch (const std::bad_alloc&) {
    has_learned_ = false;
  }
}

void DirectoryWatch::remove(const ObjectRecord& record) noexcept {
  if (!has_learned_) return;
  for_each_page(record, [&](std::uint64_t page) {
    const auto on_page = by_page_.find(page);
    if (on_page == by_page_.end()) return;
    std::erase(on_page->second, &record);
    if (on_page->second.empty()) by_page_.erase(on_page);
  });
  --records_;
}

bool DirectoryWatch::knows(const ObjectRecord* record) const {
  const auto on_page = by_page_.find(page_of(record));
  return on_page != by_page_.end() && std::ranges::find(on_page->second, record) != on_page->second.end();
}

bool DirectoryWatch::learn(const Directory& directory, const heap::KeptRange& kept, std::string& why) {
  by_page_.clear();
  types_.clear();
  records_ = 0;
  if (!DirectoryCheck(directory, kept, why).all()) return false;
  for (const ObjectRecord* one = directory.oldest(); one != nullptr; one = one->newer) note(*one);
  has_learned_ = true;
  return true;
}

bool DirectoryWatch::check(const Directory& directory, const heap::KeptRange& kept,
                           const heap::Heap::KeepChanged& keep_changed, std::string& why) {
  DirectoryCheck check(directory, kept, why);
  if (!check.head()) return false;
  if (!has_learned_) return learn(directory, kept, why);
  if (directory.objects_ != records_) {
    return check.wrong("{} objects are counted, there are {}", directory.objects_, records_);
  }
  const auto is_known = [&](const ObjectRecord* record) { return record == nullptr || knows(record); };
  if (!is_known(directory.oldest_) || !is_known(directory.newest_) ||
      (directory.oldest_ == nullptr) != (records_ == 0) || (directory.newest_ == nullptr) != (records_ == 0)) {
    return check.wrong("its list by age begins or ends nowhere");
  }

  const std::uint64_t first = page_of(kept.begin);
  std::vector<std::uint64_t> pages;
  pages.reserve(by_page_.size());
  for (const auto& [page, records] : by_page_) pages.push_back(page - first);
  keep_changed(pages);
  for (const std::uint64_t page : pages) {
    for (const ObjectRecord* const one : by_page_.at(page + first)) {
      if (!check.record(*one)) return false;
      if (!types_.contains(hash_of(one->type))) return check.wrong("there is no type '{}'", one->type);
      const bool follows =
          is_known(one->older) && (one->older != nullptr ? one->older->newer : directory.oldest_) == one;
      const bool leads = is_known(one->newer) && (one->newer != nullptr ? one->newer->older : directory.newest_) == one;
      if (!follows || !leads || !is_known(one->next_of_name) || !is_known(one->next_of_address)) {
        return check.wrong("the object '{}' is linked to what is none",
                           std::string_view(one->name == nullptr ? "" : one->name, one->name_bytes));
      }
    }
  }

  const std::size_t entries = 2 * directory.bucket_count_;
  if (entries == 0) return true;
  const auto* const buckets = reinterpret_cast<const std::byte*>(directory.buckets_);
  const std::byte* const end = buckets + entries * sizeof(ObjectRecord*);
  pages.clear();
  for (std::uint64_t page = page_of(buckets); page <= page_of(end - 1); ++page) pages.push_back(page - first);
  keep_changed(pages);
  for (const std::uint64_t page : pages) {
    const std::byte* const begin = kept.begin + page * base::kPageBytes;
    const auto* at = reinterpret_cast<ObjectRecord* const*>(std::max(begin, buckets));
    const auto* const last = reinterpret_cast<ObjectRecord* const*>(std::min(begin + base::kPageBytes, end));
    for (; at < last; ++at) {
      if (!is_known(*at)) return check.wrong("a bucket leads to what is no object");
    }
  }
  return true;
}

}  // namespace farheap::api
