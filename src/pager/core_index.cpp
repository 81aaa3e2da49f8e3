// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/core_index.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace farheap::pager {

using base::kPageBytes;
static_assert(sizeof(CoreHeader) <= kPageBytes);

Result<std::unique_ptr<CoreIndex>> CoreIndex::make(const std::byte* base, std::byte* staging,
                                                   std::uint64_t capacity_pages, std::string_view store) {
  if (store.size() >= sizeof CoreHeader::store) {
    return fail(ErrorCode::kInvalidArgument, "cannot prepare for cores", std::string(store), "the name is too long",
                "use a folder with a shorter path");
  }
  auto mapping = os::Mapping::reserve(2 * kPageBytes + base::round_up(capacity_pages * sizeof(CorePage), kPageBytes),
                                      os::Access::kReadWrite);
  if (!mapping) return fail(std::move(mapping.error()));
  std::unique_ptr<CoreIndex> index(new CoreIndex(std::move(*mapping)));
  syscall(SYS_madvise, index->mapping_.data(), index->mapping_.size(), MADV_NOHUGEPAGE);
  CoreHeader& header = index->header();
  std::memcpy(header.magic, kCoreMagic, sizeof header.magic);
  header.format = kCoreFormat;
  header.page_bytes = kPageBytes;
  header.base = reinterpret_cast<std::uintptr_t>(base);
  header.staging = reinterpret_cast<std::uintptr_t>(staging);
  header.entries = reinterpret_cast<std::uintptr_t>(index->pages());
  std::memcpy(header.store, store.data(), store.size());
  syscall(SYS_madvise, &header, kPageBytes, MADV_DODUMP);
  return index;
}

CoreHeader& CoreIndex::header() const { return *reinterpret_cast<CoreHeader*>(mapping_.data() + kPageBytes); }
CorePage* CoreIndex::pages() const { return reinterpret_cast<CorePage*>(mapping_.data() + 2 * kPageBytes); }

void CoreIndex::hold_until(std::size_t bytes) {
  const std::uint64_t pages = base::pages_for(bytes);
  const std::uint64_t before = header().held.load(std::memory_order_relaxed);
  if (pages <= before) return;
  auto* const staging = reinterpret_cast<std::byte*>(header().staging);
  syscall(SYS_madvise, staging + before * kPageBytes, (pages - before) * kPageBytes, MADV_DODUMP);
  const std::size_t held = base::round_up(pages * sizeof(CorePage), kPageBytes);
  syscall(SYS_madvise, this->pages(), held, MADV_DODUMP);
  header().held.store(pages, std::memory_order_release);
}

}  // namespace farheap::pager
