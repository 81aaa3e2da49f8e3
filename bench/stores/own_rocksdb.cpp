// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RocksDB in this process, without its log and uncompressed: MultiGet and WriteBatch of 64 pages.
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "stores/own.hpp"

namespace farheap::bench {
namespace {

std::string key_of(std::uint64_t number) {  // in order
  std::string key(8, '\0');
  for (int i = 0; i < 8; ++i) key[static_cast<std::size_t>(i)] = static_cast<char>(number >> (56 - 8 * i));
  return key;
}

class RocksDb final : public OwnClient {
 public:
  RocksDb(rocksdb::DB* db, std::string folder) : db_(db), folder_(std::move(folder)) {}
  ~RocksDb() override {
    db_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::size_t batch() const override { return 64; }

  bool write(std::uint64_t first, std::size_t count, const char* bytes) override {
    rocksdb::WriteBatch batch;
    for (std::size_t i = 0; i < count; ++i) {
      (void)batch.Put(key_of(first + i), rocksdb::Slice(bytes + i * kPage, kPage));
    }
    rocksdb::WriteOptions how;
    how.disableWAL = true;
    return said(db_->Write(how, &batch));
  }

  bool read(std::uint64_t first, std::size_t count, char* into) override {
    std::vector<std::string> names;
    names.reserve(count);
    for (std::size_t i = 0; i < count; ++i) names.push_back(key_of(first + i));
    const std::vector<rocksdb::Slice> keys(names.begin(), names.end());
    std::vector<rocksdb::PinnableSlice> values(count);
    std::vector<rocksdb::Status> outcomes(count);
    db_->MultiGet(rocksdb::ReadOptions(), db_->DefaultColumnFamily(), count, keys.data(), values.data(),
                  outcomes.data(), true);
    for (std::size_t i = 0; i < count; ++i) {
      if (!said(outcomes[i]) || values[i].size() != kPage) return false;
      std::memcpy(into + i * kPage, values[i].data(), kPage);
    }
    return true;
  }

 private:
  static bool said(const rocksdb::Status& status) {
    if (!status.ok()) std::fprintf(stderr, "stores_own: rocksdb: %s\n", status.ToString().c_str());
    return status.ok();
  }
  std::unique_ptr<rocksdb::DB> db_;
  std::string folder_;
};

}  // namespace

std::unique_ptr<OwnClient> own_rocksdb(const std::string& place) {
  std::string folder = place + "/own-rocksdb-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return std::perror("stores_own: rocksdb"), nullptr;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  rocksdb::DB* db = nullptr;
  const auto status = rocksdb::DB::Open(options, folder, &db);
  if (status.ok()) return std::make_unique<RocksDb>(db, std::move(folder));
  std::fprintf(stderr, "stores_own: rocksdb: %s\n", status.ToString().c_str());
  return nullptr;
}

}  // namespace farheap::bench
