// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/lmdb_environment.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <list>

#include "base/mutex.hpp"
#include "base/units.hpp"
#include "os/named_file.hpp"
#include "store/failed_sync.hpp"
#include "store/fork_lock.hpp"

namespace farheap::store {
namespace {

constexpr char kCannotOpenEnvironment[] = "cannot open the store";

struct Open {
  MDB_env* env;
  dev_t device;
  ino_t file;
  unsigned flags;
  pid_t process;  // a forked child cannot use its parent's
  unsigned users;
  Status synced;  // the first that failed
};

ForkLock open_lock;  // held while one is opened, closed or made durable
std::list<Open>& open_ones() FARHEAP_REQUIRES(open_lock) {
  static auto* const ones = new std::list<Open>;  // stores may be closed as late as they like
  return *ones;
}

// LMDB opens what is there, follows links and cuts what it takes for its lock file: so it finds two files that are
// ours. Requires: this process does not have them open, for it would lose its locks on them.
Result<struct stat> prepare_files(const std::string& path) FARHEAP_REQUIRES(open_lock) {
  constexpr std::uint32_t kLockMagic = 0xBEEFC0DE;
  const auto data = os::open_own_file(path, 0600, kCannotOpenEnvironment);
  if (!data) return fail(data.error());
  struct stat status{};
  const bool is_known = fstat(data->file, &status) == 0;
  close(data->file);
  if (!is_known) return fail(errno_error(errno, kCannotOpenEnvironment, path));
  const std::string lock_path = path + "-lock";
  const auto lock = os::open_own_file(lock_path, 0600, kCannotOpenEnvironment);
  if (!lock) return fail(lock.error());
  std::uint32_t magic = 0;
  const ssize_t bytes = pread(lock->file, &magic, sizeof magic, 0);
  close(lock->file);
  if (bytes == 0 || (bytes == sizeof magic && (magic == kLockMagic || magic == 0))) return status;
  return fail(ErrorCode::kInvalidArgument, kCannotOpenEnvironment, lock_path,
              "it is not a lock file of LMDB, and stays as it is", "move it elsewhere, or give the store another name");
}

Result<MDB_env*> make(const std::string& path, unsigned flags, const std::string& subject) {
  int error = 0;
  // As much of the address space as there is; less where a limit forbids it.
  for (std::size_t bytes = base::kTiB; bytes >= base::kGiB; bytes /= 4) {
    MDB_env* env = nullptr;
    error = mdb_env_create(&env);
    if (error != 0) break;
    error = mdb_env_set_maxdbs(env, 3);
    if (error == 0) error = mdb_env_set_maxreaders(env, 1024);
    if (error == 0) error = mdb_env_set_mapsize(env, bytes);
    if (error == 0) error = mdb_env_open(env, path.c_str(), flags | MDB_NOSUBDIR | MDB_NOTLS | MDB_NORDAHEAD, 0600);
    if (error == 0) return env;
    mdb_env_close(env);
    if (error != ENOMEM) break;
  }
  auto wrong = lmdb_error(error, kCannotOpenEnvironment, subject);
  wrong.remedy = "choose a folder you may write, on a local disk";
  return fail(std::move(wrong));
}

}  // namespace

Error lmdb_error(int error, std::string what, std::string subject) {
  if (error > 0) return errno_error(error, std::move(what), std::move(subject));
  auto code = ErrorCode::kIo;
  if (error == MDB_MAP_FULL) code = ErrorCode::kNoSpace;
  if (error == MDB_CORRUPTED || error == MDB_PAGE_NOTFOUND || error == MDB_INVALID) code = ErrorCode::kCorrupt;
  return {code, std::move(what), std::move(subject), mdb_strerror(error), {}};
}

void CloseEnvironment::operator()(MDB_env* env) const {
  base::LockGuard lock(open_lock);
  const auto one = std::ranges::find(open_ones(), env, &Open::env);
  if (--one->users != 0) return;
  mdb_env_close(env);
  open_ones().erase(one);
}

// The pages of its trees are written once: what a sync that failed has lost, no later one would write.
Status sync_environment(const Environment& env, const std::string& subject) {
  base::LockGuard lock(open_lock);
  const auto one = std::ranges::find(open_ones(), env.get(), &Open::env);
  if (!one->synced) return one->synced;
  const int error = mdb_env_sync(env.get(), 1);
  if (error != 0) one->synced = cannot_sync_any_more(lmdb_error(error, "cannot make it durable", subject));
  return one->synced;
}

Result<Environment> open_environment(const std::string& path, unsigned flags, const std::string& subject) {
  base::LockGuard lock(open_lock);
  struct stat named{};
  if (stat(path.c_str(), &named) == 0) {
    for (Open& one : open_ones()) {
      if (one.device != named.st_dev || one.file != named.st_ino || one.process != getpid()) continue;
      if (one.flags != flags) {
        return fail(ErrorCode::kConflict, kCannotOpenEnvironment, subject,
                    "this process has it open with another sync=", "say the same both times");
      }
      ++one.users;
      return Environment(one.env);
    }
  }
  const auto prepared = prepare_files(path);
  if (!prepared) return fail(prepared.error());
  auto env = make(path, flags, subject);
  if (!env) return fail(std::move(env.error()));
  int file = -1;
  if (mdb_env_get_fd(*env, &file) != 0 || fstat(file, &named) != 0 || named.st_ino != prepared->st_ino ||
      named.st_dev != prepared->st_dev) {
    mdb_env_close(*env);
    return fail(ErrorCode::kConflict, kCannotOpenEnvironment, subject, "somebody has put another file there meanwhile",
                "look who");
  }
  open_ones().push_back({*env, named.st_dev, named.st_ino, flags, getpid(), 1, {}});
  return Environment(*env);
}

}  // namespace farheap::store
