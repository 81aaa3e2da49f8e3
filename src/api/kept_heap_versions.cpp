// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The versions of an open heap: commits, snapshots, pauses.
#include <fmt/format.h>

#include "api/heap_state.hpp"
#include "base/mutex.hpp"

namespace farheap {

// The allocator's books and the table of objects lie where the program may write, so a program that writes behind the
// end of an object may hit them. What has changed since the last commit is looked at, and no commit makes damage last.
Status Heap::State::check_own_books() {
  std::string why;
  const auto keep_changed = [&](std::vector<std::uint64_t>& pages) { segment->keep_changed(pages); };
  if (segment->check_head(why) && root().books.check_changed(why, range(), keep_changed) &&
      watch.check(root().directory, range(), keep_changed, why)) {
    return {};
  }
  return fail(ErrorCode::kCorrupt, "cannot commit", place.uri,
              "something has written over the heap's own books since the last commit: " + why,
              fmt::format("close the heap and open it again: it is as it was at commit {}. Then look for what writes "
                          "behind the end of an object: find_array() tells how many elements there are",
                          segment->versions().last_commit().commit));
}

// Who allocates, enters a name or pauses waits until the cut is made, and no longer. Those who pause by turns, or look
// up names without an end, do not keep a commit waiting for ever: a closed gate lets nobody in, and the directory,
// which has to be at rest, is shared with them.
Status Heap::State::try_commit(segment::KeptSegment::Kind kind, std::string_view name) {
  if (segment->read_only()) {
    return fail(ErrorCode::kInvalidArgument, "cannot commit", place.uri, "it was opened for reading",
                "open it for writing, which one process at a time can");
  }
  if (owner != getpid()) {
    return fail(ErrorCode::kUnavailable, "cannot commit", place.uri, "this is a forked child, which does not have it",
                "commit in the process that has opened it");
  }
  if (holds.has_this_thread()) {
    return fail(ErrorCode::kInvalidArgument, "cannot commit", place.uri,
                "this thread holds a pause, and would wait for itself",
                "commit when the Pause, or the access to a concurrent map, has ended");
  }
  holds.stop();
  directory.lock_shared();  // no names
  gate.close();
  if (Status sound = check_own_books(); !sound) {
    gate.open();
    directory.unlock_shared();
    holds.resume();
    return sound;
  }
  bool open = false;
  const auto at_cut = [&]() FARHEAP_RELEASE_SHARED(directory) {
    open = true;
    gate.open();
    directory.unlock_shared();
    holds.resume();
  };
  Status status = segment->commit(kind, name, at_cut);
  if (!open) at_cut();
  return status;
}

Status Heap::State::commit(segment::KeptSegment::Kind kind, std::string_view name) {
  Status status = try_commit(kind, name);
  if (!status && status.error().code == ErrorCode::kNoSpace) return fail(no_room(std::move(status.error())));
  return status;
}

// What the store says is which of its blocks did not fit.
Error Heap::State::no_room(Error error) const {
  const auto stands =
      fmt::format("commit {} is whole and stays the newest, and what came after it is in this process alone",
                  segment->versions().last_commit().commit);
  return place.no_room(std::move(error), "cannot commit", stands, "commit again before the program ends");
}

Status Heap::commit() { return state_->commit(segment::KeptSegment::Kind::kCommit, {}); }

Status Heap::snapshot(std::string_view name) {
  if (name.find('@') != name.npos) {
    return fail(ErrorCode::kInvalidArgument, "cannot make a snapshot", std::string(name), "'@' cannot be in its name");
  }
  return state_->commit(segment::KeptSegment::Kind::kSnapshot, name);
}

// What is gathered gives its old places back with the second commit.
Status Heap::compact(const HeapProgress& progress) {
  if (state_->attached) {
    root()->books.flush_thread_cache();
    root()->books.purge();
  }
  Status status = commit();
  if (status) status = state_->segment->gather(progress);
  return status ? commit() : status;
}

Status Heap::remove_snapshot(std::string_view name) {
  return state_->commit(segment::KeptSegment::Kind::kRemoval, name);
}

Result<std::vector<VersionInfo>> Heap::versions() {
  segment::Versions& versions = state_->segment->versions();
  auto snapshots = versions.snapshots();
  if (!snapshots) return fail(std::move(snapshots.error()));
  std::vector<VersionInfo> all;
  for (const auto& one : *snapshots) all.push_back({one.name, one.commit, one.time_ns, one.pages});
  const segment::Superblock newest = versions.last_commit();
  all.push_back({{}, newest.commit, newest.time_ns, newest.pages});
  return all;
}

Heap::Pause::Pause(Heap& heap) : heap_(&heap) { heap.state_->holds.enter(); }
Heap::Pause::~Pause() {
  if (heap_ != nullptr) heap_->state_->holds.leave();
}

}  // namespace farheap
