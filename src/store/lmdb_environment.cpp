// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/lmdb_environment.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>

#include "base/units.hpp"
#include "store/failed_sync.hpp"
#include "store/fork_lock.hpp"

namespace farheap::store {
namespace {

constexpr char kWhat[] = "cannot open the store";

struct Open {
  MDB_env* env;
  dev_t device;
  ino_t file;
  unsigned flags;
  pid_t process;  // a forked child cannot use its parent's
  unsigned users;
  Status synced;  // the first that failed
};

ForkLock open_lock;  // guards open_ones; held while one is opened or closed
std::list<Open>& open_ones() {
  static auto* const ones = new std::list<Open>;  // stores may be closed as late as they like
  return *ones;
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
  auto wrong = lmdb_error(error, kWhat, subject);
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
  std::lock_guard lock(open_lock);
  const auto one = std::ranges::find(open_ones(), env, &Open::env);
  if (--one->users != 0) return;
  mdb_env_close(env);
  open_ones().erase(one);
}

// The pages of its trees are written once: what a sync that failed has lost, no later one would write.
Status sync_environment(const Environment& env, const std::string& subject) {
  std::lock_guard lock(open_lock);
  const auto one = std::ranges::find(open_ones(), env.get(), &Open::env);
  if (!one->synced) return one->synced;
  const int error = mdb_env_sync(env.get(), 1);
  if (error != 0) one->synced = cannot_sync_any_more(lmdb_error(error, "cannot make it durable", subject));
  return one->synced;
}

Result<Environment> open_environment(const std::string& path, unsigned flags, const std::string& subject) {
  std::lock_guard lock(open_lock);
  struct stat named{};
  if (stat(path.c_str(), &named) == 0) {
    for (Open& one : open_ones()) {
      if (one.device != named.st_dev || one.file != named.st_ino || one.process != getpid()) continue;
      if (one.flags != flags) {
        return fail(ErrorCode::kConflict, kWhat, subject,
                    "this process has it open with another sync=", "say the same both times");
      }
      ++one.users;
      return Environment(one.env);
    }
  }
  auto env = make(path, flags, subject);
  if (!env) return fail(std::move(env.error()));
  if (stat(path.c_str(), &named) != 0) named = {};
  open_ones().push_back({*env, named.st_dev, named.st_ino, flags, getpid(), 1, {}});
  return Environment(*env);
}

std::string kept_lmdb_file(const std::string& place) {
  struct stat status{};
  const bool is_folder = stat(place.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  return is_folder ? place + "/farheap.mdb" : place;
}

}  // namespace farheap::store
