// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kept segment made of ordinary memory: books and pages at a fixed address, of which copies can be taken and put
// back in its place, as the next process would find them.
//
// Thread-safety: the space and the source as those of a kept segment: any thread.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "heap/heap.hpp"
#include "segment/run_allocator.hpp"

namespace farheap::heap {

// The bytes of a segment at an instant; only pages that are not all zeros.
class SegmentCopy {
 public:
  SegmentCopy(const std::byte* from, std::size_t bytes) {
    static constexpr std::byte kZeros[base::kPageBytes] = {};
    std::vector<unsigned char> in_core(bytes / base::kPageBytes);
    (void)mincore(const_cast<std::byte*>(from), bytes, in_core.data());
    for (std::size_t at = 0; at < bytes; at += base::kPageBytes) {
      if (in_core[at / base::kPageBytes] == 0 || std::memcmp(from + at, kZeros, base::kPageBytes) == 0) continue;
      offsets_.push_back(at);
      contents_.insert(contents_.end(), from + at, from + at + base::kPageBytes);
    }
  }
  void put(std::byte* to) const {
    for (std::size_t i = 0; i < offsets_.size(); ++i)
      std::memcpy(to + offsets_[i], contents_.data() + i * base::kPageBytes, base::kPageBytes);
  }

 private:
  std::vector<std::size_t> offsets_;
  std::vector<std::byte> contents_;
};

// What lies at the segment's beginning.
struct KeptBooks {
  std::atomic<std::size_t> books_used;
  alignas(64) std::byte runs[sizeof(segment::RunAllocator)];
  alignas(64) std::byte heap[sizeof(Heap)];
};

class KeptSegment final : public segment::PageSpace, public base::MetadataSource {
 public:
  static constexpr std::size_t kBooksBytes = 64 * base::kMiB;
  static constexpr std::size_t kPagesBytes = 256 * base::kMiB;
  static constexpr std::size_t kBytes = kBooksBytes + kPagesBytes;

  // A new one, with an empty heap.
  KeptSegment() : at_(map()) {
    ::new (at_) KeptBooks{};
    books().books_used = base::round_up(sizeof(KeptBooks), base::kPageBytes);
    ::new (books().runs) segment::RunAllocator(at_ + kBooksBytes, kPagesBytes, *this);
    ::new (books().heap) Heap(*this, 8 * base::kMiB, *this, &gate_);
  }
  // What an earlier process left. The heap is not attached.
  explicit KeptSegment(const SegmentCopy& copy) : at_(map()) {
    copy.put(at_);
    runs().attach(*this);
  }
  ~KeptSegment() override { munmap(at_, kBytes); }

  void attach() { heap().attach(*this, *this, &gate_); }
  [[nodiscard]] Heap& heap() const { return *std::launder(reinterpret_cast<Heap*>(books().heap)); }
  [[nodiscard]] segment::RunAllocator& runs() const {
    return *std::launder(reinterpret_cast<segment::RunAllocator*>(books().runs));
  }
  [[nodiscard]] base::Gate& gate() { return gate_; }
  [[nodiscard]] SegmentCopy copy() const { return {at_, kBytes}; }
  [[nodiscard]] KeptRange range() const { return {at_, at_ + kBooksBytes}; }

  void* reserve(std::size_t bytes) noexcept override {
    bytes = base::round_up(bytes, base::kPageBytes);
    std::size_t from = books().books_used.fetch_add(bytes);
    return from + bytes <= kBooksBytes ? at_ + from : nullptr;
  }

  [[nodiscard]] std::byte* base() const override { return at_ + kBooksBytes; }
  [[nodiscard]] std::size_t capacity_bytes() const override { return kPagesBytes; }
  [[nodiscard]] std::byte* obtain(std::size_t bytes, std::size_t alignment) override {
    std::lock_guard lock(mutex_);
    return runs().obtain(bytes, alignment);
  }
  void give_back(std::byte* at, std::size_t bytes) override {
    discard(at, bytes);
    std::lock_guard lock(mutex_);
    runs().give_back(at, bytes);
  }
  void discard(std::byte* at, std::size_t bytes) override { madvise(at, bytes, MADV_DONTNEED); }
  [[nodiscard]] bool extend(std::byte* at, std::size_t bytes, std::size_t new_bytes) override {
    std::lock_guard lock(mutex_);
    return runs().extend(at, bytes, new_bytes);
  }

 private:
  static std::byte* map() {
    // ThreadSanitizer and AddressSanitizer both leave this to programs.
    void* const wanted = reinterpret_cast<void*>(std::uintptr_t{0x7e8000000000});
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void* at = mmap(wanted, kBytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (at != wanted) std::abort();
    return static_cast<std::byte*>(at);
  }
  [[nodiscard]] KeptBooks& books() const { return *reinterpret_cast<KeptBooks*>(at_); }

  std::byte* at_;
  base::Gate gate_;
  std::mutex mutex_;
};

}  // namespace farheap::heap
