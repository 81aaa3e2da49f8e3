// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Telling clean pages from written ones by what is in them: a 128-bit hash of each page as the store has it,
// compared after the page has left the program's view. It costs 0.1 us a page with AVX2, 0.2 without, and no faults,
// and cannot miss a write that happened between a look and the eviction (the write-protect bit does not travel with a
// moved page).
//
// Thread-safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace farheap::pager {

struct PageHash {
  std::uint64_t low = 0, high = 0;
  [[nodiscard]] bool operator==(const PageHash&) const = default;
};
[[nodiscard]] PageHash hash_page(const std::byte* page);
#ifdef FARHEAP_HASH_BY_AVX2
[[nodiscard]] PageHash hash_page_by_avx2(const std::byte* page);  // the same. Requires: the processor has AVX2
#endif
[[nodiscard]] bool is_zero_page(const std::byte* page);

// What is known of the pages of one block before the program could write to them. In 16 bytes, because under random
// access there is one for each page in memory: the two lowest bits tell what the rest is, so that the hash of a single
// page, which needs no memory of its own, is one of 126 bits.
class KnownContents {
 public:
  enum class Kind : std::uint8_t {
    kNothing,  // take every page as written
    kHashes,   // they are in the store, with these hashes
  };

  KnownContents() = default;
  KnownContents(KnownContents&& other) noexcept { *this = std::move(other); }
  KnownContents& operator=(KnownContents&& other) noexcept;
  ~KnownContents() { forget(); }

  // Requires: `bytes` holds `pages` pages.
  void set_hashes(const std::byte* bytes, std::uint32_t pages);
  void prepare_hashes(std::uint32_t pages);
  void set_hash(std::uint32_t index, PageHash hash);
  void forget();
  // What is known of pages [from, from + pages), for a block that is split off.
  [[nodiscard]] KnownContents part(std::uint32_t from, std::uint32_t pages) const;

  // This block has `pages` pages; `count` of them, from `at` on, are those of another block from `from` on. Where one
  // of the two knows nothing, its pages are taken for written.
  void join(std::uint32_t pages, const KnownContents& other, std::uint32_t from, std::uint32_t count, std::uint32_t at);

  [[nodiscard]] Kind kind() const { return tag() == kNothing ? Kind::kNothing : Kind::kHashes; }
  // True only if page `index` of the block still has the contents that the store has.
  [[nodiscard]] bool is_stored(std::uint32_t index, PageHash now) const {
    return kind() == Kind::kHashes && shortened(hash(index)) == shortened(now);
  }

 private:
  static constexpr std::uint64_t kNothing = 0, kOne = 1, kMany = 2, kTagBits = 3;
  [[nodiscard]] static PageHash shortened(PageHash hash) { return {hash.low & ~kTagBits, hash.high}; }
  [[nodiscard]] std::uint64_t tag() const { return bits_.low & kTagBits; }
  [[nodiscard]] PageHash* many() const { return reinterpret_cast<PageHash*>(bits_.high); }  // Requires: kMany
  [[nodiscard]] PageHash hash(std::uint32_t index) const { return tag() == kMany ? many()[index] : bits_; }

  PageHash bits_;
};

}  // namespace farheap::pager
