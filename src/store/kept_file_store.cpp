// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The word of a block: 0 absent; otherwise its version, with kWriting while somebody who holds the stripe writes it.
//
// Crashes. A process that is killed between the bytes and the word leaves kWriting behind. Whoever comes next gets
// the stripe's lock (the kernel took it from the dead) and settles the word: a block that was absent stays absent,
// any other gets a version that nobody has seen. Its bytes are then the old ones, the new ones, or (torn by a power
// loss) a mix, which checksum+ tells; but no comparison of versions can succeed on them. After a power loss words and
// bytes are those of the last sync() or of any time after it, each for itself.
//
// Readers take no lock: they read the words, the bytes, and the words again; if those differ, they take the lock. Who
// may not write the files has no lock, and reads again.
#include <atomic>
#include <ctime>

#include "store/batch.hpp"
#include "store/contents.hpp"
#include "store/file_store.hpp"
#include "store/side_table.hpp"
#include "store/stripes.hpp"

namespace farheap::store {
namespace {

constexpr std::uint64_t kWriting = std::uint64_t{1} << 63;
constexpr std::uint64_t kWasAbsent = std::uint64_t{1} << 62;  // together with kWriting
constexpr char kOnlyRead[] = "it is open to be read alone";

class KeptFileStore final : public FileStore {
 public:
  KeptFileStore(std::string place, std::unique_ptr<FileDevice> device, std::unique_ptr<SideTable> table)
      : FileStore(std::move(place), device->block_bytes()), device_(std::move(device)), table_(std::move(table)) {}

  Capabilities capabilities() const override {
    auto all = static_cast<Capabilities>(Capability::kCounters) | static_cast<Capabilities>(Capability::kVersions) |
               static_cast<Capabilities>(Capability::kManyProcesses) |
               static_cast<Capabilities>(Capability::kLinearisable) | static_cast<Capabilities>(Capability::kDurable) |
               static_cast<Capabilities>(Capability::kForks);
    if (device_->gives_back()) all |= static_cast<Capabilities>(Capability::kSparse);
    return all;
  }

  Status erase(std::uint64_t first, std::uint64_t count) override {
    if (table_->is_only_read()) return fail(ErrorCode::kPermission, "cannot erase", describe(), kOnlyRead);
    const std::uint64_t end = table_->end();
    if (first >= end) return {};
    count = std::min(count, end - first);
    if (count == 0) return {};
    SideTable::Guard guard(*table_, Stripes::of(first, count));
    auto is_absent = [&](std::uint64_t block) {
      const Word* word = table_->find(block);
      return word == nullptr || word->load() == 0;
    };
    Status result;
    for (std::uint64_t block = first; block < first + count;) {
      const std::uint64_t run = block;
      while (block < first + count && clear(block)) ++block;
      if (block != run) {
        auto ok = device_->punch(run, block, is_absent);
        if (!ok && result) result = std::move(ok);
      }
      if (block < first + count) ++block;  // that one was absent
    }
    return result;
  }

  Result<std::vector<BlockRun>> runs_from(std::uint64_t first) override {
    constexpr std::size_t kMostRuns = 4096;
    std::vector<BlockRun> runs;
    for (std::uint64_t block = first; block < table_->end(); ++block) {
      const Word* word = table_->find(block);
      if (word == nullptr) return fail(ErrorCode::kNoSpace, "cannot look at the store", describe(), "no memory");
      const auto seen = word->load(std::memory_order_acquire);
      if (seen == 0 || (seen & kWasAbsent) != 0) continue;
      add_block(runs, block);
      if (runs.size() > kMostRuns) return runs.pop_back(), runs;
    }
    return runs;
  }

  Status sync() override {
    if (table_->is_only_read()) return {};
    if (auto ok = device_->sync(); !ok) return ok;
    return table_->sync();
  }

  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override {
    return table_->add(counter, delta);
  }
  Result<std::vector<NamedCounter>> counters() override { return table_->counters(); }

  Result<StoreUsage> usage() override {
    auto space = device_->space_bytes();
    if (!space) return fail(std::move(space.error()));
    return StoreUsage{table_->blocks_present().load(), *space};
  }

 private:
  bool clear(std::uint64_t block) {
    Word* word = table_->find(block);
    if (word == nullptr || word->load(std::memory_order_relaxed) == 0) return false;
    const auto old = word->exchange(0);
    if ((old & kWasAbsent) == 0) table_->blocks_present().fetch_sub(1, std::memory_order_relaxed);
    return true;
  }

  // Requires: the block's stripe is held. The version to work with; what a dead writer left is settled.
  Version settled(Word& word) {
    const auto seen = word.load(std::memory_order_acquire);
    if ((seen & kWriting) == 0) return seen;
    const Version version = (seen & kWasAbsent) != 0 ? 0 : table_->new_version();
    word.store(version, std::memory_order_release);
    return version;
  }

  // One number for the versions of a run; for a single block, its version.
  struct Look {
    bool absent = false;
    bool busy = false;
    std::uint64_t mark = 0;
  };
  Look look(const Get& entry) {
    Look result;
    for (std::size_t i = 0; i < blocks_in(entry.into.size()); ++i) {
      const Word* word = table_->find(entry.block + i);
      const auto seen = word == nullptr ? 0 : word->load(std::memory_order_acquire);
      if (seen == 0) result.absent = true;
      if ((seen & kWriting) != 0) result.busy = true;
      result.mark = result.mark * 0x9E3779B97F4A7C15u + seen;
    }
    return result;
  }

  // Decides without reading where it can. True if the bytes must be read.
  bool wants_bytes(Get& entry, const Look& seen) {
    const bool single = entry.into.size() == limits_.block_bytes;
    entry.version = single ? seen.mark : 0;
    if (seen.absent) entry.outcome = Outcome::kAbsent;
    if (!seen.absent && entry.known != 0 && entry.known == seen.mark) entry.outcome = Outcome::kSame;
    return entry.outcome == Outcome::kPending;
  }

  // Without a lock nobody keeps writers out: it is read until it has not changed meanwhile. A writer that was killed in
  // the middle leaves the block busy, with bytes that are old, new or torn.
  void get_unlocked(Get& entry, const char*& why) {
    constexpr int kMostAttempts = 1000;
    constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 1'000'000};
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      if (attempt != 0) (void)nanosleep(&kPause, nullptr);
      const Look seen = look(entry);
      if (seen.busy && attempt + 1 < kMostAttempts) continue;
      entry.outcome = Outcome::kPending;
      if (!wants_bytes(entry, seen)) return;
      os::IoRequest io = request(entry);
      device_->run({&io, 1});
      std::atomic_thread_fence(std::memory_order_acquire);
      entry.outcome = outcome_of(io, why);
      if (look(entry).mark == seen.mark) return;
    }
    entry.outcome = Outcome::kFailed;
    why = "it changes faster than it can be read";
  }

  void get_alone(Get& entry, const char*& why) {
    if (table_->is_only_read()) return get_unlocked(entry, why);
    const auto count = blocks_in(entry.into.size());
    SideTable::Guard guard(*table_, Stripes::of(entry.block, count));
    for (std::size_t i = 0; i < count; ++i) {
      if (Word* word = table_->find(entry.block + i)) (void)settled(*word);
    }
    entry.outcome = Outcome::kPending;
    if (!wants_bytes(entry, look(entry))) return;
    os::IoRequest io = request(entry);
    device_->run({&io, 1});
    entry.outcome = outcome_of(io, why);
  }

  void get_together(std::span<Get> batch, const char*& why) override {
    os::IoRequest requests[kTogether];
    std::uint64_t marks[kTogether];
    Get* entries[kTogether];
    std::size_t count = 0;
    for (auto& entry : batch) {
      const Look seen = look(entry);
      if (seen.busy) {
        get_alone(entry, why);
      } else if (wants_bytes(entry, seen)) {
        requests[count] = request(entry);
        marks[count] = seen.mark;
        entries[count++] = &entry;
      }
    }
    device_->run({requests, count});
    std::atomic_thread_fence(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i) {
      if (look(*entries[i]).mark != marks[i]) {
        get_alone(*entries[i], why);
      } else {
        entries[i]->outcome = outcome_of(requests[i], why);
      }
    }
  }

  // Requires: the stripes are held. False, with the outcome set, if the entry is not to be written.
  bool begin(Put& entry, Version version, std::size_t together, const char*& why) {
    const auto count = blocks_in(entry.from.size());
    for (std::size_t i = 0; i < count; ++i) {
      Word* word = table_->make(entry.block + i);
      if (word == nullptr) {
        entry.outcome = Outcome::kNoSpace;
        why = "no room in the table of versions";
        return false;
      }
      const Version present = settled(*word);
      if (entry.expected && *entry.expected != present) {
        entry.outcome = Outcome::kConflict;
        entry.version = present;
        return false;
      }
    }
    entry.version = version;
    bool fresh = false;
    for (std::size_t i = 0; i < count; ++i) {
      Word* word = table_->find(entry.block + i);
      const bool absent = word->load(std::memory_order_relaxed) == 0;
      word->store(version | kWriting | (absent ? kWasAbsent : 0), std::memory_order_release);
      fresh = fresh || absent;
    }
    if (const auto end = (entry.block + count) * limits_.block_bytes; !device_->reaches(end)) {
      SideTable::Guard guard(*table_, 0, true);
      device_->reach(end);
    }
    if (fresh) device_->prepare(entry.block, count, together);
    return true;
  }

  void finish(Put& entry) {
    const bool single = entry.from.size() == limits_.block_bytes;
    for (std::size_t i = 0; i < blocks_in(entry.from.size()); ++i) {
      Word* word = table_->find(entry.block + i);
      const auto seen = word->load(std::memory_order_relaxed);
      if (entry.outcome != Outcome::kOk) {
        (void)settled(*word);
        continue;
      }
      if ((seen & kWasAbsent) != 0) table_->blocks_present().fetch_add(1, std::memory_order_relaxed);
      word->store(entry.version, std::memory_order_release);
    }
    if (entry.outcome != Outcome::kOk || !single) entry.version = 0;
  }

  void put_together(std::span<Put> batch, const char*& why) override {
    if (table_->is_only_read()) {
      for (Put& one : batch) one.outcome = Outcome::kFailed;
      why = kOnlyRead;
      return;
    }
    std::uint64_t stripes = 0;
    for (const auto& entry : batch) stripes |= Stripes::of(entry.block, blocks_in(entry.from.size()));
    SideTable::Guard guard(*table_, stripes);
    os::IoRequest requests[kTogether];
    Put* entries[kTogether];
    std::size_t count = 0;
    auto carry_out = [&] {
      device_->run({requests, count});
      for (std::size_t i = 0; i < count; ++i) {
        entries[i]->outcome = outcome_of(requests[i], why);
        finish(*entries[i]);
      }
      count = 0;
    };
    for (auto& entry : batch) {
      for (std::size_t i = 0; i < count; ++i) {
        const auto& other = *entries[i];
        const bool apart = entry.block + blocks_in(entry.from.size()) <= other.block ||
                           other.block + blocks_in(other.from.size()) <= entry.block;
        if (!apart) carry_out();
      }
      if (!begin(entry, table_->new_version(), batch.size(), why)) continue;
      requests[count] = request(entry);
      entries[count++] = &entry;
    }
    carry_out();
  }

  std::unique_ptr<FileDevice> device_;
  std::unique_ptr<SideTable> table_;
};

}  // namespace

std::unique_ptr<Store> make_kept_file_store(std::string place, std::unique_ptr<FileDevice> device,
                                            std::unique_ptr<SideTable> table) {
  return std::make_unique<KeptFileStore>(std::move(place), std::move(device), std::move(table));
}

}  // namespace farheap::store
