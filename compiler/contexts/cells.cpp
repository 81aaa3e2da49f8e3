// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cells.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "kernel_memory.hpp"

namespace farheap::contexts {

namespace {
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kUnit = 64;
constexpr std::uint32_t kSlotsUnit = kUnit / sizeof(Slot);
constexpr std::size_t kMostCells = 64;  // of a slab, as many as a word has bits

constexpr std::size_t rounded(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }
}  // namespace

struct Cells::Kind {
  std::uint32_t loops, slots;  // of blocks, slots rounded up; kTable: of tables
  std::size_t cell_bytes, slab_bytes;
  std::uint32_t cells;  // of a slab
  Slab* open;           // with a cell that is free
  Slab* parked;         // without memory
  Kind* next;
  static constexpr std::uint32_t kTable = UINT32_MAX;

  [[nodiscard]] bool is_table() const { return loops == kTable; }
};

struct Cells::Slab {
  Kind* kind;
  std::byte* at;
  std::uint64_t used;  // a bit for each cell
  Slab* next;

  [[nodiscard]] std::uint64_t all() const { return ~std::uint64_t{0} >> (kMostCells - kind->cells); }
};

struct Cells::Chunk {
  std::byte* at;
  std::size_t bytes;
  Chunk* next;
};

Cells::~Cells() {
  while (chunks_ != nullptr) {
    const Chunk one = *chunks_;  // which lies in one of them
    chunks_ = one.next;
    give_to_kernel(one.at, one.bytes);
  }
}

// Records are in the last chunk's memory, or in that of one before it, which goes later.
std::byte* Cells::take_pages(std::size_t bytes) {
  if (bytes > pages_left_) {
    const std::size_t more = std::max(bytes + kPageBytes, kChunkBytes);
    auto* const fresh = static_cast<std::byte*>(take_from_kernel(more));
    if (fresh == nullptr) return nullptr;
    pages_ = fresh;
    pages_left_ = more;
    void* const record = take_record(sizeof(Chunk));
    chunks_ = new (record) Chunk{fresh, more, chunks_};
  }
  std::byte* const taken = pages_;
  pages_ += bytes;
  pages_left_ -= bytes;
  held_ += bytes;
  return taken;
}

void* Cells::take_record(std::size_t bytes) {
  bytes = rounded(bytes, alignof(std::max_align_t));
  if (bytes > records_left_) {
    std::byte* const page = take_pages(kPageBytes);
    if (page == nullptr) return nullptr;
    records_ = page;
    records_left_ = kPageBytes;
  }
  std::byte* const taken = records_;
  records_ += bytes;
  records_left_ -= bytes;
  return taken;
}

Cells::Slab* Cells::slab_of(const void* cell) {
  const auto page = reinterpret_cast<std::uintptr_t>(cell) / kPageBytes * kPageBytes;
  return *reinterpret_cast<Slab**>(page);
}

Cells::Kind* Cells::kind_of(std::uint32_t loops, std::uint32_t slots, std::size_t bytes) {
  for (Kind* one = kinds_; one != nullptr; one = one->next) {
    if (one->loops == loops && one->slots == slots && one->cell_bytes == bytes) return one;
  }
  void* const record = take_record(sizeof(Kind));
  if (record == nullptr) return nullptr;
  const std::size_t slab_bytes = rounded(kHeaderBytes + bytes, kPageBytes);
  const std::size_t cells = std::min((slab_bytes - kHeaderBytes) / bytes, kMostCells);
  // A cell's slab is found by the page that the cell begins in.
  const std::size_t found = slab_bytes == kPageBytes ? cells : 1;
  kinds_ =
      new (record) Kind{loops, slots, bytes, slab_bytes, static_cast<std::uint32_t>(found), nullptr, nullptr, kinds_};
  return kinds_;
}

Cells::Slab* Cells::slab_for(Kind& kind, std::size_t most) {
  if (held_ + kind.slab_bytes > most) return nullptr;
  Slab** const from = kind.parked == nullptr && kind.slab_bytes == kPageBytes ? &spare_ : &kind.parked;
  Slab* slab = *from;
  if (slab != nullptr) {
    *from = slab->next;
    held_ += kind.slab_bytes;
    *slab = {&kind, slab->at, 0, nullptr};
  } else {
    void* const record = take_record(sizeof(Slab));
    std::byte* const at = record == nullptr ? nullptr : take_pages(kind.slab_bytes);
    if (at == nullptr) return nullptr;
    slab = new (record) Slab{&kind, at, 0, nullptr};
  }
  *reinterpret_cast<Slab**>(slab->at) = slab;
  kind.open = slab;
  return slab;
}

void* Cells::take(Kind* kind, std::size_t most) {
  if (kind == nullptr) return nullptr;
  Slab* const slab = kind->open != nullptr ? kind->open : slab_for(*kind, most);
  if (slab == nullptr) return nullptr;
  const auto cell = static_cast<std::size_t>(std::countr_one(slab->used));
  slab->used |= std::uint64_t{1} << cell;
  if (slab->used == slab->all()) kind->open = slab->next;
  return std::memset(slab->at + kHeaderBytes + cell * kind->cell_bytes, 0, kind->cell_bytes);
}

Node* Cells::take_block(std::uint32_t loops, std::uint32_t slots, std::size_t most) {
  const auto room = static_cast<std::uint32_t>(rounded(slots, kSlotsUnit));
  const std::size_t bytes = (1 + std::size_t{loops}) * sizeof(Node) + std::size_t{room} * sizeof(Slot);
  return static_cast<Node*>(take(kind_of(loops, room, bytes), most));
}

void* Cells::take_table(std::size_t bytes, std::size_t most) {
  return take(kind_of(Kind::kTable, 0, rounded(bytes, kUnit)), most);
}

void Cells::give(void* cell) {
  Slab* const slab = slab_of(cell);
  Kind& kind = *slab->kind;
  if (slab->used == slab->all()) {
    slab->next = kind.open;
    kind.open = slab;
  }
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(cell) - slab->at) - kHeaderBytes;
  slab->used &= ~(std::uint64_t{1} << offset / kind.cell_bytes);
}

void Cells::release() {
  for (Kind* kind = kinds_; kind != nullptr; kind = kind->next) {
    Slab*& empty = kind->is_table() && kind->slab_bytes == kPageBytes ? spare_ : kind->parked;
    for (Slab** at = &kind->open; *at != nullptr;) {
      Slab* const slab = *at;
      if (slab->used != 0) {
        at = &slab->next;
        continue;
      }
      *at = slab->next;
      slab->next = empty;
      empty = slab;
      empty_pages(slab->at, kind->slab_bytes);
      held_ -= kind->slab_bytes;
    }
  }
}

std::size_t Cells::room_for(std::uint32_t loops, std::uint32_t slots, std::size_t more) const {
  const auto room = static_cast<std::uint32_t>(rounded(slots, kSlotsUnit));
  for (const Kind* kind = kinds_; kind != nullptr; kind = kind->next) {
    if (kind->loops != loops || kind->slots != room) continue;
    std::size_t found = more / kind->slab_bytes * kind->cells;
    for (const Slab* slab = kind->open; slab != nullptr; slab = slab->next) {
      found += kind->cells - static_cast<std::size_t>(std::popcount(slab->used));
    }
    return found;
  }
  return more / ((1 + std::size_t{loops}) * sizeof(Node) + std::size_t{room} * sizeof(Slot));
}

}  // namespace farheap::contexts
