// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rocksdb: blocks in a RocksDB database, in a folder that one process has open.
//
// Keys are block numbers, big-endian. A value of "blocks" is the block's version, 8 bytes, and its bytes; it goes into
// a blob file, so that compactions move keys only (RocksDB's BlobDB). "versions" holds the versions alone: they are
// compared before a block is overwritten, and counted, without the blocks' bytes. The default family holds counters
// ("c" and the name). Families are written together in one batch, so a batch happens as a whole or not at all.
//
// A version is a number counted up from a random start at every opening.
#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/mutex.hpp"
#include "base/random_number.hpp"
#include "base/units.hpp"
#include "base/uri_path.hpp"
#include "engines/engine_table.hpp"
#include "engines/rocksdb/folder.hpp"
#include "store/batch.hpp"
#include "store/contents.hpp"
#include "store/failed_sync.hpp"
#include "store/stripes.hpp"

namespace farheap::engines {
namespace {

constexpr char kWhat[] = "cannot open the store";

using Key = std::array<char, sizeof(std::uint64_t)>;

Key key_of(std::uint64_t block) {
  const std::uint64_t swapped = __builtin_bswap64(block);
  Key key;
  std::memcpy(key.data(), &swapped, sizeof swapped);
  return key;
}
std::uint64_t block_of(const rocksdb::Slice& key) {
  std::uint64_t swapped = 0;
  std::memcpy(&swapped, key.data(), sizeof swapped);
  return __builtin_bswap64(swapped);
}
rocksdb::Slice slice_of(const Key& key) { return {key.data(), key.size()}; }
rocksdb::Slice slice_of(const std::uint64_t& number) { return {reinterpret_cast<const char*>(&number), sizeof number}; }

Outcome outcome_of(const rocksdb::Status& status) {
  if (status.ok()) return Outcome::kOk;
  if (status.IsNotFound()) return Outcome::kAbsent;
  if (status.IsNoSpace()) return Outcome::kNoSpace;
  if (status.IsCorruption()) return Outcome::kCorrupt;
  return Outcome::kFailed;
}

Error with_remedy(Error error) {
  if (error.why.find("Too many open files") != error.why.npos) {
    error.remedy = "RocksDB opens many: raise the limit before the program starts, with `ulimit -n 4096`";
  }
  return error;
}
Status with_remedy(Status status) {
  if (status) return status;
  return fail(with_remedy(std::move(status.error())));
}

Error error_of(const rocksdb::Status& status, std::string what, std::string subject) {
  const ErrorCode code = status.IsNoSpace()      ? ErrorCode::kNoSpace
                         : status.IsCorruption() ? ErrorCode::kCorrupt
                                                 : ErrorCode::kIo;
  return with_remedy({code, std::move(what), std::move(subject), status.ToString(), ""});
}

// What the database holds in memory counts against nobody's budget but the machine's: little.
rocksdb::Options database_options() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.compression = rocksdb::kNoCompression;  // that is what compress+ is for
  options.max_background_jobs = 2;
  options.keep_log_file_num = 1;
  options.info_log_level = rocksdb::ERROR_LEVEL;
  return options;
}

rocksdb::ColumnFamilyOptions family_options(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options(database_options());
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.checksum = rocksdb::kXXH3;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.write_buffer_size = 2 * base::kMiB;
  return options;
}

rocksdb::ColumnFamilyOptions blocks_options(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions options = family_options(cache);
  options.write_buffer_size = 8 * base::kMiB;
  options.enable_blob_files = true;
  options.blob_file_size = 64 * base::kMiB;
  options.enable_blob_garbage_collection = true;
  options.blob_garbage_collection_age_cutoff = 0.5;
  options.blob_garbage_collection_force_threshold = 0.5;
  return options;
}

class RocksDbStore final : public Store {
 public:
  RocksDbStore(std::string place, RocksDbFolder folder, const StoreOptions& options, bool syncs_each)
      : place_(std::move(place)), folder_(std::move(folder)), kept_(options.lifetime == Lifetime::kKeep) {
    limits_ = {.block_bytes = options.block_bytes,
               .largest_value_bytes = 4 * base::kMiB,
               .largest_batch_bytes = 16 * base::kMiB,
               .largest_batch_operations = 1024,
               .best_run_bytes = 256 * base::kKiB};
    write_.disableWAL = !kept_;
    write_.sync = kept_ && syncs_each;
    // Half of the time of a get was spent in checking them (8.2 us with, 4.9 without); checksum+ finds the same.
    read_.verify_checksums = kept_;
  }

  ~RocksDbStore() override {
    for (auto* family : families_) (void)database_->DestroyColumnFamilyHandle(family);
    database_.reset();  // before its folder is let go
  }

  Status open_database() {
    const auto cache = rocksdb::NewLRUCache(8 * base::kMiB);
    const std::vector<rocksdb::ColumnFamilyDescriptor> wanted = {
        {rocksdb::kDefaultColumnFamilyName, family_options(cache)},
        {"versions", family_options(cache)},
        {"blocks", blocks_options(cache)}};
    rocksdb::DBOptions options(database_options());
    options.avoid_flush_during_shutdown = !kept_;
    rocksdb::DB* database = nullptr;
    const auto status = rocksdb::DB::Open(options, folder_.path(), wanted, &families_, &database);
    if (!status.ok()) return fail(error_of(status, kWhat, describe()));
    database_.reset(database);
    return {};
  }

  std::string describe() const override { return base::path_uri("rocksdb", place_); }
  Limits limits() const override { return limits_; }
  Capabilities capabilities() const override {
    auto all = static_cast<Capabilities>(Capability::kVersions) | static_cast<Capabilities>(Capability::kCounters) |
               static_cast<Capabilities>(Capability::kLinearisable) |
               static_cast<Capabilities>(Capability::kAtomicBatch) | static_cast<Capabilities>(Capability::kSparse);
    if (kept_) all |= static_cast<Capabilities>(Capability::kDurable);
    return all;
  }

  Status get(std::span<Get> batch) override;
  Status put(std::span<Put> batch) override;
  Status erase(std::uint64_t first, std::uint64_t count) override;
  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override;
  Status sync() override;
  Result<StoreUsage> usage() override;
  Result<std::vector<BlockRun>> runs_from(std::uint64_t first) override;
  Result<std::vector<NamedCounter>> counters() override;

 private:
  rocksdb::ColumnFamilyHandle* counter_family() const { return families_[0]; }
  rocksdb::ColumnFamilyHandle* versions() const { return families_[1]; }
  rocksdb::ColumnFamilyHandle* blocks() const { return families_[2]; }
  [[nodiscard]] std::size_t count_of(std::size_t bytes) const { return bytes / limits_.block_bytes; }
  [[nodiscard]] Outcome take_block(Get& entry, std::size_t index, const rocksdb::Slice& value);
  [[nodiscard]] rocksdb::Status read_version(std::uint64_t block, Version& version);
  [[nodiscard]] rocksdb::Status put_one(Put& entry, rocksdb::WriteBatch& together) FARHEAP_REQUIRES(stripes_);

  std::string place_;
  RocksDbFolder folder_;
  Limits limits_;
  bool kept_;
  rocksdb::WriteOptions write_;
  rocksdb::ReadOptions read_;
  std::unique_ptr<rocksdb::DB> database_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  store::Stripes stripes_;  // around what reads a version before it writes
  base::Mutex counting_;    // held while a counter is read and written
  std::atomic<Version> next_version_{base::random_number() >> 1 | 1};
};

// ---- blocks

Outcome RocksDbStore::take_block(Get& entry, std::size_t index, const rocksdb::Slice& value) {
  Version version = 0;
  if (value.size() != sizeof version + limits_.block_bytes) return Outcome::kCorrupt;
  std::memcpy(&version, value.data(), sizeof version);
  if (entry.into.size() == limits_.block_bytes) entry.version = version;
  if (entry.known != 0 && entry.known == version) return Outcome::kSame;
  std::memcpy(entry.into.data() + index * limits_.block_bytes, value.data() + sizeof version, limits_.block_bytes);
  return Outcome::kOk;
}

Status RocksDbStore::get(std::span<Get> batch) {
  if (auto ok = store::check(batch, limits_, capabilities(), *this); !ok) return ok;
  std::size_t total = 0;
  for (const Get& entry : batch) total += count_of(entry.into.size());
  std::vector<Key> keys;
  keys.reserve(total);
  for (const Get& entry : batch) {
    for (std::size_t i = 0; i < count_of(entry.into.size()); ++i) keys.push_back(key_of(entry.block + i));
  }
  std::vector<rocksdb::Slice> slices;
  slices.reserve(total);
  for (const Key& key : keys) slices.push_back(slice_of(key));
  std::vector<rocksdb::PinnableSlice> values(total);
  std::vector<rocksdb::Status> statuses(total);
  database_->MultiGet(read_, blocks(), total, slices.data(), values.data(), statuses.data());
  std::string why;
  std::size_t at = 0;
  for (Get& entry : batch) {
    entry.outcome = Outcome::kOk, entry.version = 0;
    for (std::size_t i = 0; i < count_of(entry.into.size()); ++i, ++at) {
      if (entry.outcome != Outcome::kOk) continue;
      entry.outcome = outcome_of(statuses[at]);
      if (entry.outcome == Outcome::kOk) entry.outcome = take_block(entry, i, values[at]);
      if (store::is_error(entry.outcome) && why.empty() && !statuses[at].ok()) why = statuses[at].ToString();
    }
  }
  return with_remedy(store::summary(batch, *this, why));
}

rocksdb::Status RocksDbStore::read_version(std::uint64_t block, Version& version) {
  const Key key = key_of(block);
  rocksdb::PinnableSlice value;
  auto status = database_->Get(read_, versions(), slice_of(key), &value);
  if (status.IsNotFound()) return version = 0, rocksdb::Status::OK();
  if (status.ok() && value.size() != sizeof version) return rocksdb::Status::Corruption("a version of another length");
  if (status.ok()) std::memcpy(&version, value.data(), sizeof version);
  return status;
}

rocksdb::Status RocksDbStore::put_one(Put& entry, rocksdb::WriteBatch& together) {
  const std::size_t count = count_of(entry.from.size());
  if (entry.expected) {
    Version found = 0;
    if (auto status = read_version(entry.block, found); !status.ok()) return status;
    if (found != *entry.expected) {
      entry.outcome = Outcome::kConflict, entry.version = found;
      return rocksdb::Status::OK();
    }
  }
  const Version version = next_version_.fetch_add(1);
  entry.outcome = Outcome::kOk;
  entry.version = count == 1 ? version : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Key key = key_of(entry.block + i);
    const rocksdb::Slice name = slice_of(key), number = slice_of(version);
    const auto* const bytes = reinterpret_cast<const char*>(entry.from.data()) + i * limits_.block_bytes;
    const rocksdb::Slice value[] = {number, {bytes, limits_.block_bytes}};
    auto status = together.Put(blocks(), rocksdb::SliceParts(&name, 1), rocksdb::SliceParts(value, 2));
    if (status.ok()) status = together.Put(versions(), name, number);
    if (!status.ok()) return status;
  }
  return rocksdb::Status::OK();
}

Status RocksDbStore::put(std::span<Put> batch) {
  if (auto ok = store::check(batch, limits_, capabilities(), *this); !ok) return ok;
  std::uint64_t stripes = 0;
  for (const Put& entry : batch) stripes |= store::Stripes::of(entry.block, count_of(entry.from.size()));
  const store::Stripes::Guard guard(stripes_, stripes);
  rocksdb::WriteBatch together;
  rocksdb::Status status;
  for (Put& entry : batch) {
    if (status.ok()) status = put_one(entry, together);
  }
  if (status.ok()) status = database_->Write(write_, &together);
  if (status.ok()) return {};
  for (Put& entry : batch) entry.outcome = outcome_of(status), entry.version = 0;
  return with_remedy(store::summary(batch, *this, status.ToString()));
}

// A range that is deleted costs every later read a look: few blocks are deleted one by one.
Status RocksDbStore::erase(std::uint64_t first, std::uint64_t count) {
  constexpr std::uint64_t kFew = 64;
  if (count == 0) return {};
  const std::uint64_t last = count - 1 > ~std::uint64_t{0} - first ? ~std::uint64_t{0} : first + count - 1;
  const store::Stripes::Guard guard(stripes_, store::Stripes::of(first, last - first + 1));
  const Key begin = key_of(first), end = key_of(last);
  rocksdb::WriteBatch together;
  rocksdb::Status status;
  for (auto* const family : {versions(), blocks()}) {
    if (last - first >= kFew) {
      // The end of a range is not part of it, and the last number has none behind it.
      status = together.DeleteRange(family, slice_of(begin), slice_of(end));
      if (status.ok()) status = together.Delete(family, slice_of(end));
    } else {
      for (std::uint64_t i = 0; i <= last - first && status.ok(); ++i) {
        const Key key = key_of(first + i);
        status = together.Delete(family, slice_of(key));
      }
    }
    if (!status.ok()) break;
  }
  if (status.ok()) status = database_->Write(write_, &together);
  if (!status.ok()) return fail(error_of(status, "cannot erase blocks", describe()));
  return {};
}

// ---- everything else

Result<std::int64_t> RocksDbStore::add(std::string_view counter, std::int64_t delta) {
  const base::LockGuard lock(counting_);
  const std::string key = "c" + std::string(counter);
  std::uint64_t value = 0;
  rocksdb::PinnableSlice found;
  auto status = database_->Get(read_, counter_family(), key, &found);
  if (status.ok() && found.size() != sizeof value) status = rocksdb::Status::Corruption("a counter of another length");
  if (status.ok()) std::memcpy(&value, found.data(), sizeof value);
  if (status.IsNotFound()) status = rocksdb::Status::OK();
  value += static_cast<std::uint64_t>(delta);
  if (status.ok() && delta != 0) status = database_->Put(write_, counter_family(), key, slice_of(value));
  if (!status.ok()) return fail(error_of(status, "cannot count", describe()));
  return static_cast<std::int64_t>(value);
}

// A log that could not be synced may have lost what was in it. RocksDB takes nothing more then, and says so for ever.
Status RocksDbStore::sync() {
  if (!kept_ || write_.sync) return {};
  const auto status = database_->SyncWAL();
  if (status.ok()) return {};
  return store::cannot_sync_any_more(error_of(status, "cannot make it durable", describe()));
}

Result<StoreUsage> RocksDbStore::usage() {
  StoreUsage usage;
  const std::unique_ptr<rocksdb::Iterator> at(database_->NewIterator(read_, versions()));
  for (at->SeekToFirst(); at->Valid(); at->Next()) ++usage.blocks;
  if (!at->status().ok()) return fail(error_of(at->status(), "cannot look at the store", describe()));
  for (const auto& property : {rocksdb::DB::Properties::kTotalSstFilesSize, rocksdb::DB::Properties::kTotalBlobFileSize,
                               rocksdb::DB::Properties::kSizeAllMemTables}) {
    for (auto* const family : families_) {
      std::uint64_t bytes = 0;
      if (database_->GetIntProperty(family, property, &bytes)) usage.space_bytes += bytes;
    }
  }
  return usage;
}

Result<std::vector<BlockRun>> RocksDbStore::runs_from(std::uint64_t first) {
  constexpr std::size_t kMostRuns = 65536;
  std::vector<BlockRun> runs;
  const std::unique_ptr<rocksdb::Iterator> at(database_->NewIterator(read_, versions()));
  const Key begin = key_of(first);
  for (at->Seek(slice_of(begin)); at->Valid() && runs.size() < kMostRuns; at->Next()) {
    if (at->key().size() == begin.size()) store::add_block(runs, block_of(at->key()));
  }
  if (!at->status().ok()) return fail(error_of(at->status(), "cannot look at the store", describe()));
  return runs;
}

Result<std::vector<NamedCounter>> RocksDbStore::counters() {
  std::vector<NamedCounter> all;
  const std::unique_ptr<rocksdb::Iterator> at(database_->NewIterator(read_, counter_family()));
  for (at->Seek("c"); at->Valid() && at->key().starts_with("c"); at->Next()) {
    std::int64_t value = 0;
    if (at->value().size() != sizeof value) continue;
    std::memcpy(&value, at->value().data(), sizeof value);
    all.push_back({at->key().ToString().substr(1), value});
  }
  if (!at->status().ok()) return fail(error_of(at->status(), "cannot look at the store", describe()));
  return all;
}

}  // namespace

store::StoreResult open_rocksdb(const std::string& place, const store::Parameters& parameters,
                                const StoreOptions& options) {
  if (place.empty()) {
    return fail(ErrorCode::kInvalidArgument, kWhat, "rocksdb:", "the folder is missing", "write it as rocksdb:DIR");
  }
  const auto sync = parameters.word("sync", "each");
  if (sync != "each" && sync != "asked") {
    return parameters.wrong("sync", "it is not known", "write sync=each (every put is durable) or sync=asked");
  }
  const bool kept = options.lifetime == Lifetime::kKeep;
  auto folder = kept ? RocksDbFolder::open_kept(place, options.block_bytes)
                     : RocksDbFolder::make_scratch(place, options.block_bytes);
  if (!folder) return fail(std::move(folder.error()));
  auto opened = std::make_unique<RocksDbStore>(place, std::move(*folder), options, sync == "each");
  if (auto ok = opened->open_database(); !ok) return fail(std::move(ok.error()));
  return opened;
}

}  // namespace farheap::engines
