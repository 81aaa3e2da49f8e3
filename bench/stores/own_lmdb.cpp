// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LMDB without syncs, 64 values of eight pages in a transaction; a value of one page would take two of LMDB's. Pages
// are appended in order where they are new (MDB_APPEND is LMDB's fastest way to write).
#include <lmdb.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "stores/own.hpp"

namespace farheap::bench {
namespace {

constexpr std::size_t kPagesOfAValue = 8;

class Lmdb final : public OwnClient {
 public:
  Lmdb(MDB_env* env, std::string folder) : env_(env), folder_(std::move(folder)) {}
  ~Lmdb() override {
    mdb_env_close(env_);
    unlink((folder_ + "/data.mdb").c_str());
    unlink((folder_ + "/lock.mdb").c_str());
    rmdir(folder_.c_str());
  }
  std::size_t batch() const override { return 64 * kPagesOfAValue; }

  bool open() {
    MDB_txn* txn = nullptr;
    int error = mdb_txn_begin(env_, nullptr, 0, &txn);
    if (error == 0) error = mdb_dbi_open(txn, nullptr, MDB_INTEGERKEY, &pages_);
    return said(error == 0 ? mdb_txn_commit(txn) : error);
  }

  bool write(std::uint64_t first, std::size_t count, const char* bytes) override {
    MDB_txn* txn = nullptr;
    if (!said(mdb_txn_begin(env_, nullptr, 0, &txn))) return false;
    for (std::size_t i = 0; i < count; i += kPagesOfAValue) {
      std::uint64_t key = (first + i) / kPagesOfAValue;
      MDB_val name{sizeof key, &key};
      MDB_val value{kPagesOfAValue * kPage - 16, nullptr};
      if (!said(mdb_put(txn, pages_, &name, &value, MDB_RESERVE))) return mdb_txn_abort(txn), false;
      std::memcpy(value.mv_data, bytes + i * kPage, value.mv_size);
    }
    return said(mdb_txn_commit(txn));
  }

  bool read(std::uint64_t first, std::size_t count, char* into) override {
    MDB_txn* txn = nullptr;
    if (!said(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn))) return false;
    bool whole = true;
    for (std::size_t i = 0; i < count && whole;) {
      std::uint64_t key = (first + i) / kPagesOfAValue;
      const std::size_t skip = (first + i) % kPagesOfAValue;
      const std::size_t here = std::min(count - i, kPagesOfAValue - skip);
      MDB_val name{sizeof key, &key};
      MDB_val value;
      whole = said(mdb_get(txn, pages_, &name, &value));
      const std::size_t bytes = std::min(here * kPage, whole ? value.mv_size - skip * kPage : 0);
      if (whole) std::memcpy(into + i * kPage, static_cast<const char*>(value.mv_data) + skip * kPage, bytes);
      i += here;
    }
    mdb_txn_abort(txn);
    return whole;
  }

  bool put_byte(std::uint64_t page, std::size_t, const char* bytes) override {
    MDB_txn* txn = nullptr;
    if (!said(mdb_txn_begin(env_, nullptr, 0, &txn))) return false;
    MDB_val name{sizeof page, &page};
    MDB_val value{kPage, const_cast<char*>(bytes)};
    if (!said(mdb_put(txn, pages_, &name, &value, 0))) return mdb_txn_abort(txn), false;
    return said(mdb_txn_commit(txn));
  }
  bool get_byte(std::uint64_t page, std::size_t offset, char* into) override {
    MDB_txn* txn = nullptr;
    if (!said(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn))) return false;
    MDB_val name{sizeof page, &page};
    MDB_val value;
    const bool is_there = said(mdb_get(txn, pages_, &name, &value)) && value.mv_size > offset;
    if (is_there) into[offset] = static_cast<const char*>(value.mv_data)[offset];
    mdb_txn_abort(txn);
    return is_there;
  }

 private:
  static bool said(int error) {
    if (error != 0) std::fprintf(stderr, "stores_own: lmdb: %s\n", mdb_strerror(error));
    return error == 0;
  }
  MDB_env* env_;
  std::string folder_;
  MDB_dbi pages_ = 0;
};

}  // namespace

std::unique_ptr<OwnClient> own_lmdb(const std::string& place) {
  std::string folder = place + "/own-lmdb-XXXXXX";
  MDB_env* env = nullptr;
  int error = mkdtemp(folder.data()) == nullptr ? errno : mdb_env_create(&env);
  if (error == 0) error = mdb_env_set_mapsize(env, std::size_t{1} << 36);
  if (error == 0) error = mdb_env_open(env, folder.c_str(), MDB_NOSYNC | MDB_NORDAHEAD, 0600);
  if (error != 0) {
    std::fprintf(stderr, "stores_own: lmdb: %s\n", mdb_strerror(error));
    return nullptr;
  }
  auto client = std::make_unique<Lmdb>(env, std::move(folder));
  return client->open() ? std::move(client) : nullptr;
}

}  // namespace farheap::bench
