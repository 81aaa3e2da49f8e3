// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/heap_place.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "api/heap_lock.hpp"
#include "api/heap_store.hpp"
#include "base/full_disk.hpp"
#include "base/uri_path.hpp"
#include "base/without_secrets.hpp"
#include "os/named_file.hpp"
#include "os/own_descriptors.hpp"
#include "segment/superblock.hpp"
#include "store/bare_file.hpp"
#include "store/kept_file.hpp"

namespace farheap::api {
namespace {

constexpr char kCannotOpen[] = "cannot open the heap";
constexpr std::string_view kInFiles[] = {"file", "lmdb", "rocksdb"};
constexpr std::string_view kTable = ".versions";
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
        ErrorCode::kInvalidArgument, kCannotOpen, base::without_secrets(uri),
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
      return fail(ErrorCode::kInvalidArgument, kCannotOpen, base::without_secrets(uri) + "@",
                  "the name of the snapshot is missing", "write URI@SNAPSHOT, or the URI alone for the newest version");
    }
  }
  place.uri = uri;
  if (!is_in_files) return place;
  if (Status found = place.find_files(engine); !found) return fail(std::move(found.error()));
  return place;
}

Status HeapPlace::find_files(std::string_view engine) {
  std::string named = uri.substr(uri.find(':') + 1);
  named = base::unescape_path(named.substr(0, named.find('?')));
  if (named.empty()) {
    return fail(ErrorCode::kInvalidArgument, kCannotOpen, base::without_secrets(uri), "the name of the file is missing",
                "write it as file:/data/graph");
  }
  auto followed = os::follow_links(named, kCannotOpen);
  if (!followed) return fail(std::move(followed.error()));
  const bool is_link = *followed != named;
  file = std::move(*followed);
  if (engine != "rocksdb" && is_folder(file)) {
    const std::string inside = file + "/" + (engine == "file" ? store::kNameInFolder : store::kLmdbNameInFolder);
    followed = os::follow_links(inside, kCannotOpen);
    if (!followed) return fail(std::move(followed.error()));
    if (is_link || *followed != inside) uri = uri_with(*followed);
    file = std::move(*followed);
  } else if (is_link) {
    uri = uri_with(file);
  }
  if (engine == "file") others = {file + std::string(kTable)};
  if (engine == "lmdb") others = {file + "-lock"};
  std::error_code unknown;
  const auto whole = std::filesystem::weakly_canonical(file, unknown);
  locked = unknown ? file : whole.string();
  return {};
}

Result<bool> HeapPlace::is_there() const {
  if (is_on_server()) return is_heap_store_there(*this);
  return exists(file);
}

Status HeapPlace::check_is_there() const {
  auto there = is_there();
  if (!there) return fail(std::move(there.error()));
  if (*there) return {};
  if (is_file_store() && !is_half_removed()) {
    if (Status lost = store::check_for_lost_file(file, kCannotOpen); !lost) return lost;
  }
  return fail(ErrorCode::kNotFound, kCannotOpen, base::without_secrets(uri),
              is_on_server() ? "there is nothing of that name" : file + " does not exist",
              is_on_server() ? "a program makes one when it creates its heap; `farheap store ls` lists what is there"
                             : "a program makes one when it creates its heap; `farheap store ls` with the URI of a "
                               "folder lists what is in it");
}

bool HeapPlace::is_empty_file() const {
  struct stat status{};
  return lstat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0;
}

// There is a file and no store. The bytes of a heap in a plain file may all be there while the table of its blocks is
// not: it was not copied with it, or was removed.
Status HeapPlace::why_no_store() const {
  const std::string shown = base::without_secrets(uri);
  const std::string table = file + std::string(kTable);
  if (is_empty_file()) {
    return fail(ErrorCode::kNotFound, kCannotOpen, shown, file + " is empty: there is no heap in it",
                "a program makes one there when it creates its heap");
  }
  if (uri.starts_with("file:")) {
    const auto bare = store::open_bare_file(file);
    if (!bare) return fail(bare.error());
    const auto found = segment::read_superblock(**bare);
    if (found && !found->content.is_unfinished()) {
      const auto table_state = exists(table) ? " does not tell of its blocks" : ", the table of its blocks, is missing";
      return fail(ErrorCode::kCorrupt, kCannotOpen, shown,
                  fmt::format("{}{}; the heap itself is in {}, with its last commit ({})", table, table_state, file,
                              found->content.commit),
                  fmt::format("bring the table back from where the file came from, or have it made anew: `farheap heap "
                              "check --repair {}`",
                              shown));
    }
  }
  const bool lacks_table = !others.empty() && others.front() == table && !exists(table);
  return fail(ErrorCode::kInvalidArgument, kCannotOpen, shown,
              lacks_table ? fmt::format("{} has no {} beside it: it is no heap, or was copied without it", file, table)
                          : file + " is there, and is no heap",
              "name a heap; `farheap store ls` with a folder's URI lists what is in it");
}

Status HeapPlace::check_is_heap(Use use) const {
  if (Status there = check_is_there(); !there) return there;
  if (is_on_server()) return {};
  if (use == Use::kWrite && !is_folder(file)) {
    const auto own = os::open_own_file(file, 0, kCannotOpen);
    if (!own) return fail(own.error());
    close(own->file);
  }
  auto is_store = is_heap_store_there(*this);
  if (!is_store) return fail(std::move(is_store.error()));
  return *is_store ? Status{} : why_no_store();
}

// A forked child leaves the heap to its parent, or opens it for itself.
Result<std::unique_ptr<Store>> HeapPlace::open(HeapLock& lock) const {
  const os::ForUsAlone for_us_alone;
  auto store = open_heap_store(*this, lock.is_for_reading());
  if (!store) return store;
  return lock.guard(std::move(*store));
}

std::string HeapPlace::uri_with(const std::string& other_file) const {
  const std::size_t query = uri.find('?');
  return uri.substr(0, uri.find(':') + 1) + base::escape_path(other_file) +
         (query == uri.npos ? "" : uri.substr(query));
}

namespace {

// umask() tells it only to who changes it, for all threads.
mode_t this_umask() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    constexpr std::string_view kName = "Umask:";
    if (line.starts_with(kName)) return static_cast<mode_t>(std::strtoul(line.c_str() + kName.size(), nullptr, 8));
  }
  return 077;
}

}  // namespace

Status HeapPlace::set_mode(unsigned mode) const {
  if (mode == 0600 || is_on_server() || others.empty() || !others.front().ends_with(".versions")) return {};
  const mode_t wanted = ((mode & 0777) & ~this_umask()) | 0600;
  for (const std::string& path : {file, others.front(), lock_file()}) {
    const int opened = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const bool set = opened >= 0 && fchmod(opened, wanted) == 0;
    const int why = errno;
    if (opened >= 0) close(opened);
    if (!set) return fail(errno_error(why, "cannot let others read the heap", path));
  }
  return {};
}

Status HeapPlace::check_is_writable() const {
  if (is_on_server() || faccessat(AT_FDCWD, file.c_str(), W_OK, AT_EACCESS) == 0 || errno == ENOENT) return {};
  return fail(errno_error(errno, "cannot open the heap for writing", file,
                          "open it to be read, if you may read it; only its owner and root write it"));
}

Error HeapPlace::no_room(Error error, const char* what, std::string_view stands, std::string_view again) const {
  error.what = what;
  error.why = fmt::format("there is no room in its store ({}); {}", error.why, stands);
  error.subject = base::without_secrets(uri);
  error.remedy = is_on_server() ? fmt::format("make room, and {}", again)
                                : base::make_room(again, std::filesystem::path(locked).parent_path().string());
  return error;
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
  constexpr char kCannot[] = "cannot remove the heap";
  if (Status durable = os::make_names_durable(file, kCannot); !durable) return durable;
  for (const std::string& path : others) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return failed(path);
  }
  std::error_code failure;
  std::filesystem::remove_all(leaving_file(), failure);  // RocksDB keeps its blocks in a folder
  if (!failure) return os::make_names_durable(file, kCannot);
  errno = failure.value();
  return failed(leaving_file());
}

}  // namespace farheap::api
