// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The heap of a translated program: its data is in a store and never in memory, where only what says what is free is
// kept. Addresses look like pointers and are reserved, so that an access which was not translated is a fault and never
// wrong data. (Seed 000, chapter 4: the custom heap allocator, and its variant whose pointer is one atomic addition.)
//
//   auto heap = farheap::FarHeap::open("bigtable://project/instance/table");
//   void* at = *heap->allocate(100);
//   heap->put(at, 42);
//   int value = *heap->get<int>(at);
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>
#include <farheap/store.hpp>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

namespace farheap {

struct FarHeapOptions {
  enum class Books {
    kLocal,   // one process; what is freed is used again; goes with the process
    kShared,  // any number of processes, on any machines: each allocation is one atomic addition in the store, without
              // a lock; what is freed is not used again; stays until remove_store()
  };
  Books books = Books::kLocal;
  std::uint64_t capacity = std::uint64_t{64} << 30;  // of addresses
  // Of blocks in memory. With kLocal they are written when there are too many and by flush(); with kShared every write
  // goes to the store, and every read asks whether the block is still as it was.
  std::size_t cache_bytes = std::size_t{1} << 20;
  // Each read asks the store, and each write has reached it before it returns, as in seed 000. What blocks hold is kept
  // for writes alone, that of a part of a block being one of the whole.
  bool is_direct = false;
  std::string password_file = {};
};

class FarHeap {
 public:
  // kUnavailable for kShared where the store has no counters, no compare-and-swap, or is for one process.
  [[nodiscard]] static Result<FarHeap> open(std::string_view uri, const FarHeapOptions& options = {});
  FarHeap(FarHeap&&) noexcept;
  FarHeap& operator=(FarHeap&&) noexcept;
  // With kLocal the contents go. Requires: no other thread uses it, now or later.
  ~FarHeap();

  // At least `bytes`, aligned to 16. kNoSpace.
  [[nodiscard]] Result<void*> allocate(std::size_t bytes);
  // kUnavailable with kShared beyond 16. Requires: alignment is a power of two.
  [[nodiscard]] Result<void*> allocate_aligned(std::size_t bytes, std::size_t alignment);
  [[nodiscard]] Result<void*> allocate_zeroed(std::size_t count, std::size_t bytes);
  // As realloc(). With kShared only of what this process allocated (kInvalidArgument), for nobody else knows its size.
  [[nodiscard]] Result<void*> reallocate(void* at, std::size_t bytes);
  // Requires: nullptr, or from this heap and not freed. With kShared nothing happens.
  Status free(void* at);

  // From `at` to the end of the object that it lies in, as large as it may be used: an address in the middle is fine.
  // kNotFound where none lies, kUnavailable with kShared. Requires: it is not freed meanwhile.
  [[nodiscard]] Result<std::size_t> bytes_from(const void* at);

  // The addresses that it may hand out: what a translated access is compared with.
  [[nodiscard]] const std::byte* begin() const;
  [[nodiscard]] const std::byte* end() const;
  [[nodiscard]] bool owns(const void* at) const { return at >= begin() && at < end(); }

  // Never written: zeros. kInvalidArgument outside of the heap. Up to 8 bytes that do not cross a multiple of 4096 are
  // read and written as a whole.
  [[nodiscard]] Status read(const void* at, std::span<std::byte> into);
  [[nodiscard]] Status write(void* at, std::span<const std::byte> from);
  template <class T>
  [[nodiscard]] Result<T> get(const void* at) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    if (Status status = read(at, std::as_writable_bytes(std::span(&value, 1))); !status) {
      return fail(std::move(status.error()));
    }
    return value;
  }
  template <class T>
  [[nodiscard]] Status put(void* at, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return write(at, std::as_bytes(std::span(&value, 1)));
  }
  // What was written before is in the store, and as durable as that can make it. After one that could not be made
  // durable it may be lost, whatever the device says later: from then on every flush() says so.
  [[nodiscard]] Status flush();

 private:
  struct State;
  explicit FarHeap(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace farheap
