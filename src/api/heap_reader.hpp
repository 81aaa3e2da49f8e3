// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kept heap as its store has it, read without being opened: no addresses are reserved, no types have to be known, and
// a writer may have it open, in this process too. A lease keeps the versions that were there when it was opened.
//
// What is read was written by others and may be damaged: every length and address is checked, lists end, and what
// makes no sense is kCorrupt. Checksums guard the maps; the heap's own bytes have one behind checksum+ only.
//
// Thread-safety: none; the owner locks.
#pragma once

#include <algorithm>
#include <farheap/heap_facts.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/heap_lock.hpp"
#include "api/heap_place.hpp"
#include "api/version_bytes.hpp"
#include "segment/versions.hpp"

namespace farheap::api {

struct StoredVersion {
  VersionInfo info;  // without a name: the newest commit
  segment::BlockTree::Root map;
  std::uint64_t base = 0;  // the address for which its pointers are right
};

// What stands at the beginning of a version's bytes (docs/formats.md, "A heap in a kept segment").
struct StoredBooks {
  std::uint32_t format = 0;
  std::uint64_t end_of_tables = 0;  // offset: the allocator's books lie below, objects above
  std::string description;          // of the heap
};

class HeapReader {
 public:
  // kNotFound, kConflict while it is being created or removed, and what Versions::open_to_read says.
  [[nodiscard]] static Result<HeapReader> open(const HeapPlace& place);
  // kNotFound if nobody has ended its creation.
  [[nodiscard]] static Result<HeapReader> open(std::unique_ptr<Store> store,
                                               std::unique_ptr<segment::VersionLeases> leases);

  [[nodiscard]] Store& store() const { return *store_; }
  [[nodiscard]] const segment::Superblock& newest() const { return newest_; }
  [[nodiscard]] std::string id() const;  // as Heap::id()
  [[nodiscard]] std::uint64_t capacity_bytes() const;
  // By age, the newest commit last; without their bases, which take a read each.
  [[nodiscard]] Result<std::vector<StoredVersion>> versions();
  // kNotFound, with the names that there are. No name: the newest.
  [[nodiscard]] Result<StoredVersion> version(std::string_view name);

  // By age. Reads the lists of dead slots: 512 of them a read.
  [[nodiscard]] Result<std::vector<SnapshotUsage>> usage_of_snapshots();

  // How many it says it holds, or the store has, if that is less: a damaged number does no harm.
  [[nodiscard]] std::uint64_t pages_of(const StoredVersion& version) const {
    return std::min(version.info.pages, blocks_);
  }
  [[nodiscard]] VersionBytes bytes_of(const StoredVersion& version) const {
    return {*store_, version.map, {version.base, capacity_bytes()}};
  }

 private:
  HeapReader() = default;
  [[nodiscard]] Result<StoredVersion> with_base(StoredVersion version);

  std::unique_ptr<segment::VersionLeases> leases_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<segment::Versions> versions_;
  segment::Superblock newest_;
  std::uint64_t blocks_ = 0;  // in the store
};

// kCorrupt if no heap begins there, kUnavailable if a newer Farheap has written it.
[[nodiscard]] Result<StoredBooks> read_books(VersionBytes& bytes);
// By age. `pages` is how many the version holds: all that the directory says has room in them.
[[nodiscard]] Result<std::vector<ObjectInfo>> read_objects(VersionBytes& bytes, std::uint64_t pages);

}  // namespace farheap::api
