// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lock of a heap in files: a lock file beside it, with record locks (F_OFD_SETLK), so that the kernel lets go of
// them with the process. It names the writer for those who are refused. The file begins with a line of its own
// (kMagic): what has another beginning is somebody's file, and is neither written nor cut.
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
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <thread>
#include <utility>

#include "api/heap_lock.hpp"
#include "api/patience.hpp"
#include "base/clock.hpp"
#include "os/dying_process.hpp"
#include "os/named_file.hpp"

namespace farheap::api {
namespace {

constexpr char kCannotLock[] = "cannot open the heap";
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

constexpr std::string_view kMagic = "farheap lock 1\n";
constexpr std::string_view kNamesProcess = "(process ";

std::string text_of(int file) {
  char text[512];
  const ssize_t bytes = pread(file, text, sizeof text, 0);
  return bytes > 0 ? std::string(text, static_cast<std::size_t>(bytes)) : std::string();
}

// Ours, or one as earlier versions left it: empty, or with the name of the holder alone.
bool is_lock_text(std::string_view text) {
  return text.empty() || text.starts_with(kMagic) || (text.starts_with('\'') && text.find(kNamesProcess) != text.npos);
}

std::string holder_in(int file) {
  std::string text = text_of(file);
  return text.starts_with(kMagic) ? text.substr(kMagic.size()) : text;
}

// 0 where none of this machine is named.
pid_t process_in(const std::string& holder) {
  char host[64] = {};
  gethostname(host, sizeof host - 1);
  const auto at = holder.find(kNamesProcess);
  if (at == holder.npos || holder.find(fmt::format(" on {})", host), at) == holder.npos) return 0;
  return std::atoi(holder.c_str() + at + kNamesProcess.size());
}

// For people only: that it could not be written changes nothing.
void write_text(int file, const std::string& text) {
  if (pwrite(file, text.data(), text.size(), 0) < 0) return;
  if (ftruncate(file, static_cast<off_t>(text.size())) != 0) return;
}

void write_holder(int file) {
  char host[64] = {};
  gethostname(host, sizeof host - 1);
  write_text(file,
             fmt::format("{}'{}' {}{} on {}) since {:%Y-%m-%d %H:%M:%S} UTC", kMagic, program_invocation_short_name,
                         kNamesProcess, getpid(), host, fmt::gmtime(base::real_time_s())));
}

// Whoever removes a heap removes its lock file, too: a lock on what has no name any more keeps nobody out.
bool still_has_name(int file, const std::string& path) {
  struct stat mine{}, named{};
  return fstat(file, &mine) == 0 && lstat(path.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
         mine.st_dev == named.st_dev;
}

class FileLock final : public HeapLock {
 public:
  // Once. kConflict while somebody else's lock is in the way; `holder` is then the process that has it, 0: unknown.
  [[nodiscard]] static Result<std::unique_ptr<FileLock>> try_to_take(const HeapPlace& place, For what, pid_t& holder);
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
    if (errno != EINTR) return fail(errno_error(errno, kCannotLock, path_, "a lock is kept there"));
  }
  return true;
}

// The lock file may be used by those who may use the heap.
mode_t mode_of(const HeapPlace& place) {
  struct stat heap{};
  return stat(place.file.c_str(), &heap) == 0 ? (heap.st_mode & 0664) | 0600 : 0600;
}

// Where the kernel has refused: who can change that. A file that is not there could not be made.
Error because(Error error, const std::string& path) {
  if (error.code != ErrorCode::kPermission && error.code != ErrorCode::kNotFound) return error;
  struct stat there{};
  if (lstat(path.c_str(), &there) != 0) {
    error.why += ": a lock is kept there";
    error.remedy = "its folder has to be there, and you have to be allowed to make files in it";
  } else if (S_ISREG(there.st_mode) && there.st_uid != geteuid() && access(path.c_str(), R_OK) != 0) {
    error.why = fmt::format("this lock file belongs to user {} and has mode {:04o}, and you are user {}", there.st_uid,
                            there.st_mode & 07777, geteuid());
    error.remedy = fmt::format("do it as that user, or let that user allow reading: chmod go+r {}", path);
  }
  return error;
}

// A lock file that is missing is made by the heap's owner alone: another's would keep the owner out. Root makes it for
// the owner.
Result<int> make_for_owner(const HeapPlace& place, const std::string& path) {
  struct stat heap{};
  const bool is_there = stat(place.file.c_str(), &heap) == 0;
  if (is_there && heap.st_uid != geteuid() && geteuid() != 0) {
    return fail(ErrorCode::kPermission, kCannotLock, path,
                "the heap has no lock file yet, and only its owner can make it",
                fmt::format("`farheap heap ls` by user {} makes it", heap.st_uid));
  }
  auto made = os::open_own_file(path, mode_of(place), kCannotLock);
  if (!made) return fail(because(std::move(made.error()), path));
  if (made->is_new) write_text(made->file, std::string(kMagic));
  if (made->is_new && is_there && fchown(made->file, heap.st_uid, heap.st_gid) != 0) errno = 0;  // it is ours already
  return made->file;
}

// Who reads only locks: the file may be another's.
Result<int> open_to_read(const HeapPlace& place, const std::string& path) {
  struct stat there{};
  if (lstat(path.c_str(), &there) != 0 && errno == ENOENT) return make_for_owner(place, path);
  auto opened = os::open_file_to_read(path, kCannotLock);
  if (!opened) return fail(because(std::move(opened.error()), path));
  return opened;
}

Result<int> open_to_write(const HeapPlace& place, const std::string& path) {
  auto opened = os::open_own_file(path, mode_of(place), kCannotLock);
  if (!opened) return fail(because(std::move(opened.error()), path));
  if (opened->is_new) write_text(opened->file, std::string(kMagic));
  if (is_lock_text(text_of(opened->file))) return opened->file;
  close(opened->file);
  return fail(ErrorCode::kInvalidArgument, kCannotLock, path, "it is not a lock file of Farheap, and stays as it is",
              "move it elsewhere, or give the heap another name");
}

Result<std::unique_ptr<FileLock>> FileLock::try_to_take(const HeapPlace& place, For what, pid_t& holder) {
  const std::string path = place.lock_file();
  const bool reads = what == For::kReading;
  for (;;) {
    holder = 0;
    auto file = reads ? open_to_read(place, path) : open_to_write(place, path);
    if (!file) return fail(std::move(file.error()));
    std::unique_ptr<FileLock> taken(new FileLock(*file, path));
    if (!reads) {
      auto writes = taken->lock(kWriterByte, F_WRLCK);
      if (!writes) return fail(std::move(writes.error()));
      if (!*writes) {
        const std::string name = holder_in(*file);
        holder = process_in(name);
        return fail(Error{ErrorCode::kConflict, kCannotLock, place.uri,
                          "it is open for writing by " + (name.empty() ? "another process" : name),
                          "close it there first"});
      }
    }
    auto opens = taken->lock(kOpenByte, what == For::kAlone ? F_WRLCK : F_RDLCK);
    if (!opens) return fail(std::move(opens.error()));
    if (!*opens) {
      const bool alone = what == For::kAlone;
      holder = process_in(holder_in(*file));
      return fail(
          Error{ErrorCode::kConflict, kCannotLock, place.uri,
                alone ? "it is open for reading in another process" : "it is being created or removed",
                fmt::format("{}; `fuser {}` names the process", alone ? "close it there first" : "wait", path)});
    }
    if (!still_has_name(*file, path)) continue;
    taken->names_holder_ = !reads;
    if (!reads) write_holder(*file);
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
  if (!*taken) return fail(ErrorCode::kConflict, kCannotLock, path_, "its bytes are locked by somebody else");
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
  if (names_holder_) write_text(file_, std::string(kMagic));
  close(file_);
}

void FileLock::remove() {
  if (unlink(path_.c_str()) == 0) names_holder_ = false;
}

}  // namespace

Result<std::unique_ptr<HeapLock>> lock_files(const HeapPlace& place, HeapLock::For what,
                                             std::chrono::milliseconds wait) {
  Patience patience(wait);
  for (;;) {
    pid_t holder = 0;
    auto taken = FileLock::try_to_take(place, what, holder);
    if (taken) return std::move(*taken);
    if (taken.error().code != ErrorCode::kConflict) return fail(std::move(taken.error()));
    const auto pause = patience.next(os::is_dying(holder));
    if (!pause) return fail(std::move(taken.error()));
    base::sleep_for(*pause);
  }
}

Result<bool> files_have_writer(const HeapPlace& place) {
  const std::string path = place.lock_file();
  struct stat there{};
  if (lstat(path.c_str(), &there) != 0 && errno == ENOENT) return false;
  const auto file = os::open_file_to_read(path, "cannot ask who has the heap open");
  if (!file) return fail(file.error());
  struct flock range = on_bytes(kWriterByte, 1, F_WRLCK);
  const bool asked = fcntl(*file, F_OFD_GETLK, &range) == 0;
  const int why = errno;
  close(*file);
  if (!asked) return fail(errno_error(why, "cannot ask who has the heap open", path));
  return range.l_type != F_UNLCK;
}

}  // namespace farheap::api
