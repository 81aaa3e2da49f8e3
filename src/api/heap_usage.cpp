// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heap::usage(): what a heap and its snapshots take, from the allocator's books and the lists of dead slots.
#include <farheap/farheap.hpp>

#include "api/heap_reader.hpp"
#include "heap/heap.hpp"
#include "segment/kept_segment.hpp"

namespace farheap {
namespace {

// Where the allocator has its sums; heap/book_layout.hpp pins these offsets.
constexpr std::uint64_t kArenas = 128;
constexpr std::uint64_t kBins = 136;
constexpr std::uint64_t kLargeLiveBytes = 504 + 24;
constexpr std::uint64_t kBinBytes = 64;
constexpr std::uint64_t kBinSlotsUsed = 32 + 8;
constexpr std::uint32_t kMostArenas = 32;

Result<std::uint64_t> allocated_bytes(api::VersionBytes& bytes) {
  const auto wrong = [] {
    return fail(ErrorCode::kCorrupt, "cannot read the heap", "the books of its allocator", "they make no sense",
                "`farheap heap check` tells what is damaged");
  };
  const std::uint64_t books = bytes.range().base + segment::KeptBooks::kBytes;
  const auto arenas = bytes.read_as<std::uint32_t>(books + kArenas);
  if (!arenas) return fail(arenas.error());
  const auto bins = bytes.read_as<std::uint64_t>(books + kBins);
  if (!bins) return fail(bins.error());
  const auto large = bytes.read_as<std::uint64_t>(books + kLargeLiveBytes);
  if (!large) return fail(large.error());
  const std::uint64_t most = bytes.range().bytes;
  if (*arenas > kMostArenas || *large > most) return wrong();
  std::uint64_t sum = *large;
  for (std::uint64_t bin = 0; bin < std::uint64_t{*arenas} * heap::kClassCount; ++bin) {
    const auto used = bytes.read_as<std::uint64_t>(*bins + bin * kBinBytes + kBinSlotsUsed);
    if (!used) return fail(used.error());
    const std::uint64_t slot_bytes = heap::kSizeClasses[bin % heap::kClassCount].slot_bytes;
    if (slot_bytes == 0) continue;
    if (*used > (most - sum) / slot_bytes) return wrong();
    sum += *used * slot_bytes;
  }
  return sum;
}

}  // namespace

Result<HeapUsage> Heap::usage(std::string_view uri) {
  const auto place = api::HeapPlace::parse(uri);
  if (!place) return fail(place.error());
  auto reader = api::HeapReader::open(*place);
  if (!reader) return fail(std::move(reader.error()));
  auto version = reader->version(place->snapshot);
  if (!version) return fail(std::move(version.error()));
  api::VersionBytes bytes = reader->bytes_of(*version);
  if (const auto books = api::read_books(bytes); !books) return fail(books.error());
  const auto allocated = allocated_bytes(bytes);
  if (!allocated) return fail(allocated.error());
  const auto in_store = reader->store().usage();
  if (!in_store) return fail(in_store.error());
  auto snapshots = reader->usage_of_snapshots();
  if (!snapshots) return fail(std::move(snapshots.error()));

  HeapUsage usage;
  usage.version = version->info;
  usage.allocated_bytes = *allocated;
  usage.page_bytes = version->info.pages * base::kPageBytes;
  usage.all_bytes = reader->newest().taken_slots * base::kPageBytes;
  usage.store_bytes = in_store->space_bytes;
  usage.snapshots = std::move(*snapshots);
  return usage;
}

}  // namespace farheap
