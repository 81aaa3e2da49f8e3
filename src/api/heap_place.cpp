// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/heap_place.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "api/heap_store.hpp"
#include "base/without_secrets.hpp"

namespace farheap::api {
namespace {

constexpr char kWhat[] = "cannot open the heap";

constexpr std::uint64_t kWriterByte = std::uint64_t{1} << 40;
constexpr std::uint64_t kOpenByte = kWriterByte + 1;
constexpr std::uint64_t kLeases = std::uint64_t{1} << 41;

struct flock on_bytes(std::uint64_t first, std::uint64_t count, short how) {
  struct flock range{};
  range.l_type = how;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(first);
  range.l_len = static_cast<off_t>(count);
  return range;
}

bool exists(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0;
}

bool is_folder(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::string text_of(int file) {
  char text[512];
  const ssize_t bytes = pread(file, text, sizeof text, 0);
  return bytes > 0 ? std::string(text, static_cast<std::size_t>(bytes)) : std::string();
}

void write_holder(int file) {
  char host[64] = {};
  gethostname(host, sizeof host - 1);
  const std::string text = fmt::format("'{}' (process {} on {}) since {:%Y-%m-%d %H:%M:%S} UTC",
                                       program_invocation_short_name, getpid(), host, fmt::gmtime(std::time(nullptr)));
  // For people only: that it could not be written changes nothing.
  if (ftruncate(file, 0) != 0 || pwrite(file, text.data(), text.size(), 0) < 0) return;
}

}  // namespace

Result<HeapPlace> HeapPlace::parse(std::string_view uri) {
  HeapPlace place;
  const std::size_t colon = uri.find(':');
  std::string_view engine = uri.substr(0, colon);
  if (const std::size_t plus = engine.rfind('+'); plus != engine.npos) engine.remove_prefix(plus + 1);
  if (colon == uri.npos || (engine != "file" && engine != "lmdb")) {
    return fail(ErrorCode::kInvalidArgument, kWhat, base::without_secrets(uri),
                colon == uri.npos ? "this is no URI of a store" : fmt::format("no heap can live in {}:", engine),
                "write file:FILE or lmdb:FILE, with decorators before it: checksum+file:/data/graph");
  }
  const std::size_t at = uri.rfind('@');
  if (at != uri.npos && at > colon && uri.find('/', at) == uri.npos) {
    place.snapshot = uri.substr(at + 1);
    uri = uri.substr(0, at);
    if (place.snapshot.empty()) {
      return fail(ErrorCode::kInvalidArgument, kWhat, base::without_secrets(uri) + "@",
                  "the name of the snapshot is missing", "write URI@SNAPSHOT, or the URI alone for the newest version");
    }
  }
  place.uri = uri;
  std::string file(uri.substr(colon + 1));
  if (const std::size_t query = file.find('?'); query != file.npos) file.resize(query);
  if (file.empty()) {
    return fail(ErrorCode::kInvalidArgument, kWhat, base::without_secrets(uri), "the name of the file is missing",
                "write it as file:/data/graph");
  }
  if (engine == "file") {
    place.file = is_folder(file) ? file + "/farheap.store" : file;
    place.others = {place.file + ".versions"};
  } else {
    place.file = is_folder(file) ? file + "/farheap.mdb" : file;
    place.others = {place.file + "-lock"};
  }
  std::error_code unknown;
  const auto whole = std::filesystem::weakly_canonical(place.file, unknown);
  place.locked = unknown ? place.file : whole.string();
  return place;
}

bool HeapPlace::is_there() const { return exists(file); }

tl::unexpected<Error> HeapPlace::not_there() const {
  return fail(ErrorCode::kNotFound, kWhat, uri, file + " does not exist",
              "create() makes one, and open_or_create() where there is none");
}

Result<std::unique_ptr<Store>> HeapPlace::open() const { return open_heap_store(*this); }

std::string HeapPlace::uri_with(const std::string& other_file) const {
  const std::size_t query = uri.find('?');
  return uri.substr(0, uri.find(':') + 1) + other_file + (query == uri.npos ? "" : uri.substr(query));
}

bool HeapPlace::is_half_removed() const { return exists(leaving_file()); }

// The file of the blocks loses its name first and goes last: with it, what else is there belongs to nobody.
Status HeapPlace::remove_files() const {
  const auto failed = [](const std::string& path) {
    return fail(errno_error(errno, "cannot remove the heap", path, "its folder has to be writable"));
  };
  if (!is_half_removed() && rename(file.c_str(), leaving_file().c_str()) != 0) return failed(file);
  std::vector<std::string> rest = others;
  rest.push_back(leaving_file());
  for (const std::string& path : rest) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return failed(path);
  }
  return {};
}

namespace {

// Whoever removes a heap removes its lock file, too: a lock on what has no name any more keeps nobody out.
bool still_has_name(int file, const std::string& path) {
  struct stat mine{}, named{};
  return fstat(file, &mine) == 0 && stat(path.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
         mine.st_dev == named.st_dev;
}

}  // namespace

Result<bool> HeapLock::lock(std::uint64_t byte, short how) {
  struct flock range = on_bytes(byte, 1, how);
  while (fcntl(file_, F_OFD_SETLK, &range) != 0) {
    if (errno == EAGAIN || errno == EACCES) return false;
    if (errno != EINTR) return fail(errno_error(errno, kWhat, path_, "a lock is kept there"));
  }
  return true;
}

Result<HeapLock> HeapLock::take(const HeapPlace& place, For what) {
  const std::string path = place.lock_file();
  const bool reads = what == For::kReading;
  for (;;) {
    int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 && reads && (errno == EACCES || errno == EROFS)) file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      return fail(
          errno_error(errno, kWhat, path, "its folder has to be there, and to be writable: a lock is kept in it"));
    }
    HeapLock taken(file, path);
    if (!reads) {
      auto writes = taken.lock(kWriterByte, F_WRLCK);
      if (!writes) return fail(std::move(writes.error()));
      if (!*writes) {
        const std::string holder = text_of(file);
        return fail(ErrorCode::kConflict, kWhat, place.uri,
                    "it is open for writing by " + (holder.empty() ? "another process" : holder),
                    "close it there first");
      }
    }
    auto opens = taken.lock(kOpenByte, what == For::kAlone ? F_WRLCK : F_RDLCK);
    if (!opens) return fail(std::move(opens.error()));
    if (!*opens) {
      const bool alone = what == For::kAlone;
      return fail(ErrorCode::kConflict, kWhat, place.uri,
                  alone ? "it is open for reading in another process" : "it is being created or removed",
                  fmt::format("{}; `fuser {}` names the process", alone ? "close it there first" : "wait", path));
    }
    if (!still_has_name(file, path)) continue;
    taken.names_holder_ = !reads;
    if (!reads) write_holder(file);
    return taken;
  }
}

Result<bool> HeapLock::has_writer(const HeapPlace& place) {
  const std::string path = place.lock_file();
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    if (errno == ENOENT) return false;
    return fail(errno_error(errno, "cannot ask who has the heap open", path));
  }
  struct flock range = on_bytes(kWriterByte, 1, F_WRLCK);
  const bool asked = fcntl(file, F_OFD_GETLK, &range) == 0;
  const int why = errno;
  close(file);
  if (!asked) return fail(errno_error(why, "cannot ask who has the heap open", path));
  return range.l_type != F_UNLCK;
}

Status HeapLock::let_readers_in() {
  auto shared = lock(kOpenByte, F_RDLCK);
  return shared ? Status{} : fail(std::move(shared.error()));
}

Status HeapLock::take(std::uint64_t commit) {
  if (reads_ == commit) return {};
  auto taken = lock(kLeases + commit, F_RDLCK);
  if (!taken) return fail(std::move(taken.error()));
  if (!*taken) return fail(ErrorCode::kConflict, kWhat, path_, "its bytes are locked by somebody else");
  if (const auto before = std::exchange(reads_, commit); before != kNobody) {
    if (auto left = lock(kLeases + before, F_UNLCK); !left) return fail(std::move(left.error()));
  }
  return {};
}

// The kernel names one of the locks, not the lowest: so what lies below it is asked for until there is none.
Result<std::uint64_t> HeapLock::oldest() {
  std::uint64_t oldest = kNobody;
  for (std::uint64_t bytes = 0; oldest != 0; bytes = oldest) {  // 0: to the end
    struct flock range = on_bytes(kLeases, bytes, F_WRLCK);
    if (fcntl(file_, F_OFD_GETLK, &range) != 0) return fail(errno_error(errno, "cannot ask who reads", path_));
    if (range.l_type == F_UNLCK) break;
    oldest = static_cast<std::uint64_t>(std::max(range.l_start, static_cast<off_t>(kLeases))) - kLeases;
  }
  return oldest;
}

HeapLock::~HeapLock() {
  if (file_ < 0) return;
  if (names_holder_ && ftruncate(file_, 0) != 0) errno = 0;  // then a name stays there that nobody is shown
  close(file_);
}

}  // namespace farheap::api
