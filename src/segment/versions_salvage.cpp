// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both superblocks lead to versions. The newer one whose table of snapshots can be read names the snapshots; the newer
// one whose map can be read, the newest state; without either, the newest snapshot is that.
#include "segment/versions_salvage.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace farheap::segment {
namespace {

// The source's fault, and not the target's: the others may be whole.
bool is_damage(const Error& error) { return error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kIo; }

class Salvager {
 public:
  Salvager(Store& source, const std::vector<VersionName>& without) : source_(source), without_(without) {}

  Result<Salvaged> run(Store& target, const VersionsCopy::Progress& progress) {
    auto superblocks = whole_superblocks(source_);
    if (!superblocks) return fail(std::move(superblocks.error()));
    auto copy = VersionsCopy::begin(source_, superblocks->front(), target, progress);
    if (!copy) return fail(std::move(copy.error()));
    for (const Snapshot& one : snapshots_of(*superblocks)) {
      const VersionName name{one.name, one.commit};
      if (is_unwanted(name)) continue;
      if (Status status = (*copy)->add(one); !status) {
        if (!is_damage(status.error())) return fail(std::move(status.error()));
        lose(name, status.error());
        continue;
      }
      kept_.push_back(one);
      found_.kept.push_back(name);
    }
    if (Status status = finish(**copy, *superblocks); !status) return fail(std::move(status.error()));
    return std::move(found_);
  }

 private:
  std::vector<Snapshot> snapshots_of(const std::vector<Superblock>& superblocks) {
    for (const Superblock& one : superblocks) {
      auto snapshots = Versions::at(source_, one)->snapshots();
      if (snapshots) return std::move(*snapshots);
      found_.lost.push_back(
          fmt::format("the table of snapshots of commit {}: {}", one.commit, snapshots.error().message()));
    }
    return {};
  }

  Status finish(VersionsCopy& copy, const std::vector<Superblock>& superblocks) {
    const auto& id = superblocks.front().id;
    for (const Superblock& one : superblocks) {
      const VersionName name{"", one.commit};
      if (is_unwanted(name) || one.is_unfinished()) continue;
      Status status = copy.finish({one.map, one.pages, one.commit, one.time_ns, id});
      if (status) found_.kept.push_back(name);
      if (status || !is_damage(status.error())) return status;
      lose(name, status.error());
    }
    if (kept_.empty()) {
      return fail(ErrorCode::kCorrupt, "cannot repair the heap", source_.describe(),
                  "none of its versions is whole" + (found_.lost.empty() ? "" : ": " + found_.lost.back()));
    }
    const Snapshot& newest = kept_.back();
    found_.kept.push_back({"", newest.commit});
    return copy.finish({newest.map, newest.pages, newest.commit, newest.time_ns, id});
  }

  [[nodiscard]] bool is_unwanted(const VersionName& name) const {
    return std::ranges::find(without_, name) != without_.end();
  }
  void lose(const VersionName& name, const Error& why) {
    found_.lost.push_back(fmt::format("{}: {}", name.text(), why.message()));
  }

  Store& source_;
  const std::vector<VersionName>& without_;
  Salvaged found_;
  std::vector<Snapshot> kept_;
};

}  // namespace

std::string VersionName::text() const {
  return snapshot.empty() ? fmt::format("the newest version, of commit {}", commit)
                          : fmt::format("snapshot '{}', of commit {}", snapshot, commit);
}

Result<std::vector<Superblock>> whole_superblocks(Store& store) {
  std::vector<Superblock> whole;
  Error why{ErrorCode::kCorrupt, "cannot repair the heap", store.describe(), "it has no superblock", ""};
  for (std::uint64_t number = 0; number < kSuperblocks; ++number) {
    auto one = read_one_superblock(store, number);
    if (one) {
      whole.push_back(*one);
    } else if (one.error().code == ErrorCode::kUnavailable) {
      return fail(std::move(one.error()));
    } else {
      why.why = "neither of its superblocks is whole: " + one.error().why;
    }
  }
  if (whole.empty()) return fail(std::move(why));
  std::ranges::sort(whole, std::ranges::greater(), &Superblock::commit);
  return whole;
}

Result<Salvaged> salvage(Store& source, Store& target, const std::vector<VersionName>& without,
                         const VersionsCopy::Progress& progress) {
  return Salvager(source, without).run(target, progress);
}

}  // namespace farheap::segment
