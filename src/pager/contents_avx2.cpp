// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled for AVX2, in which the hash of a page that was just copied takes half the time. Nothing but XXH3's own
// functions may be in here: what the linker shares with other files would not run on every processor.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/units.hpp"
#include "pager/contents.hpp"

namespace farheap::pager {

PageHash hash_page_by_avx2(const std::byte* page) {
  const XXH128_hash_t hash = XXH3_128bits(page, base::kPageBytes);
  return {hash.low64, hash.high64};
}

}  // namespace farheap::pager
