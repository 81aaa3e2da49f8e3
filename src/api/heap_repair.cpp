// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heap::repair: what is whole of a damaged heap is copied into FILE.repaired, looked at as heap check does, and takes
// the place of FILE, which goes on as FILE.damaged.
//
// Whoever is killed on the way leaves the damaged heap in its place, or the new one; at worst the new file with the
// old table of its blocks, which a next repair does not need (bare_file.hpp).
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <farheap/heap.hpp>
#include <filesystem>

#include "api/new_place.hpp"
#include "base/units.hpp"
#include "os/named_file.hpp"
#include "segment/versions_salvage.hpp"
#include "store/bare_file.hpp"

namespace farheap {
namespace {

using api::HeapLock;
using api::HeapPlace;
using api::NewPlace;
using segment::Superblock;
using segment::VersionName;

constexpr char kCannotRepair[] = "cannot repair the heap";

// What is made of another user's heap would be taken for this user's. A second name is no obstacle: a repair that was
// killed leaves one.
Status check_is_own(const HeapPlace& place) {
  std::error_code ignored;
  if (place.is_on_server() || std::filesystem::is_directory(place.file, ignored)) return {};
  const auto file = os::open_file_to_read(place.file, kCannotRepair);
  if (!file) return fail(file.error());
  Status own = os::check_trusted_file(*file, place.file, kCannotRepair);
  close(*file);
  return own;
}

// Without its table where there is one: that may be damaged, too.
Result<std::unique_ptr<Store>> open_damaged(const HeapPlace& place, HeapLock& lock) {
  return place.uri.starts_with("file:") ? store::open_bare_file(place.file) : place.open(lock);
}

bool is_damage(const Error& error) {
  return error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kIo ||
         error.code == ErrorCode::kInvalidArgument;  // what a store says that does not have its other files
}

// A superblock that is damaged while the heap is whole: the next commit would write it anew, and so it is done now.
Status write_both_superblocks(const HeapPlace& place, HeapLock& lock) {
  auto store = place.open(lock);
  if (!store) return fail(std::move(store.error()));
  auto found = segment::read_superblock(**store);
  if (!found) return fail(std::move(found.error()));
  if (!found->one_is_damaged || found->content.commit < 2) return {};
  Superblock earlier = found->content;
  --earlier.commit;
  return segment::write_superblock(**store, earlier, found->versions);
}

// An unfinished repair of the same heap left it.
Status remove_earlier_attempt(const HeapPlace& to, const Superblock& like) {
  auto there = to.is_there();
  if (!there) return fail(std::move(there.error()));
  // Its file has the heap's name already: the table, of which there is no need, was left behind.
  if (!*there && to.is_file_store() && unlink(to.others.front().c_str()) != 0 && errno != ENOENT) {
    return fail(errno_error(errno, kCannotRepair, to.others.front()));
  }
  if (!*there) return {};
  auto lock = HeapLock::take(to, HeapLock::For::kAlone);
  if (!lock) return fail(std::move(lock.error()));
  {
    auto store = to.open(**lock);
    if (!store) return fail(std::move(store.error()));
    auto found = segment::read_superblock(**store);
    if (!found || found->content.id != like.id) return {};  // claim() tells what is wrong with it
  }
  return to.remove(**lock);
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string free_name(const std::string& file) {
  std::string name = file + ".damaged";
  for (int i = 2; exists(name); ++i) name = fmt::format("{}.damaged.{}", file, i);
  return name;
}

Status failed_on(const std::string& path) { return fail(errno_error(errno, kCannotRepair, path)); }

// `suffix` tells the files of a store apart: "", ".versions".
Status keep_old(const std::string& file, const std::string& as, const std::string& suffix,
                std::vector<std::string>& old_files) {
  if (!exists(file + suffix)) return {};
  // A second name, so that there is a file in its place at every moment; where there are none it is moved.
  if (link((file + suffix).c_str(), (as + suffix).c_str()) != 0 &&
      rename((file + suffix).c_str(), (as + suffix).c_str()) != 0) {
    return failed_on(file + suffix);
  }
  old_files.push_back(as + suffix);
  return {};
}

Status take_its_place(const HeapPlace& from, const HeapPlace& to, std::vector<std::string>& old_files) {
  const std::string old = free_name(to.file);
  const bool has_table = from.others.front() == from.file + ".versions";
  if (Status kept = keep_old(to.file, old, "", old_files); !kept) return kept;
  if (has_table) {
    if (Status kept = keep_old(to.file, old, ".versions", old_files); !kept) return kept;
  }
  if (rename(from.file.c_str(), to.file.c_str()) != 0) return failed_on(from.file);
  for (std::size_t i = 0; i < from.others.size(); ++i) {
    if (has_table && rename(from.others[i].c_str(), to.others[i].c_str()) != 0) return failed_on(from.others[i]);
    if (!has_table) unlink(from.others[i].c_str());  // lmdb makes its lock file anew
  }
  return os::make_names_durable(to.file, kCannotRepair);
}

// One whose allocator's books are wrong is not whole either. Empty: all are.
Result<std::vector<VersionName>> wrong_ones(const std::string& uri, const std::vector<VersionName>& versions,
                                            std::vector<std::string>& lost) {
  std::vector<VersionName> wrong;
  for (const VersionName& one : versions) {
    Status status = Heap::check(one.snapshot.empty() ? uri : uri + "@" + one.snapshot);
    if (status) continue;
    if (status.error().code != ErrorCode::kCorrupt) return fail(std::move(status.error()));
    lost.push_back(fmt::format("{}: {}", one.text(), status.error().why));
    wrong.push_back(one);
  }
  return wrong;
}

class Repair {
 public:
  Repair(const HeapPlace& place, HeapLock& lock, const HeapProgress& progress)
      : place_(place), lock_(lock), progress_(progress) {}

  Result<RepairReport> run() {
    auto source = open_damaged(place_, lock_);
    if (!source) return fail(std::move(source.error()));
    auto superblocks = segment::whole_superblocks(**source);
    if (!superblocks) return fail(std::move(superblocks.error()));
    auto to = HeapPlace::parse(place_.uri_with(place_.file + ".repaired"));
    if (!to) return fail(std::move(to.error()));
    if (Status ready = remove_earlier_attempt(*to, superblocks->front()); !ready) return fail(std::move(ready.error()));
    all_ = superblocks->front().taken_slots * base::kPageBytes;
    for (;;) {
      auto done = try_once(**source, to->uri);
      if (!done) return fail(std::move(done.error()));
      if (*done) return std::move(report_);
    }
  }

 private:
  // False: a version turned out not to be whole, and has to be left out.
  Result<bool> try_once(Store& source, const std::string& uri) {
    auto to = NewPlace::claim(uri, kCannotRepair);
    if (!to) return fail(std::move(to.error()));
    std::vector<std::string> lost = lost_;
    std::vector<VersionName> kept;
    {
      auto target = to->open();
      if (!target) return fail(std::move(target.error()));
      auto salvaged = segment::salvage(source, **target, without_, [&](std::uint64_t pages) {
        if (progress_) progress_(std::min(pages * base::kPageBytes, all_), all_);
        return Status{};
      });
      if (!salvaged) {
        if (!lost_.empty()) salvaged.error().why += ": " + lost_.back();
        return fail(std::move(salvaged.error()));
      }
      kept = std::move(salvaged->kept);
      lost.insert(lost.end(), salvaged->lost.begin(), salvaged->lost.end());
    }
    if (Status open = to->let_readers_in(); !open) return fail(std::move(open.error()));
    auto wrong = wrong_ones(uri, kept, lost_);
    if (!wrong) return fail(std::move(wrong.error()));
    without_.insert(without_.end(), wrong->begin(), wrong->end());
    if (!wrong->empty()) return false;
    if (Status told = tell_versions(*to); !told) return fail(std::move(told.error()));
    report_.lost = std::move(lost);
    if (Status moved = take_its_place(to->place(), place_, report_.old_files); !moved) {
      return fail(std::move(moved.error()));
    }
    if (progress_) progress_(all_, all_);
    return true;
  }

  Status tell_versions(const NewPlace& to) {
    auto store = to.open();
    if (!store) return fail(std::move(store.error()));
    auto versions = segment::Versions::open(**store);
    if (!versions) return fail(std::move(versions.error()));
    auto snapshots = (*versions)->snapshots();
    if (!snapshots) return fail(std::move(snapshots.error()));
    for (const auto& one : *snapshots) report_.kept.push_back({one.name, one.commit, one.time_ns, one.pages});
    const Superblock last = (*versions)->last_commit();
    report_.kept.push_back({{}, last.commit, last.time_ns, last.pages});
    return {};
  }

  const HeapPlace& place_;
  HeapLock& lock_;
  const HeapProgress& progress_;
  std::uint64_t all_ = 0;
  std::vector<VersionName> without_;
  std::vector<std::string> lost_;
  RepairReport report_;
};

}  // namespace

Result<RepairReport> Heap::repair(std::string_view uri, const HeapProgress& progress) {
  auto place = HeapPlace::parse(uri);
  if (!place) return fail(std::move(place.error()));
  if (!place->snapshot.empty()) {
    return fail(ErrorCode::kInvalidArgument, kCannotRepair, std::string(uri), "this names a snapshot of it",
                "name the heap itself");
  }
  if (Status there = place->check_is_there(); !there) return fail(std::move(there.error()));
  if (Status own = check_is_own(*place); !own) return fail(std::move(own.error()));
  const Status sound = check(uri, {.data = true, .progress = progress});
  if (!sound && !is_damage(sound.error())) return fail(Error(sound.error()));
  auto lock = HeapLock::take(*place, HeapLock::For::kAlone);
  if (!lock) return fail(std::move(lock.error()));
  if (!sound && place->is_on_server()) {
    return fail(ErrorCode::kUnavailable, kCannotRepair, sound.error().subject,
                sound.error().why + "; what is on a server is not replaced",
                "`farheap heap copy URI@SNAPSHOT TO` brings a snapshot that is whole to another place");
  }
  if (!sound) return Repair(*place, **lock, progress).run();
  if (Status written = write_both_superblocks(*place, **lock); !written) return fail(std::move(written.error()));
  RepairReport report;
  report.was_sound = true;
  return report;
}

}  // namespace farheap
