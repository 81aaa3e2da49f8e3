// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/heap_reader.hpp"

#include <fmt/format.h>

namespace farheap::api {

using base::kPageBytes;

namespace {

constexpr char kCannotRead[] = "cannot read the heap";

}  // namespace

Result<HeapReader> HeapReader::open(const HeapPlace& place) {
  if (Status is = place.check_is_heap(HeapPlace::Use::kRead); !is) return fail(std::move(is.error()));
  auto lock = HeapLock::take(place, HeapLock::For::kReading);
  if (!lock) return fail(std::move(lock.error()));
  auto store = place.open(**lock);
  if (!store) return fail(std::move(store.error()));
  return open(std::move(*store), std::move(*lock));
}

Result<HeapReader> HeapReader::open(std::unique_ptr<Store> store, std::unique_ptr<segment::VersionLeases> leases) {
  HeapReader reader;
  reader.leases_ = std::move(leases);
  reader.store_ = std::move(store);
  auto versions = segment::Versions::open_to_read(*reader.store_, *reader.leases_);
  if (!versions) return fail(std::move(versions.error()));
  reader.versions_ = std::move(*versions);
  reader.newest_ = reader.versions_->last_commit();
  const segment::Superblock& newest = reader.newest_;
  const auto usage = reader.store_->usage();
  if (!usage) return fail(usage.error());
  reader.blocks_ = usage->blocks;
  constexpr std::uint64_t kMostPages = std::uint64_t{1} << 36;  // 256 TiB: an address has 47 bits
  if (newest.capacity_pages > kMostPages || newest.base_address % kPageBytes != 0 ||
      newest.base_address > UINT64_MAX - newest.capacity_pages * kPageBytes) {
    return fail(ErrorCode::kCorrupt, kCannotRead, reader.store_->describe(), "its addresses make no sense");
  }
  if (newest.pages == 0 && newest.snapshot_count == 0) {
    return fail(ErrorCode::kNotFound, kCannotRead, reader.store_->describe(), "who began to create it did not end that",
                "create it again, or remove its files");
  }
  return reader;
}

std::string HeapReader::id() const {
  std::string text;
  for (const std::byte byte : newest_.id) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

std::uint64_t HeapReader::capacity_bytes() const { return newest_.capacity_pages * kPageBytes; }

// Where its books say that it lay: a relocatable heap may have been elsewhere than it was made.
Result<StoredVersion> HeapReader::with_base(StoredVersion version) {
  version.base = newest_.base_address;
  VersionBytes bytes = bytes_of(version);
  constexpr std::uint64_t kAddressOfBooks = 32;  // offset of KeptBooks::address
  const auto address = bytes.read_as<std::uint64_t>(version.base + kAddressOfBooks);
  if (!address) return fail(address.error());
  if (*address == 0) return version;
  if (*address % kPageBytes != 0 || *address > UINT64_MAX - capacity_bytes()) {
    return fail(ErrorCode::kCorrupt, kCannotRead, store_->describe(),
                "its first page has an address that makes no sense");
  }
  version.base = *address;
  return version;
}

Result<std::vector<StoredVersion>> HeapReader::versions() {
  auto snapshots = versions_->snapshots();
  if (!snapshots) return fail(std::move(snapshots.error()));
  std::vector<StoredVersion> all;
  for (const segment::Snapshot& one : *snapshots) {
    all.push_back({{one.name, one.commit, one.time_ns, one.pages}, one.map});
  }
  all.push_back({{{}, newest_.commit, newest_.time_ns, newest_.pages}, newest_.map});
  return all;
}

Result<StoredVersion> HeapReader::version(std::string_view name) {
  if (name.empty()) {
    return with_base({{{}, newest_.commit, newest_.time_ns, newest_.pages}, newest_.map});
  }
  auto all = versions();
  if (!all) return fail(std::move(all.error()));
  std::string names;
  for (StoredVersion& one : *all) {
    if (one.info.name == name) return with_base(std::move(one));
    if (!one.info.name.empty()) names += (names.empty() ? "" : ", ") + one.info.name;
  }
  return fail(ErrorCode::kNotFound, kCannotRead, store_->describe() + "@" + std::string(name),
              "it has no snapshot of that name", names.empty() ? "it has none at all" : "its snapshots are " + names);
}

// What goes with a snapshot is on its list or on the next one's, and came into being after the snapshot before it:
// Versions::remove() gives back the same.
Result<std::vector<SnapshotUsage>> HeapReader::usage_of_snapshots() {
  auto snapshots = versions_->snapshots();
  if (!snapshots) return fail(std::move(snapshots.error()));
  std::vector<SnapshotUsage> all;
  for (std::size_t i = 0; i < snapshots->size(); ++i) {
    const segment::Snapshot& one = (*snapshots)[i];
    const bool is_newest = i + 1 == snapshots->size();
    const segment::SlotList::Root next =
        is_newest ? segment::SlotList::Root{newest_.dead, newest_.dead_count} : (*snapshots)[i + 1].dead;
    std::uint64_t slots = 0;
    for (const segment::SlotList::Root& root : {one.dead, next}) {
      segment::SlotList list(*store_, root);
      Status status = list.for_each([&](segment::SlotRef at) -> Status {
        if (i == 0 || at.epoch() > (*snapshots)[i - 1].epoch) ++slots;
        return {};
      });
      if (!status) return fail(std::move(status.error()));
    }
    all.push_back({{one.name, one.commit, one.time_ns, one.pages}, slots * kPageBytes});
  }
  return all;
}

}  // namespace farheap::api
