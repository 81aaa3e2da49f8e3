// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contract of lifetimes: what is kept is there again, what is not is gone, and nobody mistakes the one for another.
#include "store/contract_trial.hpp"

namespace farheap::store::contract {

void kept_or_not(Trial& trial) {
  if (!trial.is_kept()) {
    Client client = trial.client();
    client.put(3, client.blocks(3, 2));
    if (trial.reopen()) trial.expect(trial.client().lacks(3, 2), "a scratch store outlived its handle");
    return;
  }
  Client before = trial.client();
  const auto put = before.put(3, before.blocks(3, 1));
  before.put(700, before.blocks(700, 40));
  before.put(4, before.blocks(4, 1));
  before.erase(4, 1);
  if (trial.can(Capability::kCounters)) before.add("kept", 41);
  trial.expect(trial.store().sync(), "sync");
  if (!trial.reopen()) return;

  Client client = trial.client();
  Bytes into(trial.block_bytes());
  const auto got = client.get(3, into);
  trial.expect(got.outcome == Outcome::kOk, "get: {}", name_of(got.outcome));
  trial.expect(got.version == put.version, "version {} became {}", put.version, got.version);
  trial.expect(same_bytes(into, client.blocks(3, 1)), "other bytes than were put");
  client.holds(700, 40);
  client.lacks(4);
  trial.expect(client.used_blocks() == 41, "{} blocks, not 41", client.used_blocks());
  if (trial.can(Capability::kCounters)) trial.expect(client.add("kept", 1) == 42, "a counter lost what it had");
  trial.expect(client.put(4, client.blocks(4, 1)).version != put.version || !trial.can(Capability::kVersions),
               "a version from before came back");
}

void other_block_size(Trial& trial) {
  if (!trial.is_kept()) return trial.not_for_this_store("a scratch store is opened once");
  Client client = trial.client();
  client.put(0, client.blocks(0, 1));
  StoreOptions other = trial.subject().options;
  other.block_bytes = other.block_bytes == 4096 ? 8192 : 4096;
  trial.let_go();
  const auto opened = trial.subject().open(other);
  if (trial.expect(!opened, "it was opened with blocks of {} bytes", other.block_bytes)) {
    trial.expect(opened.error().code == ErrorCode::kInvalidArgument, "it was refused in wrong words: {}",
                 opened.error().message());
  }
  if (trial.reopen()) trial.client().holds(0, 1);
}

}  // namespace farheap::store::contract
