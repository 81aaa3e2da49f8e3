// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heap::copy. Bytes are shared where that is simple and surely right: both places are plain files, the whole heap is
// wanted, nobody writes it (the lock for writing is taken as long as it takes), and the file system does it. Otherwise
// versions are copied (versions_copy.hpp), under a reader's lease.
#include <algorithm>
#include <cstring>
#include <farheap/heap.hpp>

#include "api/new_place.hpp"
#include "base/random_number.hpp"
#include "base/units.hpp"
#include "segment/versions_copy.hpp"
#include "store/clone_file.hpp"

namespace farheap {
namespace {

using api::HeapLock;
using api::HeapPlace;
using api::NewPlace;
using segment::Snapshot;
using segment::Superblock;
using segment::Versions;

constexpr char kCannotCopy[] = "cannot copy the heap";

std::array<std::byte, 16> new_id() {
  const std::uint64_t words[2] = {base::random_number(), base::random_number()};
  std::array<std::byte, 16> id{};
  std::memcpy(id.data(), words, id.size());
  return id;
}

Status go_on(const HeapPlace& from, const CopyOptions& options) {
  if (!options.stop || !options.stop()) return {};
  return fail(ErrorCode::kUnavailable, "the heap is not copied", from.uri, "it was broken off before the end");
}

bool is_plain_file(const HeapPlace& place) { return place.uri.starts_with("file:"); }

// The last superblock under another id, twice: until then the clone is no heap.
Status make_clone_a_heap(const NewPlace& to, const Superblock& last) {
  auto store = to.open();
  if (!store) return fail(std::move(store.error()));
  if (Status sound = Versions::at(**store, last)->check(); !sound) return sound;
  Superblock content = last;
  content.id = new_id();
  content.origin = last.line();
  content.writer = base::random_number();
  return segment::write_first_superblocks(**store, content);
}

// False: it has to be copied. An error: so it would be, too.
Result<bool> share_bytes(const HeapPlace& from, const NewPlace& to, const CopyOptions& options) {
  Superblock last;
  {
    auto lock = HeapLock::take(from, HeapLock::For::kWriting, std::chrono::milliseconds(0));  // or without it
    if (!lock) return false;
    auto store = from.open(**lock);
    if (!store) return fail(std::move(store.error()));
    auto found = segment::read_superblock(**store);
    if (!found) return fail(std::move(found.error()));
    last = found->content;
    if (last.is_unfinished()) return false;
    if (!store::clone_kept_file(from.file, to.place().file, segment::kSuperblocks)) return false;
  }
  if (Status on = go_on(from, options); !on) return fail(std::move(on.error()));
  if (Status made = make_clone_a_heap(to, last); !made) return fail(std::move(made.error()));
  const std::uint64_t bytes = last.taken_slots * base::kPageBytes;
  if (options.progress) options.progress(bytes, bytes);
  return true;
}

// What is to be copied: snapshots by age, and what becomes the newest state.
struct Wanted {
  std::vector<Snapshot> snapshots;
  segment::VersionsCopy::Newest newest;
  std::uint64_t pages = 0;  // about so many
};

Result<Wanted> choose(Versions& versions, const HeapPlace& from, bool newest_only) {
  const Superblock last = versions.last_commit();
  Wanted wanted;
  wanted.newest = {last.map, last.pages, last.commit, last.time_ns, new_id()};
  wanted.pages = last.pages;
  if (newest_only && from.snapshot.empty()) return wanted;
  auto snapshots = versions.snapshots();
  if (!snapshots) return fail(std::move(snapshots.error()));
  if (from.snapshot.empty()) {
    wanted.snapshots = std::move(*snapshots);
    if (!wanted.snapshots.empty()) wanted.pages = last.taken_slots;
    return wanted;
  }
  const auto found = std::ranges::find_if(*snapshots, [&](const Snapshot& one) { return from.snapshot == one.name; });
  if (found == snapshots->end()) {
    return fail(ErrorCode::kNotFound, kCannotCopy, from.uri + "@" + from.snapshot, "it has no snapshot of that name",
                "farheap heap ls lists them");
  }
  wanted.newest = {found->map, found->pages, found->commit, found->time_ns, new_id()};
  wanted.pages = found->pages;
  return wanted;
}

Status copy_versions(const HeapPlace& from, const NewPlace& to, const CopyOptions& options) {
  auto lock = HeapLock::take(from, HeapLock::For::kReading);
  if (!lock) return fail(std::move(lock.error()));
  auto source = from.open(**lock);
  if (!source) return fail(std::move(source.error()));
  auto versions = Versions::open_to_read(**source, **lock);
  if (!versions) return fail(std::move(versions.error()));
  if ((*versions)->last_commit().is_unfinished()) {
    return fail(ErrorCode::kNotFound, kCannotCopy, from.uri, "who began to create it did not end that");
  }
  auto wanted = choose(**versions, from, options.newest_only);
  if (!wanted) return fail(std::move(wanted.error()));
  auto target = to.open();
  if (!target) return fail(std::move(target.error()));
  const std::uint64_t all = wanted->pages * base::kPageBytes;
  const auto tell = [&](std::uint64_t pages) {
    if (options.progress) options.progress(std::min(pages * base::kPageBytes, all), all);
    return go_on(from, options);
  };
  auto copy = segment::VersionsCopy::begin(**source, (*versions)->last_commit(), **target, tell, to.leases().fence());
  if (!copy) return fail(std::move(copy.error()));
  for (const Snapshot& one : wanted->snapshots) {
    if (Status status = (*copy)->add(one); !status) return status;
  }
  if (Status status = (*copy)->finish(wanted->newest); !status) return status;
  if (options.progress) options.progress(all, all);
  return {};
}

Status fill(const HeapPlace& from, const NewPlace& to, const CopyOptions& options) {
  if (options.share_bytes && !options.newest_only && from.snapshot.empty() && is_plain_file(from) &&
      is_plain_file(to.place())) {
    auto shared = share_bytes(from, to, options);
    if (!shared) return fail(std::move(shared.error()));
    if (*shared) return {};
  }
  return copy_versions(from, to, options);
}

}  // namespace

Status Heap::copy(std::string_view from, std::string_view to, const CopyOptions& options) {
  auto source = HeapPlace::parse(from);
  if (!source) return fail(std::move(source.error()));
  if (Status is = source->check_is_heap(HeapPlace::Use::kRead); !is) return is;
  auto target = api::NewPlace::claim(to, kCannotCopy);
  if (!target) return fail(std::move(target.error()));
  if (Status done = fill(*source, *target, options); !done) {
    return fail(target->told(std::move(done.error()), kCannotCopy, "copy it again"));
  }
  target->keep();
  return {};
}

}  // namespace farheap
