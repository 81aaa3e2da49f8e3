// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store keeps blocks by number: a file, LMDB, Redis, ... It knows nothing of addresses, faults or heaps.
// The interface is the smallest that fits every engine; whatever is clever (versions of a heap, commit,
// coherence, leases) is written once, above it.
//
// Thread-safety: every call may be made from any thread at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace farheap {

// Opaque: compared for equality only. 0 means absent. Engines without versions (Capability::kVersions is not
// set) report 1 for whatever is present.
using Version = std::uint64_t;

enum class Outcome : std::uint8_t {
  kPending,   // not yet carried out
  kOk,        // done
  kSame,      // get: the store has the version the caller knows; nothing was copied
  kAbsent,    // get: the store has no such block (for a run of blocks: at least one is missing)
  kConflict,  // put: the store's version is not the expected one; nothing was written
  kUnknown,   // sent, but no answer: resolve by reading back, never by guessing
  kCorrupt,   // get: the bytes are not those that were written; do not use what is in `into`
  kNoSpace,   // put: the store is full; nothing of this entry may be relied on
  kFailed,    // the engine refused or broke
};

// Read `into.size() / block_bytes` consecutive blocks that start at `block`.
// Requires: into.size() a positive multiple of Limits::block_bytes; for speed, into.data() aligned to 4096.
struct Get {
  std::uint64_t block = 0;
  std::span<std::byte> into;
  Version known = 0;  // single blocks only: if the store still has it, answer kSame and copy nothing
  Outcome outcome = Outcome::kPending;
  Version version = 0;  // single blocks only
};

// Write `from.size() / block_bytes` consecutive blocks that start at `block`.
struct Put {
  std::uint64_t block = 0;
  std::span<const std::byte> from;
  std::optional<Version> expected;  // single blocks only: write only over this version (0: only where absent)
  Outcome outcome = Outcome::kPending;
  Version version = 0;  // single blocks only: the version written; on kConflict the version found, where known
};

enum class Capability : std::uint32_t {
  kVersions = 1u << 0,          // versions and compare-and-swap (`known`, `expected`)
  kCounters = 1u << 1,          // add()
  kManyProcesses = 1u << 2,     // several processes may open it at once
  kManyMachines = 1u << 3,      // ... on several machines
  kDurable = 1u << 4,           // what sync() acknowledged survives a power loss
  kLinearisable = 1u << 5,      // single operations take effect in one order that all clients see
  kSurvivesFailover = 1u << 6,  // ... even when a server is replaced
  kAtomicBatch = 1u << 7,       // a batch of puts happens as a whole or not at all
  kSparse = 1u << 8,            // erase() gives the space back
  kForks = 1u << 9,             // a forked child may go on with the handle
};
using Capabilities = std::uint32_t;
[[nodiscard]] constexpr bool has(Capabilities all, Capability one) {
  return (all & static_cast<Capabilities>(one)) != 0;
}

struct Limits {
  std::size_t block_bytes = 4096;       // one block
  std::size_t largest_value_bytes = 0;  // the longest run of blocks in one entry
  std::size_t largest_batch_bytes = 0;  // all entries of one call; larger calls are split by the caller
  std::size_t largest_batch_operations = 0;
  std::size_t best_run_bytes = 0;  // from about here on, larger entries gain no more throughput
};

struct StoreUsage {
  std::uint64_t blocks = 0;       // present
  std::uint64_t space_bytes = 0;  // what they take on the device or in the server
};

struct BlockRun {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};
struct NamedCounter {
  std::string name;
  std::int64_t value = 0;
};

// Gets that one thread has in flight and asks after, instead of waiting for each.
//
// Thread-safety: one thread at a time; another may go on when nothing is in flight. The store outlives it.
class GetsInFlight {
 public:
  virtual ~GetsInFlight() = default;
  // `entry`, and what it points to, must stay where it is until take() returns it. False: not this one (its outcome is
  // unchanged), ask Store::get().
  [[nodiscard]] virtual bool begin(Get& entry) = 0;
  // One that is answered, its outcome set; in any order. nullptr: none yet.
  [[nodiscard]] virtual Get* take() = 0;
  // Readable (poll) when an answer is there.
  [[nodiscard]] virtual int descriptor() const = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  // The URI without secrets, decorators included: "checksum+file:/mnt/nvme".
  [[nodiscard]] virtual std::string describe() const = 0;
  [[nodiscard]] virtual Capabilities capabilities() const = 0;
  [[nodiscard]] virtual Limits limits() const = 0;

  // Each entry gets its own outcome. The Status is an error if any outcome is kUnknown, kCorrupt, kNoSpace or
  // kFailed (the first such, in words); absent, same and conflict are answers, not errors.
  // A batch is atomic only where kAtomicBatch is set; an entry of several blocks is never promised to be.
  // Calls beyond limits() are kInvalidArgument, every outcome kFailed. The puts of one batch should not overlap:
  // they may be under way at the same time.
  [[nodiscard]] virtual Status get(std::span<Get> batch) = 0;
  [[nodiscard]] virtual Status put(std::span<Put> batch) = 0;

  // Copies bytes [offset, offset + into.size()) of one block, all of them within it: for who wants few of them, and not
  // its version. kOk or kAbsent are what get() would say now; after anything else get() the block, which also says why.
  // Stores that have to look at whole blocks always say kPending.
  [[nodiscard]] virtual Outcome get_part(std::uint64_t /*block*/, std::size_t /*offset*/,
                                         std::span<std::byte> /*into*/) {
    return Outcome::kPending;
  }

  // For at most so many at a time; nullptr from stores whose answers have to be waited for.
  [[nodiscard]] virtual std::unique_ptr<GetsInFlight> gets_in_flight(unsigned /*most*/) { return nullptr; }

  // Where blocks [first, first + count), all of them there, lie in this process's memory, one after the other: for who
  // would only copy them once more. They stay there, and may be read, until one of them is put or erased, which the
  // caller keeps from happening. nullptr: get() them.
  [[nodiscard]] virtual const std::byte* find_in_memory(std::uint64_t /*first*/, std::size_t /*count*/) {
    return nullptr;
  }

  // Forget blocks [first, first + count); their space is given back where kSparse is set. Absent ones are fine.
  [[nodiscard]] virtual Status erase(std::uint64_t first, std::uint64_t count) = 0;

  // Adds to a named counter (absent: 0) and returns its new value. Not idempotent: after kUnknown read it back
  // with delta 0. kUnavailable without kCounters.
  [[nodiscard]] virtual Result<std::int64_t> add(std::string_view counter, std::int64_t delta) = 0;

  // Returns when all that was put before is as durable as the engine can make it. After one that failed, what was put
  // since the last good one may be lost, though it can still be read; a later one that succeeds answers for what was
  // put after the failure, and no more: put the rest again.
  [[nodiscard]] virtual Status sync() = 0;

  [[nodiscard]] virtual Result<StoreUsage> usage() = 0;

  // What is there, for those who copy a store. kUnavailable from engines that cannot tell.
  // Runs of blocks in order, from `first` on, as many as the engine tells at once; none: there are no more.
  [[nodiscard]] virtual Result<std::vector<BlockRun>> runs_from(std::uint64_t first);
  [[nodiscard]] virtual Result<std::vector<NamedCounter>> counters();
};

enum class Lifetime {
  kScratch,  // nothing survives the last process that has it open (files are unlinked from birth)
  kKeep,
};

struct StoreOptions {
  std::size_t block_bytes = 4096;
  Lifetime lifetime = Lifetime::kScratch;
  bool use_io_uring = true;  // where the kernel allows it
  // encrypt+: the file with the key. Empty: the variable FARHEAP_ENCRYPT_KEY; without either, a scratch store takes a
  // key of its own.
  std::string encrypt_key_file = {};
  // Engines that ask for a password: the file it is in, where the URI names none (?password_file=, ?password_env=).
  std::string password_file = {};
};

// Opens "[decorator+]...engine:place", e.g. "mem:", "file:/mnt/nvme", "checksum+compress+lmdb:/data/x.mdb",
// "slow+mem:?delay_us=100&mb_s=200", "faulty+file:/tmp?seed=7&error=0.01". A malformed URI is kInvalidArgument
// with a remedy that shows the right form.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(std::string_view uri, const StoreOptions& options = {});

// ---- kept stores, from outside

struct StoreListing {
  std::string uri;  // opens it; without secrets
  std::size_t block_bytes = 0;
  Lifetime lifetime = Lifetime::kKeep;  // kScratch: of a program that runs, or that was killed
  bool in_use = false;                  // a scratch store whose program runs, as far as the engine can tell
};
// Whether open_store() with Lifetime::kKeep would find one rather than make one. Makes nothing.
[[nodiscard]] Result<bool> is_store_there(std::string_view uri, const StoreOptions& options = {});
// Those of a server, database, table or folder: the place of `uri` is one store's, or that of several.
[[nodiscard]] Result<std::vector<StoreListing>> list_stores(std::string_view uri, const StoreOptions& options = {});
// With all of its blocks and counters. Requires: nobody has it open. kNotFound if there is none.
[[nodiscard]] Status remove_store(std::string_view uri, const StoreOptions& options = {});

// The engines and decorators of this build, one line each, for `--help` and doctor.
struct StoreKind {
  std::string_view scheme;   // "file"
  std::string_view form;     // "file:DIR | file:FILE"
  std::string_view summary;  // one sentence
  bool decorator = false;
};
[[nodiscard]] std::span<const StoreKind> store_kinds();

}  // namespace farheap
