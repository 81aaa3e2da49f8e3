// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/metadata_source.hpp"

#include <sys/mman.h>

#include "base/inside_runtime.hpp"

namespace farheap::base {

namespace {

class MappedMetadata final : public MetadataSource {
 public:
  explicit constexpr MappedMetadata(bool sparse) noexcept : MetadataSource(true), sparse_(sparse) {}

  // Inside the runtime: in a program that runs on Farheap, mmap() is Farheap's own, and the books would be paged.
  void* reserve(std::size_t bytes) noexcept override {
    InsideRuntime inside;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (sparse_ ? MAP_NORESERVE : 0);
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at == MAP_FAILED) return nullptr;
    if (!sparse_) return at;
    // A huge page for a sparse table would bring in 2 MiB for one entry.
    madvise(at, bytes, MADV_NOHUGEPAGE);
    madvise(at, bytes, MADV_DONTDUMP);  // sparse tables again: gigabytes of holes in a core
    return at;
  }

 private:
  bool sparse_;
};

// Used before main.
constinit MappedMetadata g_tables(true);
constinit MappedMetadata g_blocks(false);

}  // namespace

MetadataSource& mapped_tables() noexcept { return g_tables; }
MetadataSource& mapped_blocks() noexcept { return g_blocks; }

}  // namespace farheap::base
