// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Telling clean pages from written ones by what is in them: a 128-bit hash of each page as the store has it,
// compared after the page has left the program's view. It costs 0.15 us a page and no faults, and cannot miss a
// write that happened between a look and the eviction (the write-protect bit does not travel with a moved page).
//
// Thread-safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>

namespace farheap::pager {

struct PageHash {
  std::uint64_t low = 0, high = 0;
  [[nodiscard]] bool operator==(const PageHash&) const = default;
};
[[nodiscard]] PageHash hash_page(const std::byte* page);
[[nodiscard]] bool is_zero_page(const std::byte* page);

// What is known of the pages of one block before the program could write to them.
class KnownContents {
 public:
  enum class Kind : std::uint8_t {
    kNothing,  // take every page as written
    kHashes,   // they are in the store, with these hashes
  };

  // Requires: `bytes` holds `pages` pages.
  void set_hashes(const std::byte* bytes, std::uint32_t pages);
  void prepare_hashes(std::uint32_t pages);
  void set_hash(std::uint32_t index, PageHash hash) { at(index) = hash; }
  void forget() { hashes_ = std::monostate{}; }
  // What is known of pages [from, from + pages), for a block that is split off.
  [[nodiscard]] KnownContents part(std::uint32_t from, std::uint32_t pages) const;

  [[nodiscard]] Kind kind() const { return hashes_.index() == 0 ? Kind::kNothing : Kind::kHashes; }
  // True only if page `index` of the block still has the contents that the store has.
  [[nodiscard]] bool is_stored(std::uint32_t index, PageHash now) const {
    return kind() == Kind::kHashes && at(index) == now;
  }

 private:
  using Many = std::unique_ptr<PageHash[]>;
  [[nodiscard]] PageHash& at(std::uint32_t index) {
    const Many* many = std::get_if<Many>(&hashes_);
    return many != nullptr ? (*many)[index] : std::get<PageHash>(hashes_);
  }
  [[nodiscard]] const PageHash& at(std::uint32_t index) const { return const_cast<KnownContents*>(this)->at(index); }

  // Single pages, the common case under random access, need no memory of their own.
  std::variant<std::monostate, PageHash, Many> hashes_;
};

}  // namespace farheap::pager
