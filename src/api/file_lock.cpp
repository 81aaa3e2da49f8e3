// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lock of a heap in files: a lock file beside it, with record locks (F_OFD_SETLK), so that the kernel lets go of
// them with the process. It names the writer for those who are refused.
//
//   byte 2^40      held alone by who writes
//   byte 2^40 + 1  shared by all who have the heap open, alone by who creates or removes it
//   byte 2^41 + N  shared by who reads commit N
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>

#include "api/heap_lock.hpp"

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

// Whoever removes a heap removes its lock file, too: a lock on what has no name any more keeps nobody out.
bool still_has_name(int file, const std::string& path) {
  struct stat mine{}, named{};
  return fstat(file, &mine) == 0 && stat(path.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
         mine.st_dev == named.st_dev;
}

class FileLock final : public HeapLock {
 public:
  [[nodiscard]] static Result<std::unique_ptr<FileLock>> take(const HeapPlace& place, For what);
  ~FileLock() override;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  Status let_readers_in() override;
  Status take(std::uint64_t commit) override;
  Result<std::uint64_t> oldest() override;
  void leave_to_parent() override { names_holder_ = false; }
  std::unique_ptr<Store> guard(std::unique_ptr<Store> store) override { return store; }
  void remove() override;

 private:
  FileLock(int file, std::string path) : file_(file), path_(std::move(path)) {}
  // False: somebody else's lock is in the way.
  [[nodiscard]] Result<bool> lock(std::uint64_t byte, short how);

  int file_;
  std::string path_;
  bool names_holder_ = false;
  std::uint64_t reads_ = kNobody;  // the commit of its lease
};

Result<bool> FileLock::lock(std::uint64_t byte, short how) {
  struct flock range = on_bytes(byte, 1, how);
  while (fcntl(file_, F_OFD_SETLK, &range) != 0) {
    if (errno == EAGAIN || errno == EACCES) return false;
    if (errno != EINTR) return fail(errno_error(errno, kWhat, path_, "a lock is kept there"));
  }
  return true;
}

Result<std::unique_ptr<FileLock>> FileLock::take(const HeapPlace& place, For what) {
  const std::string path = place.lock_file();
  const bool reads = what == For::kReading;
  for (;;) {
    int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 && reads && (errno == EACCES || errno == EROFS)) file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      return fail(
          errno_error(errno, kWhat, path, "its folder has to be there, and to be writable: a lock is kept in it"));
    }
    std::unique_ptr<FileLock> taken(new FileLock(file, path));
    if (!reads) {
      auto writes = taken->lock(kWriterByte, F_WRLCK);
      if (!writes) return fail(std::move(writes.error()));
      if (!*writes) {
        const std::string holder = text_of(file);
        return fail(ErrorCode::kConflict, kWhat, place.uri,
                    "it is open for writing by " + (holder.empty() ? "another process" : holder),
                    "close it there first");
      }
    }
    auto opens = taken->lock(kOpenByte, what == For::kAlone ? F_WRLCK : F_RDLCK);
    if (!opens) return fail(std::move(opens.error()));
    if (!*opens) {
      const bool alone = what == For::kAlone;
      return fail(ErrorCode::kConflict, kWhat, place.uri,
                  alone ? "it is open for reading in another process" : "it is being created or removed",
                  fmt::format("{}; `fuser {}` names the process", alone ? "close it there first" : "wait", path));
    }
    if (!still_has_name(file, path)) continue;
    taken->names_holder_ = !reads;
    if (!reads) write_holder(file);
    return taken;
  }
}

Status FileLock::let_readers_in() {
  auto shared = lock(kOpenByte, F_RDLCK);
  return shared ? Status{} : fail(std::move(shared.error()));
}

Status FileLock::take(std::uint64_t commit) {
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
Result<std::uint64_t> FileLock::oldest() {
  std::uint64_t oldest = kNobody;
  for (std::uint64_t bytes = 0; oldest != 0; bytes = oldest) {  // 0: to the end
    struct flock range = on_bytes(kLeases, bytes, F_WRLCK);
    if (fcntl(file_, F_OFD_GETLK, &range) != 0) return fail(errno_error(errno, "cannot ask who reads", path_));
    if (range.l_type == F_UNLCK) break;
    oldest = static_cast<std::uint64_t>(std::max(range.l_start, static_cast<off_t>(kLeases))) - kLeases;
  }
  return oldest;
}

FileLock::~FileLock() {
  if (file_ < 0) return;
  if (names_holder_ && ftruncate(file_, 0) != 0) errno = 0;  // then a name stays there that nobody is shown
  close(file_);
}

void FileLock::remove() {
  if (unlink(path_.c_str()) == 0) names_holder_ = false;
}

}  // namespace

Result<std::unique_ptr<HeapLock>> lock_files(const HeapPlace& place, HeapLock::For what) {
  auto taken = FileLock::take(place, what);
  if (!taken) return fail(std::move(taken.error()));
  return std::move(*taken);
}

Result<bool> files_have_writer(const HeapPlace& place) {
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

}  // namespace farheap::api
