// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kept stores of lmdb:, from outside. A file is one if it is an LMDB database with our "meta" in it; of a folder,
// DIR/farheap.mdb is the one that lmdb:DIR opens. It is looked at without LMDB's lock file, which would be made.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/units.hpp"
#include "base/uri_path.hpp"
#include "os/named_file.hpp"
#include "store/kept_file.hpp"
#include "store/kinds.hpp"
#include "store/lmdb_environment.hpp"

namespace farheap::store {
namespace {

constexpr char kCannotLook[] = "cannot look at the store";

namespace fs = std::filesystem;

Result<std::string> file_of(const std::string& place) { return kept_file_of(place, kCannotLook, kLmdbNameInFolder); }

// Of a first page of LMDB: other files are not given to it.
bool looks_like_lmdb(const std::string& file) {
  constexpr std::size_t kMagicAt = 16;
  constexpr std::uint32_t kMagic = 0xBEEFC0DE;
  std::uint32_t magic = 0;
  const auto opened = os::open_file_to_read(file, kCannotLook);
  if (!opened) return false;
  const bool whole = pread(*opened, &magic, sizeof magic, kMagicAt) == sizeof magic;
  close(*opened);
  return whole && magic == kMagic;
}

struct CloseLooked {
  void operator()(MDB_env* env) const { mdb_env_close(env); }
};
struct AbortLooked {
  void operator()(MDB_txn* txn) const { mdb_txn_abort(txn); }
};

int read_block_bytes(const std::string& file, std::uint64_t& block_bytes) {
  struct stat status{};
  if (stat(file.c_str(), &status) != 0) return errno;
  MDB_env* made = nullptr;
  if (const int error = mdb_env_create(&made)) return error;
  const std::unique_ptr<MDB_env, CloseLooked> env(made);
  int error = mdb_env_set_maxdbs(made, 3);
  // As it says itself, it would be mapped with 1 TiB, which a process may not have. Nobody makes a file longer by 1 GiB
  // while its first page is read.
  const auto mapped = base::round_up(static_cast<std::uint64_t>(status.st_size), base::kPageBytes) + base::kGiB;
  if (error == 0) error = mdb_env_set_mapsize(made, mapped);
  if (error == 0) error = mdb_env_open(made, file.c_str(), MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS, 0);
  MDB_txn* begun = nullptr;
  if (error == 0) error = mdb_txn_begin(made, nullptr, MDB_RDONLY, &begun);
  const std::unique_ptr<MDB_txn, AbortLooked> txn(begun);
  MDB_dbi meta = 0;
  if (error == 0) error = mdb_dbi_open(begun, "meta", 0, &meta);
  std::string name = "block_bytes";
  MDB_val key{name.size(), name.data()};
  MDB_val value{0, nullptr};
  if (error == 0) error = mdb_get(begun, meta, &key, &value);
  if (error == 0 && value.mv_size != sizeof block_bytes) error = MDB_NOTFOUND;
  if (error == 0) std::memcpy(&block_bytes, value.mv_data, sizeof block_bytes);
  return error;
}

// kNotFound: nothing there; kCorrupt: something else.
Result<std::size_t> look(const std::string& file) {
  const auto other = [&] {
    return fail(ErrorCode::kCorrupt, kCannotLook, "lmdb:" + file, "it is not a store of Farheap");
  };
  if (access(file.c_str(), R_OK) != 0) return fail(errno_error(errno, kCannotLook, "lmdb:" + file));
  if (!looks_like_lmdb(file)) return other();
  std::uint64_t block_bytes = 0;
  const int error = read_block_bytes(file, block_bytes);
  if (error == MDB_NOTFOUND || error == MDB_INVALID || error == MDB_INCOMPATIBLE) return other();
  if (error != 0) return fail(lmdb_error(error, kCannotLook, "lmdb:" + file));
  return static_cast<std::size_t>(block_bytes);
}

Result<bool> is_there(const std::string& place, const Parameters&, const StoreOptions&) {
  const auto file = file_of(place);
  if (!file) return fail(file.error());
  const auto found = look(*file);
  if (found) return true;
  const auto code = found.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kCorrupt) return false;
  return fail(found.error());
}

Result<std::vector<StoreListing>> list(const std::string& place, const Parameters&, const StoreOptions&) {
  std::vector<StoreListing> all;
  const auto consider = [&](const std::string& file) {
    if (const auto block_bytes = look(file))
      all.push_back({.uri = base::path_uri("lmdb", file), .block_bytes = *block_bytes});
  };
  if (!is_folder(place)) {
    if (access(place.c_str(), F_OK) != 0) return fail(errno_error(errno, "cannot look for stores", "lmdb:" + place));
    consider(place);
    return all;
  }
  std::error_code why;
  for (const auto& entry : fs::directory_iterator(place, why)) {
    if (entry.is_regular_file(why)) consider(entry.path().string());
  }
  if (why) return fail(errno_error(why.value(), "cannot look for stores", "lmdb:" + place));
  std::ranges::sort(all, {}, &StoreListing::uri);
  return all;
}

Status remove(const std::string& place, const Parameters&, const StoreOptions&) {
  const auto file = file_of(place);
  if (!file) return fail(file.error());
  if (const auto found = look(*file); !found) return fail(found.error());
  for (const auto& path : {*file, *file + "-lock"}) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      return fail(errno_error(errno, "cannot remove the store", path, "its folder has to be writable"));
    }
  }
  return os::make_names_durable(*file, "cannot remove the store");
}

}  // namespace

const Keeper kLmdbKeeper{.is_there = is_there, .list = list, .remove = remove};

}  // namespace farheap::store
