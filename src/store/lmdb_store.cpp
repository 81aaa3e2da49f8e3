// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// lmdb: blocks in an LMDB database. A batch is one transaction, so it happens as a whole or not at all.
//
// Values (format 1). LMDB puts a long value into whole pages less 16 bytes, so a value of one 4096-byte block would
// waste a page. A value therefore holds a group of blocks, 32 KiB of them (one block where blocks are larger): first
// the versions of all blocks of the group, 8 bytes each, 0 for absent; then the bytes of those present, in order.
// Eight blocks of 4 KiB take nine pages; writing one of them rewrites the group, which costs a copy of 32 KiB.
// Databases: "blocks" (integer key: group), "counters" (name -> int64), "meta" ("format", "block_bytes", "present").
//
// The version of a block is the number of the transaction that wrote it.
//
// The map is as large as the address space gives (1 TiB), because it can only grow while nobody reads; the file is
// only as large as its contents.
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "base/uri_path.hpp"
#include "os/named_file.hpp"
#include "os/robust_list.hpp"
#include "store/batch.hpp"
#include "store/contents.hpp"
#include "store/kept_file.hpp"
#include "store/kinds.hpp"
#include "store/lmdb_environment.hpp"
#include "store/lmdb_readers.hpp"
#include "store/named_place.hpp"

namespace farheap::store {
namespace {

constexpr char kCannotOpenLmdb[] = "cannot open the store";
constexpr std::uint64_t kFormat = 1;

// Aborted when it goes out of scope.
class Transaction {
 public:
  int begin(MDB_env* env, unsigned flags) {
    MDB_txn* txn = nullptr;
    const int error = mdb_txn_begin(env, nullptr, flags, &txn);
    txn_.reset(txn);
    return error;
  }
  int commit() { return mdb_txn_commit(txn_.release()); }
  [[nodiscard]] MDB_txn* get() const { return txn_.get(); }

 private:
  struct Abort {
    void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
  };
  os::RobustListAside aside_;  // LMDB's locks are robust ones, held until the transaction ends
  std::unique_ptr<MDB_txn, Abort> txn_;
};

MDB_val value_of(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }

int read_number(MDB_txn* txn, MDB_dbi dbi, std::string_view name, std::uint64_t& number) {
  MDB_val key = value_of(name);
  MDB_val value;
  const int error = mdb_get(txn, dbi, &key, &value);
  if (error == MDB_NOTFOUND) return number = 0, 0;
  if (error == 0 && value.mv_size != sizeof number) return MDB_CORRUPTED;
  if (error == 0) std::memcpy(&number, value.mv_data, sizeof number);
  return error;
}
int write_number(MDB_txn* txn, MDB_dbi dbi, std::string_view name, std::uint64_t number) {
  MDB_val key = value_of(name);
  MDB_val value{sizeof number, &number};
  return mdb_put(txn, dbi, &key, &value, 0);
}

Outcome outcome_of_error(int error) {
  if (error == 0) return Outcome::kOk;
  if (error == MDB_MAP_FULL || error == ENOSPC || error == EDQUOT) return Outcome::kNoSpace;
  if (error == MDB_CORRUPTED || error == MDB_PAGE_NOTFOUND) return Outcome::kCorrupt;
  return Outcome::kFailed;
}

class LmdbStore final : public Store {
 public:
  LmdbStore(std::string place, Environment env, const StoreOptions& options, bool syncs_each)
      : place_(std::move(place)),
        env_(std::move(env)),
        // A scratch store's file has no name that another could open it by.
        readers_(env_.get(), options.lifetime == Lifetime::kScratch) {
    kept_ = options.lifetime == Lifetime::kKeep;
    syncs_each_ = syncs_each;
    limits_ = {.block_bytes = options.block_bytes,
               .largest_value_bytes = 4 * base::kMiB,
               .largest_batch_bytes = 64 * base::kMiB,
               .largest_batch_operations = 1024,
               .best_run_bytes = 64 * base::kKiB};
    per_group_ = std::max<std::size_t>(32 * base::kKiB / options.block_bytes, 1);
  }

  Status set_up() {
    Transaction txn;
    int error = txn.begin(env_.get(), 0);
    if (error == 0) error = mdb_dbi_open(txn.get(), "blocks", MDB_CREATE | MDB_INTEGERKEY, &blocks_);
    if (error == 0) error = mdb_dbi_open(txn.get(), "counters", MDB_CREATE, &counters_);
    if (error == 0) error = mdb_dbi_open(txn.get(), "meta", MDB_CREATE, &meta_);
    std::uint64_t format = 0;
    std::uint64_t block_bytes = 0;
    if (error == 0) error = read_number(txn.get(), meta_, "format", format);
    if (error == 0) error = read_number(txn.get(), meta_, "block_bytes", block_bytes);
    if (error == 0 && format == 0) {
      format = kFormat;
      block_bytes = limits_.block_bytes;
      error = write_number(txn.get(), meta_, "format", format);
      if (error == 0) error = write_number(txn.get(), meta_, "block_bytes", block_bytes);
    }
    if (error == 0 && format > kFormat) {
      return fail(ErrorCode::kCorrupt, kCannotOpenLmdb, describe(), fmt::format("it has format {}", format),
                  "open it with the newer Farheap that made it");
    }
    if (error == 0 && block_bytes != limits_.block_bytes) {
      return fail(ErrorCode::kInvalidArgument, kCannotOpenLmdb, describe(),
                  fmt::format("it holds blocks of {} bytes, not of {}", block_bytes, limits_.block_bytes),
                  "open it with the block size it was made with");
    }
    if (error == 0) error = txn.commit();
    if (error != 0) return fail(lmdb_error(error, kCannotOpenLmdb, describe()));
    return {};
  }

  std::string describe() const override { return base::path_uri("lmdb", place_); }
  Limits limits() const override { return limits_; }
  Capabilities capabilities() const override {
    auto all = static_cast<Capabilities>(Capability::kVersions) | static_cast<Capabilities>(Capability::kCounters) |
               static_cast<Capabilities>(Capability::kLinearisable) |
               static_cast<Capabilities>(Capability::kAtomicBatch) | static_cast<Capabilities>(Capability::kSparse);
    if (kept_) all |= static_cast<Capabilities>(Capability::kManyProcesses);
    if (kept_ && syncs_each_) all |= static_cast<Capabilities>(Capability::kDurable);
    return all;
  }

  Status get(std::span<Get> batch) override {
    if (auto ok = check(batch, limits_, capabilities(), *this); !ok) return ok;
    LmdbReaders::Reading reading(readers_);
    const int error = reading.error();
    for (auto& entry : batch) {
      entry.outcome = error == 0 ? get_one(reading.get(), entry) : outcome_of_error(error);
      if (is_error(entry.outcome)) reading.distrust();
    }
    return summary(batch, *this, error == 0 ? "" : mdb_strerror(error));
  }

  Outcome get_part(std::uint64_t block, std::size_t offset, std::span<std::byte> into) override {
    LmdbReaders::Reading reading(readers_);
    if (reading.error() != 0) return outcome_of_error(reading.error());
    Group group;
    const int error = find(reading.get(), block / per_group_, group);
    if (error != 0) {
      reading.distrust();
      return outcome_of_error(error);
    }
    const std::size_t index = block % per_group_;
    if (group.version(index) == 0) return Outcome::kAbsent;
    std::memcpy(into.data(), group.bytes.data() + begin_of(group, index) + offset, into.size());
    return Outcome::kOk;
  }

  Status put(std::span<Put> batch) override {
    if (auto ok = check(batch, limits_, capabilities(), *this); !ok) return ok;
    const LmdbReaders::Change change(readers_);
    Transaction txn;
    int error = txn.begin(env_.get(), 0);
    std::int64_t more = 0;
    for (auto& entry : batch) {
      if (error == 0) error = put_one(txn.get(), entry, more);
    }
    if (error == 0) error = count_present(txn.get(), more);
    if (error == 0) error = commit_and_explain(txn);
    if (error == 0) return {};
    for (auto& entry : batch) entry.outcome = outcome_of_error(error), entry.version = 0;
    return summary(batch, *this, mdb_strerror(error));
  }

  Status erase(std::uint64_t first, std::uint64_t count) override {
    if (count == 0) return {};
    const std::uint64_t last = count - 1 > ~std::uint64_t{0} - first ? ~std::uint64_t{0} : first + count - 1;
    const LmdbReaders::Change change(readers_);
    Transaction txn;
    int error = txn.begin(env_.get(), 0);
    std::int64_t more = 0;
    if (error == 0) error = erase_range(txn.get(), first, last, more);
    if (error == 0) error = count_present(txn.get(), more);
    if (error == 0) error = commit_and_explain(txn);
    if (error != 0) return fail(lmdb_error(error, "cannot erase blocks", describe()));
    return {};
  }

  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override {
    std::optional<LmdbReaders::Change> change;
    if (delta != 0) change.emplace(readers_);
    Transaction txn;
    int error = txn.begin(env_.get(), delta == 0 ? MDB_RDONLY : 0);
    std::uint64_t value = 0;
    if (error == 0) error = read_number(txn.get(), counters_, counter, value);
    value += static_cast<std::uint64_t>(delta);
    if (error == 0 && delta != 0) {
      error = write_number(txn.get(), counters_, counter, value);
      if (error == 0) error = commit_and_explain(txn);
    }
    if (error != 0) return fail(lmdb_error(error, "cannot count", describe()));
    return static_cast<std::int64_t>(value);
  }

  Status sync() override {
    if (!kept_ || syncs_each_) return {};
    return sync_environment(env_, describe());
  }

  Result<std::vector<BlockRun>> runs_from(std::uint64_t first) override {
    constexpr std::size_t kMostRuns = 4096;
    std::vector<BlockRun> runs;
    const int error = each_value(blocks_, first / per_group_, [&](const MDB_val& key, const MDB_val& value) {
      std::uint64_t number = 0;
      std::memcpy(&number, key.mv_data, sizeof number);
      const Group group{{static_cast<const std::byte*>(value.mv_data), value.mv_size}, per_group_};
      for (std::size_t i = 0; i < per_group_; ++i) {
        if (number * per_group_ + i >= first && group.version(i) != 0) add_block(runs, number * per_group_ + i);
      }
      return runs.size() < kMostRuns;
    });
    if (error != 0) return fail(lmdb_error(error, "cannot look at the store", describe()));
    return runs;
  }

  Result<std::vector<NamedCounter>> counters() override {
    std::vector<NamedCounter> all;
    const int error = each_value(counters_, std::nullopt, [&](const MDB_val& key, const MDB_val& value) {
      NamedCounter counter{{static_cast<const char*>(key.mv_data), key.mv_size}, 0};
      std::memcpy(&counter.value, value.mv_data, std::min(value.mv_size, sizeof counter.value));
      all.push_back(std::move(counter));
      return true;
    });
    if (error != 0) return fail(lmdb_error(error, "cannot look at the store", describe()));
    return all;
  }

  Result<StoreUsage> usage() override {
    Transaction txn;
    StoreUsage usage;
    int error = txn.begin(env_.get(), MDB_RDONLY);
    if (error == 0) error = read_number(txn.get(), meta_, "present", usage.blocks);
    MDB_stat stat{};
    if (error == 0) error = mdb_stat(txn.get(), blocks_, &stat);
    if (error != 0) return fail(lmdb_error(error, "cannot look at the store", describe()));
    usage.space_bytes = (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages) * stat.ms_psize;
    return usage;
  }

 private:
  // A group as the database has it.
  struct Group {
    std::span<const std::byte> bytes;  // empty: no block of it is there
    std::size_t per_group;
    [[nodiscard]] Version version(std::size_t index) const {
      Version version = 0;
      if (!bytes.empty()) std::memcpy(&version, bytes.data() + index * sizeof version, sizeof version);
      return version;
    }
  };

  // LMDB says EIO when only a part of what it wrote fitted on the disk.
  int commit_and_explain(Transaction& txn) {
    const int error = txn.commit();
    return error == EIO && is_disk_full() ? ENOSPC : error;
  }

  bool is_disk_full() const {
    mdb_filehandle_t file = -1;
    struct statvfs disk{};
    if (mdb_env_get_fd(env_.get(), &file) != 0 || fstatvfs(file, &disk) != 0) return false;
    return disk.f_bavail * disk.f_frsize < base::kMiB;  // the short write took what there was
  }

  int find(MDB_txn* txn, std::uint64_t number, Group& group) const {
    MDB_val key{sizeof number, &number};
    MDB_val value{0, nullptr};
    const int error = mdb_get(txn, blocks_, &key, &value);
    group = {{}, per_group_};
    if (error == MDB_NOTFOUND) return 0;
    if (error != 0) return error;
    group.bytes = {static_cast<const std::byte*>(value.mv_data), value.mv_size};
    std::size_t wanted = per_group_ * sizeof(Version);
    if (group.bytes.size() < wanted) return MDB_CORRUPTED;
    for (std::size_t i = 0; i < per_group_; ++i) wanted += group.version(i) != 0 ? limits_.block_bytes : 0;
    return group.bytes.size() == wanted ? 0 : MDB_CORRUPTED;
  }

  // Where a block that is there begins in its group's value.
  std::size_t begin_of(const Group& group, std::size_t index) const {
    std::size_t begin = per_group_ * sizeof(Version);
    for (std::size_t i = 0; i < index; ++i) begin += group.version(i) != 0 ? limits_.block_bytes : 0;
    return begin;
  }

  // Calls visit(key, value) in order, from the number on if one is given, as long as it answers true.
  template <class Visit>
  int each_value(MDB_dbi dbi, std::optional<std::uint64_t> from, Visit visit) {
    Transaction txn;
    if (const int error = txn.begin(env_.get(), MDB_RDONLY)) return error;
    MDB_cursor* cursor = nullptr;
    if (const int error = mdb_cursor_open(txn.get(), dbi, &cursor)) return error;
    std::uint64_t number = from.value_or(0);
    MDB_val key{sizeof number, &number};
    MDB_val value;
    int error = mdb_cursor_get(cursor, &key, &value, from ? MDB_SET_RANGE : MDB_FIRST);
    while (error == 0 && visit(key, value)) error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    mdb_cursor_close(cursor);
    return error == MDB_NOTFOUND ? 0 : error;
  }

  // Calls visit(group number, first index, count, bytes before) for the part of a run in each group, until non-zero.
  template <class Visit>
  int each_part(std::uint64_t block, std::size_t count, Visit visit) const {
    std::size_t done = 0;
    while (done < count) {
      const std::size_t index = (block + done) % per_group_;
      const std::size_t here = std::min(count - done, per_group_ - index);
      if (const int error = visit((block + done) / per_group_, index, here, done * limits_.block_bytes)) return error;
      done += here;
    }
    return 0;
  }

  Outcome get_one(MDB_txn* txn, Get& entry) {
    entry.version = 0;
    const std::size_t count = entry.into.size() / limits_.block_bytes;
    Outcome outcome = Outcome::kOk;
    const int error = each_part(entry.block, count, [&](auto number, auto index, auto here, auto at) {
      Group group;
      if (const int broken = find(txn, number, group)) return broken;
      const auto* from = group.bytes.data() + begin_of(group, index);
      for (std::size_t i = index; i < index + here; ++i) {
        const auto version = group.version(i);
        if (version == 0) return outcome = Outcome::kAbsent, MDB_NOTFOUND;
        if (count == 1) entry.version = version;
        if (entry.known == version) return outcome = Outcome::kSame, MDB_NOTFOUND;
        std::memcpy(entry.into.data() + at, from, limits_.block_bytes);
        from += limits_.block_bytes, at += limits_.block_bytes;
      }
      return 0;
    });
    return error == 0 || error == MDB_NOTFOUND ? outcome : outcome_of_error(error);
  }

  int put_one(MDB_txn* txn, Put& entry, std::int64_t& more) {
    const Version version = mdb_txn_id(txn);
    entry.outcome = Outcome::kOk;
    entry.version = 0;
    const std::size_t count = entry.from.size() / limits_.block_bytes;
    if (count == 1) {
      Group group;
      if (const int error = find(txn, entry.block / per_group_, group)) return error;
      const auto present = group.version(entry.block % per_group_);
      entry.version = version;
      if (entry.expected && *entry.expected != present) {
        entry.outcome = Outcome::kConflict;
        entry.version = present;
        return 0;
      }
    }
    return each_part(entry.block, count, [&](auto number, auto index, auto here, auto at) {
      return rewrite(txn, number, index, here, entry.from.data() + at, version, more);
    });
  }

  // Puts `count` blocks from `index` on into a group, or takes them out (version 0).
  int rewrite(MDB_txn* txn, std::uint64_t number, std::size_t index, std::size_t count, const std::byte* from,
              Version version, std::int64_t& more) {
    Group old;
    if (const int error = find(txn, number, old)) return error;
    // A copy, because putting the new value may reuse the old one's pages.
    const std::vector<std::byte> copy(old.bytes.begin(), old.bytes.end());
    old.bytes = copy;
    std::vector<Version> versions(per_group_);
    std::size_t present = 0;
    for (std::size_t i = 0; i < per_group_; ++i) {
      const bool ours = i >= index && i < index + count;
      versions[i] = ours ? version : old.version(i);
      present += versions[i] != 0 ? 1 : 0;
      more += (versions[i] != 0 ? 1 : 0) - (old.version(i) != 0 ? 1 : 0);
    }
    MDB_val key{sizeof number, &number};
    if (present == 0) return old.bytes.empty() ? 0 : mdb_del(txn, blocks_, &key, nullptr);
    MDB_val value{per_group_ * sizeof(Version) + present * limits_.block_bytes, nullptr};
    if (const int error = mdb_put(txn, blocks_, &key, &value, MDB_RESERVE)) return error;
    auto* to = static_cast<std::byte*>(value.mv_data);
    std::memcpy(to, versions.data(), per_group_ * sizeof(Version));
    to += per_group_ * sizeof(Version);
    const auto* kept = old.bytes.data() + per_group_ * sizeof(Version);
    for (std::size_t i = 0; i < per_group_; ++i) {
      const bool ours = i >= index && i < index + count;
      const bool was_there = old.version(i) != 0;
      if (versions[i] != 0) {
        std::memcpy(to, ours ? from + (i - index) * limits_.block_bytes : kept, limits_.block_bytes);
        to += limits_.block_bytes;
      }
      if (was_there) kept += limits_.block_bytes;
    }
    return 0;
  }

  // Only the groups that are there are visited, however wide the range.
  int erase_range(MDB_txn* txn, std::uint64_t first, std::uint64_t last, std::int64_t& more) {
    std::uint64_t number = first / per_group_;
    for (;;) {
      MDB_cursor* cursor = nullptr;
      if (const int error = mdb_cursor_open(txn, blocks_, &cursor)) return error;
      MDB_val key{sizeof number, &number};
      MDB_val value;
      const int error = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
      if (error == 0) std::memcpy(&number, key.mv_data, sizeof number);
      mdb_cursor_close(cursor);
      if (error == MDB_NOTFOUND || number > last / per_group_) return 0;
      if (error != 0) return error;
      const std::size_t low = number == first / per_group_ ? first % per_group_ : 0;
      const std::size_t high = number == last / per_group_ ? last % per_group_ : per_group_ - 1;
      if (const int broken = rewrite(txn, number, low, high - low + 1, nullptr, 0, more)) return broken;
      if (number == ~std::uint64_t{0}) return 0;
      ++number;
    }
  }

  int count_present(MDB_txn* txn, std::int64_t more) {
    if (more == 0) return 0;
    std::uint64_t present = 0;
    if (const int error = read_number(txn, meta_, "present", present)) return error;
    return write_number(txn, meta_, "present", present + static_cast<std::uint64_t>(more));
  }

  std::string place_;
  Environment env_;
  LmdbReaders readers_;  // ends before the environment
  Limits limits_;
  std::size_t per_group_ = 1;
  bool kept_ = false;
  bool syncs_each_ = false;
  MDB_dbi blocks_ = 0;
  MDB_dbi counters_ = 0;
  MDB_dbi meta_ = 0;
};

Result<Environment> open_kept(const std::string& place, unsigned flags, const std::string& subject) {
  const auto path = kept_file_of(place, kCannotOpenLmdb, kLmdbNameInFolder);
  if (!path) return fail(path.error());
  auto env = open_environment(*path, flags, subject);
  if (!env) return env;
  if (Status durable = os::make_names_durable(*path, kCannotOpenLmdb); !durable)
    return fail(std::move(durable.error()));
  return env;
}

// Unlinked as soon as it is open, so that nothing stays whatever ends the process.
Result<Environment> open_scratch(const std::string& place, const std::string& subject) {
  if (const Status there = check_scratch_folder(place, subject); !there) return fail(there.error());
  std::string folder = place + "/.farheap-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return fail(errno_error(errno, kCannotOpenLmdb, subject));
  (void)chmod(folder.c_str(), 0700);  // a umask may have taken bits away
  const std::string path = folder + "/blocks";
  auto env = open_environment(path, MDB_NOSYNC | MDB_NOMETASYNC, subject);
  unlink(path.c_str());
  unlink((path + "-lock").c_str());
  rmdir(folder.c_str());
  return env;
}

}  // namespace

StoreResult open_lmdb(const std::string& place, const Parameters& parameters, const StoreOptions& options) {
  const std::string subject = "lmdb:" + place;
  if (place.empty()) {
    return fail(ErrorCode::kInvalidArgument, kCannotOpenLmdb, subject, "the folder or file is missing",
                "write it as lmdb:DIR or lmdb:FILE");
  }
  if (auto ok = check_block_bytes(options.block_bytes, subject); !ok) return fail(std::move(ok.error()));
  const auto sync = parameters.word("sync", "each");
  if (sync != "each" && sync != "asked") {
    return parameters.wrong("sync", "it is not known", "write sync=each (every put is durable) or sync=asked");
  }
  const bool kept = options.lifetime == Lifetime::kKeep;
  const unsigned flags = sync == "each" ? 0 : MDB_NOSYNC;
  auto env = kept ? open_kept(place, flags, subject) : open_scratch(place, subject);
  if (!env) return fail(std::move(env.error()));
  auto store = std::make_unique<LmdbStore>(place, std::move(*env), options, sync == "each");
  if (auto ok = store->set_up(); !ok) return fail(std::move(ok.error()));
  return store;
}

}  // namespace farheap::store
