// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A free run of addresses, the two orders it is kept in, and the pool its records come from.
//
// Thread-safety: none; the owner locks.
#pragma once

#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "base/address_shift.hpp"
#include "base/metadata_source.hpp"

namespace farheap::segment {

struct FreeRun {
  using Hook = boost::intrusive::set_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>,
                                                 boost::intrusive::optimize_size<true>>;
  std::uintptr_t start = 0;
  std::uintptr_t end = 0;
  Hook address_hook;
  Hook size_hook;

  [[nodiscard]] std::size_t bytes() const noexcept { return end - start; }
};

struct FreeRunAddressOrder {
  bool operator()(const FreeRun& a, const FreeRun& b) const noexcept { return a.start < b.start; }
  bool operator()(const FreeRun& a, std::uintptr_t start) const noexcept { return a.start < start; }
  bool operator()(std::uintptr_t start, const FreeRun& b) const noexcept { return start < b.start; }
};

struct FreeRunSizeOrder {
  bool operator()(const FreeRun& a, const FreeRun& b) const noexcept {
    return a.bytes() != b.bytes() ? a.bytes() < b.bytes() : a.start < b.start;
  }
  bool operator()(const FreeRun& a, std::size_t bytes) const noexcept { return a.bytes() < bytes; }
  bool operator()(std::size_t bytes, const FreeRun& b) const noexcept { return bytes < b.bytes(); }
};

using FreeRunsByAddress =
    boost::intrusive::set<FreeRun, boost::intrusive::member_hook<FreeRun, FreeRun::Hook, &FreeRun::address_hook>,
                          boost::intrusive::compare<FreeRunAddressOrder>>;
using FreeRunsBySize =
    boost::intrusive::set<FreeRun, boost::intrusive::member_hook<FreeRun, FreeRun::Hook, &FreeRun::size_hook>,
                          boost::intrusive::compare<FreeRunSizeOrder>, boost::intrusive::constant_time_size<false>>;

// Records from blocks of a source; never malloc. What it has got it keeps until it dies.
class FreeRunPool {
 public:
  explicit FreeRunPool(base::MetadataSource& source = base::mapped_blocks()) noexcept : source_(&source) {}
  FreeRunPool(const FreeRunPool&) = delete;
  FreeRunPool& operator=(const FreeRunPool&) = delete;
  ~FreeRunPool();

  // nullptr when the machine has no memory left.
  [[nodiscard]] FreeRun* make(std::uintptr_t start, std::uintptr_t end) noexcept;
  void recycle(FreeRun* run) noexcept;

  // In a new process: where more comes from.
  void attach(base::MetadataSource& source) noexcept { source_ = &source; }
  // The records lie elsewhere. Calls visit(context, run) for each that is in use, whose members are as they were.
  using Visit = void (*)(void* context, FreeRun& run);
  void move(const base::AddressShift& shift, Visit visit, void* context) noexcept;

  // For one that may be damaged: whether what it would give out lies in the tables and is not in use. Nothing else is
  // read.
  [[nodiscard]] bool is_sound(const std::byte* tables, const std::byte* end,
                              const std::unordered_set<const FreeRun*>& in_use) const;

 private:
  friend struct RunBookLayout;
  union Record;
  [[nodiscard]] bool grow() noexcept;

  base::MetadataSource* source_;
  Record* spare_ = nullptr;   // recycled records, linked
  Record* blocks_ = nullptr;  // the first record of each mapped block links the blocks
  Record* next_ = nullptr;    // never used records of the newest block
  Record* last_ = nullptr;
  std::size_t next_block_bytes_ = std::size_t{64} << 10;
};

}  // namespace farheap::segment
