// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/rocksdb/folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <rocksdb/db.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/uri_path.hpp"
#include "engines/engine_table.hpp"
#include "os/named_file.hpp"
#include "store/named_place.hpp"

namespace farheap::engines {
namespace {

namespace fs = std::filesystem;

constexpr char kCannotOpenFolder[] = "cannot open the store";
constexpr char kMarker[] = "/FARHEAP";
constexpr char kKeptName[] = "farheap.rocksdb";
constexpr char kScratchName[] = ".farheap-rocksdb-";
constexpr std::uint64_t kFormat = 1;
// A process that has just been ended, or whose program has, still closes the database.
constexpr auto kPatience = std::chrono::seconds(3);

std::string uri_of(const std::string& path) { return base::path_uri("rocksdb", path); }

bool is_folder(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// Without it a database is not known to be ours: what is kept has to survive a power loss with it.
Status write_marker(const std::string& path, std::size_t block_bytes, bool is_kept) {
  const std::string marker = path + kMarker;
  const auto file = os::replace_file(marker, 0600, kCannotOpenFolder);
  if (!file) return fail(file.error());
  const auto text = fmt::format("farheap rocksdb {} {}\n", kFormat, block_bytes);
  bool done = write(*file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  done = done && (!is_kept || fsync(*file) == 0);
  const int why = errno;
  close(*file);
  if (!done) return fail(errno_error(why, kCannotOpenFolder, marker));
  if (!is_kept) return {};
  if (Status durable = os::make_names_durable(marker, kCannotOpenFolder); !durable) return durable;
  return os::make_names_durable(path, kCannotOpenFolder);
}

bool is_empty(const std::string& path) {
  std::error_code error;
  return fs::is_empty(path, error) && !error;
}

// An open and locked folder; -1 with errno: EWOULDBLOCK while another has the lock. No link is followed: what is in the
// folder may be removed.
int lock_folder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return -1;
  if (flock(folder, LOCK_EX | LOCK_NB) == 0) return folder;
  const int why = errno;
  close(folder);
  errno = why;
  return -1;
}

// Whoever had it before us may be removing it.
bool is_still_at(int folder, const std::string& path) {
  struct stat open_one{}, named{};
  return fstat(folder, &open_one) == 0 && stat(path.c_str(), &named) == 0 && open_one.st_ino == named.st_ino &&
         open_one.st_dev == named.st_dev;
}

bool is_in_use(const std::string& path) {
  const int lock = lock_folder(path);
  if (lock < 0) return errno == EWOULDBLOCK;
  close(lock);
  return false;
}

// Only what RocksDB knows and the marker: a file of another's stays, and its folder with it.
void remove_database(const std::string& path) {
  (void)rocksdb::DestroyDB(path, rocksdb::Options());
  unlink((path + kMarker).c_str());
  rmdir(path.c_str());
}

template <class Visit>
void each_folder_in(const std::string& place, Visit visit) {
  std::error_code error;
  for (fs::directory_iterator at(place, error), end; !error && at != end; at.increment(error)) {
    if (is_folder(at->path().string())) visit(at->path().string(), at->path().filename().string());
  }
}

void remove_what_killed_owners_left(const std::string& place) {
  each_folder_in(place, [](const std::string& path, const std::string& name) {
    if (!name.starts_with(kScratchName)) return;
    const int lock = lock_folder(path);
    if (lock < 0) return;
    struct stat left{};
    if (fstat(lock, &left) == 0 && left.st_uid == geteuid())
      remove_database(path);  // another user's is not ours to clear
    close(lock);
  });
}

Result<int> lock_patiently(const std::string& path) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  int lock = lock_folder(path);
  while (lock < 0 && errno == EWOULDBLOCK && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    lock = lock_folder(path);
  }
  if (lock >= 0) return lock;
  if (errno != EWOULDBLOCK) return fail(errno_error(errno, kCannotOpenFolder, uri_of(path)));
  return fail(ErrorCode::kConflict, kCannotOpenFolder, uri_of(path),
              "another process has it open, and RocksDB is for one at a time",
              "wait until it has ended, or use lmdb:, which several processes can share");
}

Status check_marker(const std::string& path, std::size_t block_bytes) {
  const auto marker = rocksdb_marker(path);
  if (!marker) {
    if (is_empty(path)) {
      return write_marker(path, block_bytes, true);
    }
    return fail(ErrorCode::kInvalidArgument, kCannotOpenFolder, uri_of(path), "the folder holds what is not Farheap's",
                "name a new or an empty folder");
  }
  if (marker->format > kFormat) {
    return fail(ErrorCode::kCorrupt, kCannotOpenFolder, uri_of(path), fmt::format("it has format {}", marker->format),
                "open it with the newer Farheap that made it");
  }
  if (marker->block_bytes != block_bytes) {
    return fail(ErrorCode::kInvalidArgument, kCannotOpenFolder, uri_of(path),
                fmt::format("it holds blocks of {} bytes, not of {}", marker->block_bytes, block_bytes),
                "open it with the block size it was made with");
  }
  return {};
}

}  // namespace

std::optional<RocksDbMarker> rocksdb_marker(const std::string& path) {
  std::ifstream in(path + kMarker);
  std::string farheap, rocksdb;
  RocksDbMarker marker;
  if (!(in >> farheap >> rocksdb >> marker.format >> marker.block_bytes)) return {};
  if (farheap != "farheap" || rocksdb != "rocksdb") return {};
  return marker;
}

// A new folder, an empty one and one of ours are the database; beside other things it gets a folder of its own.
std::string kept_rocksdb_path(const std::string& place) {
  const bool is_database =
      !is_folder(place) || rocksdb_marker(place) || access((place + "/CURRENT").c_str(), F_OK) == 0;
  return is_database ? place : place + "/" + kKeptName;
}

Result<RocksDbFolder> RocksDbFolder::open_kept(const std::string& place, std::size_t block_bytes) {
  const auto followed = os::follow_links(kept_rocksdb_path(place), kCannotOpenFolder);
  if (!followed) return fail(followed.error());
  const std::string& path = *followed;
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(errno_error(errno, kCannotOpenFolder, uri_of(path)));
  auto lock = lock_patiently(path);
  if (!lock) return fail(std::move(lock.error()));
  RocksDbFolder folder(path, *lock, false);
  if (auto trusted = os::check_trusted_file(*lock, path, kCannotOpenFolder); !trusted)
    return fail(std::move(trusted.error()));
  if (auto ours = check_marker(path, block_bytes); !ours) return fail(std::move(ours.error()));
  return folder;
}

Result<RocksDbFolder> RocksDbFolder::make_scratch(const std::string& place, std::size_t block_bytes) {
  if (const Status there = store::check_scratch_folder(place, uri_of(place)); !there) return fail(there.error());
  remove_what_killed_owners_left(place);
  for (;;) {
    std::string path = place + "/" + kScratchName + "XXXXXX";
    if (mkdtemp(path.data()) == nullptr) return fail(errno_error(errno, kCannotOpenFolder, uri_of(place)));
    const int lock = lock_folder(path);
    if (lock < 0 && errno != EWOULDBLOCK && errno != ENOENT)
      return fail(errno_error(errno, kCannotOpenFolder, uri_of(place)));
    if (lock < 0) continue;  // another took it for what a killed owner left
    RocksDbFolder folder(path, lock, true);
    if (!is_still_at(lock, path)) continue;
    if (Status made = write_marker(path, block_bytes, false); !made) return fail(std::move(made.error()));
    return folder;
  }
}

RocksDbFolder::RocksDbFolder(RocksDbFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)), is_scratch_(other.is_scratch_) {}

RocksDbFolder::~RocksDbFolder() {
  if (lock_ < 0) return;
  if (is_scratch_) remove_database(path_);
  close(lock_);
}

// ---- from outside

namespace {

StoreListing listing_of(const std::string& path, const RocksDbMarker& marker, bool is_scratch) {
  return {.uri = uri_of(path),
          .block_bytes = marker.block_bytes,
          .lifetime = is_scratch ? Lifetime::kScratch : Lifetime::kKeep,
          .in_use = is_scratch && is_in_use(path)};
}

Result<bool> is_there(const std::string& place, const store::Parameters&, const StoreOptions&) {
  return rocksdb_marker(kept_rocksdb_path(place)).has_value();
}

Result<std::vector<StoreListing>> list(const std::string& place, const store::Parameters&, const StoreOptions&) {
  if (!is_folder(place)) return fail(errno_error(ENOENT, "cannot look at kept stores", uri_of(place)));
  std::vector<StoreListing> all;
  if (const auto marker = rocksdb_marker(place)) all.push_back(listing_of(place, *marker, false));
  each_folder_in(place, [&](const std::string& path, const std::string& name) {
    const auto marker = rocksdb_marker(path);
    if (marker) all.push_back(listing_of(path, *marker, name.starts_with(kScratchName)));
  });
  return all;
}

Status remove(const std::string& place, const store::Parameters&, const StoreOptions&) {
  constexpr char kRemove[] = "cannot remove the store";
  const std::string path = kept_rocksdb_path(place);
  if (!rocksdb_marker(path)) {
    return fail(ErrorCode::kNotFound, kRemove, uri_of(path), "there is none", "`farheap store ls` lists them");
  }
  auto lock = lock_patiently(path);
  if (!lock) {
    lock.error().what = kRemove;
    return fail(std::move(lock.error()));
  }
  remove_database(path);
  const bool is_gone = !rocksdb_marker(path);
  close(*lock);
  if (is_gone) return {};
  return fail(ErrorCode::kPermission, kRemove, uri_of(path), "its files may not be removed");
}

}  // namespace

const store::Keeper kRocksDbKeeper{is_there, list, remove};

}  // namespace farheap::engines
