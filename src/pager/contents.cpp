// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/contents.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "base/units.hpp"

namespace farheap::pager {

PageHash hash_page(const std::byte* page) {
#ifdef FARHEAP_HASH_BY_AVX2
  if (__builtin_cpu_supports("avx2")) return hash_page_by_avx2(page);
#endif
  const XXH128_hash_t hash = XXH3_128bits(page, base::kPageBytes);
  return {hash.low64, hash.high64};
}

bool is_zero_page(const std::byte* page) {
  std::uint64_t first;
  std::memcpy(&first, page, sizeof first);
  return first == 0 && std::memcmp(page, page + sizeof first, base::kPageBytes - sizeof first) == 0;
}

KnownContents& KnownContents::operator=(KnownContents&& other) noexcept {
  std::swap(bits_, other.bits_);
  return *this;
}

void KnownContents::forget() {
  if (tag() == kMany) delete[] many();
  bits_ = {};
}

void KnownContents::prepare_hashes(std::uint32_t pages) {
  forget();
  if (pages > 1) {
    bits_ = {kMany, reinterpret_cast<std::uintptr_t>(new PageHash[pages])};
  } else {
    bits_ = {kOne, 0};
  }
}

void KnownContents::set_hash(std::uint32_t index, PageHash hash) {
  if (tag() == kMany) {
    many()[index] = hash;
  } else {
    bits_ = {shortened(hash).low | kOne, hash.high};
  }
}

void KnownContents::set_hashes(const std::byte* bytes, std::uint32_t pages) {
  prepare_hashes(pages);
  for (std::uint32_t i = 0; i < pages; ++i) set_hash(i, hash_page(bytes + i * base::kPageBytes));
}

KnownContents KnownContents::part(std::uint32_t from, std::uint32_t pages) const {
  KnownContents result;
  if (kind() != Kind::kHashes) return result;
  result.prepare_hashes(pages);
  for (std::uint32_t i = 0; i < pages; ++i) result.set_hash(i, hash(from + i));
  return result;
}

void KnownContents::join(std::uint32_t pages, const KnownContents& other, std::uint32_t from, std::uint32_t count,
                         std::uint32_t at) {
  if (other.kind() != Kind::kHashes) return;
  if (kind() != Kind::kHashes) prepare_hashes(pages);
  for (std::uint32_t i = 0; i < count; ++i) set_hash(at + i, other.hash(from + i));
}

}  // namespace farheap::pager
