// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/heap_place.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "api/heap_lock.hpp"
#include "api/heap_store.hpp"
#include "base/without_secrets.hpp"
#include "os/own_descriptors.hpp"
#include "segment/superblock.hpp"

namespace farheap::api {
namespace {

constexpr char kWhat[] = "cannot open the heap";
constexpr std::string_view kInFiles[] = {"file", "lmdb", "rocksdb"};
constexpr std::string_view kTwoStores = "pages=";
constexpr std::string_view kOnServers[] = {"redis", "rediss",    "redis+cluster", "rediss+cluster", "bigtable",
                                           "etcd",  "datastore", "spanner",       kTwoStores};

// Without its decorators: an engine may have a '+' in its name. Empty if there is none.
std::string_view engine_of(std::string_view uri) {
  if (uri.starts_with(kTwoStores)) return kTwoStores;
  const std::size_t colon = uri.find(':');
  if (colon == uri.npos) return {};
  const std::string_view schemes = uri.substr(0, colon);
  for (const std::string_view engine : kOnServers) {
    if (schemes == engine || (schemes.ends_with(engine) && schemes[schemes.size() - engine.size() - 1] == '+')) {
      return engine;
    }
  }
  return schemes.substr(schemes.rfind('+') + 1);
}

bool exists(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0;
}

bool is_folder(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

Result<HeapPlace> HeapPlace::parse(std::string_view uri) {
  HeapPlace place;
  const std::string_view engine = engine_of(uri);
  const bool is_in_files = std::ranges::count(kInFiles, engine) != 0;
  if (!is_in_files && std::ranges::count(kOnServers, engine) == 0) {
    return fail(
        ErrorCode::kInvalidArgument, kWhat, base::without_secrets(uri),
        engine.empty() ? "this is no URI of a store" : fmt::format("no heap can live in {}:", engine),
        "write file:FILE, lmdb:FILE or redis://HOST/0/NAME, with decorators before it: checksum+file:/data/graph");
  }
  // A '@' before the path of a server is its user's.
  const std::size_t at = uri.rfind('@');
  const std::size_t path = is_in_files ? uri.find(':') : uri.find('/', uri.rfind("//") + 2);
  if (at != uri.npos && path != uri.npos && at > path && uri.find('/', at) == uri.npos) {
    place.snapshot = uri.substr(at + 1);
    uri = uri.substr(0, at);
    if (place.snapshot.empty()) {
      return fail(ErrorCode::kInvalidArgument, kWhat, base::without_secrets(uri) + "@",
                  "the name of the snapshot is missing", "write URI@SNAPSHOT, or the URI alone for the newest version");
    }
  }
  place.uri = uri;
  if (!is_in_files) return place;
  std::string file(uri.substr(uri.find(':') + 1));
  if (const std::size_t query = file.find('?'); query != file.npos) file.resize(query);
  if (file.empty()) {
    return fail(ErrorCode::kInvalidArgument, kWhat, base::without_secrets(uri), "the name of the file is missing",
                "write it as file:/data/graph");
  }
  if (engine == "file") {
    place.file = is_folder(file) ? file + "/farheap.store" : file;
    place.others = {place.file + ".versions"};
  } else if (engine == "lmdb") {
    place.file = is_folder(file) ? file + "/farheap.mdb" : file;
    place.others = {place.file + "-lock"};
  } else {
    place.file = file;
  }
  std::error_code unknown;
  const auto whole = std::filesystem::weakly_canonical(place.file, unknown);
  place.locked = unknown ? place.file : whole.string();
  return place;
}

Result<bool> HeapPlace::is_there() const {
  if (is_on_server()) return is_heap_store_there(*this);
  return exists(file);
}

Status HeapPlace::check_is_there() const {
  auto there = is_there();
  if (!there) return fail(std::move(there.error()));
  if (*there) return {};
  return fail(ErrorCode::kNotFound, kWhat, base::without_secrets(uri),
              is_on_server() ? "there is nothing of that name" : file + " does not exist",
              "create() makes one, and open_or_create() where there is none");
}

// A forked child leaves the heap to its parent, or opens it for itself.
Result<std::unique_ptr<Store>> HeapPlace::open(HeapLock& lock) const {
  const os::ForUsAlone for_us_alone;
  auto store = open_heap_store(*this);
  if (!store) return store;
  return lock.guard(std::move(*store));
}

std::string HeapPlace::uri_with(const std::string& other_file) const {
  const std::size_t query = uri.find('?');
  return uri.substr(0, uri.find(':') + 1) + other_file + (query == uri.npos ? "" : uri.substr(query));
}

bool HeapPlace::is_half_removed() const { return !is_on_server() && exists(leaving_file()); }

// On a server the superblocks go first: without them what else is there belongs to nobody.
Status HeapPlace::remove_from_server(HeapLock& lock) const {
  {
    auto store = open(lock);
    if (!store) return fail(std::move(store.error()));
    if (Status erased = (*store)->erase(0, segment::kSuperblocks); !erased) return erased;
  }
  return remove_heap_store(*this);
}

// The file of the blocks loses its name first and goes last: with it, what else is there belongs to nobody.
Status HeapPlace::remove(HeapLock& lock) const {
  if (is_on_server()) return remove_from_server(lock);
  const auto failed = [](const std::string& path) {
    return fail(errno_error(errno, "cannot remove the heap", path, "its folder has to be writable"));
  };
  if (!is_half_removed() && rename(file.c_str(), leaving_file().c_str()) != 0) return failed(file);
  std::vector<std::string> rest = others;
  for (const std::string& path : rest) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return failed(path);
  }
  std::error_code failure;
  std::filesystem::remove_all(leaving_file(), failure);  // RocksDB keeps its blocks in a folder
  if (!failure) return {};
  errno = failure.value();
  return failed(leaving_file());
}

}  // namespace farheap::api
