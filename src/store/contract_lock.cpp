// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contract of a store that locks can be built on: a lock is a block put if it is the expected one, with a token
// from a counter in it. The owner is killed while it holds it; another takes it over, and what the old owner wrote
// late does not count.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "store/contract_trial.hpp"

namespace farheap::store::contract {
namespace {

constexpr std::uint64_t kLock = 1;
constexpr std::uint64_t kGuarded = 2;

// The token, or 0.
std::uint64_t take_lock(Trial& trial, Client& client, Version over) {
  const auto token = static_cast<std::uint64_t>(client.add("token", 1));
  Bytes record(trial.block_bytes());
  set_number(record, token);
  const auto taken = client.put(kLock, record, over);
  return taken.outcome == Outcome::kOk ? token : 0;
}

// Takes the lock with a handle of its own, says so, and is never heard of again.
[[noreturn]] void hold_until_killed(Trial& trial, int say) {
  const auto handle = trial.open();
  if (handle == nullptr) _exit(1);
  Client client(trial, *handle);
  const std::uint64_t token = take_lock(trial, client, 0);
  if (token == 0 || write(say, &token, sizeof token) != sizeof token) _exit(1);
  for (;;) pause();
}

std::uint64_t owner_that_is_killed(Trial& trial) {
  int ends[2] = {-1, -1};
  if (!trial.expect(pipe(ends) == 0, "no pipe: {}", std::strerror(errno))) return 0;
  const pid_t owner = fork();
  if (owner == 0) hold_until_killed(trial, ends[1]);
  close(ends[1]);
  std::uint64_t token = 0;
  const bool said = read(ends[0], &token, sizeof token) == sizeof token;
  close(ends[0]);
  if (owner > 0) {
    kill(owner, SIGKILL);
    while (waitpid(owner, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  trial.expect(said, "a client could not take a lock that is free");
  return token;
}

std::uint64_t owner_that_went_away(Trial& trial) {
  const auto handle = trial.open();
  if (handle == nullptr) return 0;
  Client client(trial, *handle);
  return take_lock(trial, client, 0);
}

}  // namespace

void killed_owner(Trial& trial) {
  if (!trial.needs(Capability::kManyProcesses, "it is for one process only")) return;
  if (!trial.needs(Capability::kVersions, "it has no versions")) return;
  if (!trial.needs(Capability::kCounters, "it has no counters")) return;
  const auto old_token = trial.subject().may_fork ? owner_that_is_killed(trial) : owner_that_went_away(trial);
  if (!trial.expect(old_token != 0, "the lock was not taken")) return;

  Client client = trial.client();
  Bytes record(trial.block_bytes());
  const auto found = client.get(kLock, record);
  if (!trial.expect(found.outcome == Outcome::kOk, "the lock: {}", name_of(found.outcome))) return;
  trial.expect(number_in(record) == old_token, "the lock has token {}, not {}", number_in(record), old_token);
  trial.expect(take_lock(trial, client, 0) == 0, "a lock that is held was taken as if it were free");

  const auto handle = trial.open();
  if (handle == nullptr) return;
  Client heir(trial, *handle);
  const auto token = take_lock(trial, heir, found.version);
  trial.expect(token > old_token, "the heir's token {} is not above {}", token, old_token);
  trial.expect(take_lock(trial, client, found.version) == 0, "a second heir took the lock");
  const auto guarded = heir.put(kGuarded, heir.blocks(kGuarded, 1, token), 0);
  const auto late = client.put(kGuarded, client.blocks(kGuarded, 1, old_token), 0).outcome;
  trial.expect(guarded.outcome == Outcome::kOk && late == Outcome::kConflict, "a late write counted");
  client.holds(kGuarded, 1, token);
}

}  // namespace farheap::store::contract
