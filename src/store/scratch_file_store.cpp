// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run's blocks, in nameless files (scratch_files.hpp). Block N lies at byte N * block_bytes of whichever file it was
// last written to.
#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "store/copied_by_fork.hpp"
#include "store/scratch_files.hpp"
#include "store/stripes.hpp"

namespace farheap::store {
namespace {

class ScratchFileStore final : public FileStore, public CopiedByFork {
 public:
  ScratchFileStore(std::string place, const StoreOptions& options, OpenScratchFile open_file,
                   std::unique_ptr<FileDevice> first)
      : FileStore(std::move(place), options.block_bytes),
        files_(describe(), options.block_bytes, std::move(open_file), std::move(first)) {}

  Capabilities capabilities() const override {
    auto all = static_cast<Capabilities>(Capability::kCounters) | static_cast<Capabilities>(Capability::kForks);
    if (files_.gives_back()) all |= static_cast<Capabilities>(Capability::kSparse);
    return all;
  }

  Status erase(std::uint64_t first, std::uint64_t count) override {
    const std::uint64_t end = files_.end();
    if (first >= end) return {};
    count = std::min(count, end - first);
    if (count == 0) return {};
    Status result;
    {
      base::SharedGuard working(files_.gate);
      const Stripes::Guard guard(stripes_, files_.has_small_blocks() ? Stripes::of(first, count) : 0);
      result = files_.forget(first, count);
    }
    files_.tidy_up();
    return result;
  }

  std::unique_ptr<GetsInFlight> gets_in_flight(unsigned most) override {
    base::SharedGuard working(files_.gate);
    FileDevice* const device = files_.device(files_.current());
    auto ring = device == nullptr ? nullptr : device->read_ring(most);
    return ring ? std::make_unique<InFlight>(*this, std::move(ring), most) : nullptr;
  }

  // Blocks that are absent would be filled with zeros by being looked at.
  const std::byte* find_in_memory(std::uint64_t first, std::size_t count) override {
    base::SharedGuard working(files_.gate);
    const Home home = files_.home_of(first);
    FileDevice* const device = files_.device(home);
    if (device == nullptr || files_.same_home(first, count) != count) return nullptr;
    return device->find_in_memory(first, count);
  }

  Status sync() override { return {}; }  // there is nobody to read it after a power loss

  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override {
    base::LockGuard lock(counters_mutex_);
    auto& value = counters_[std::string(counter)];
    value = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) + static_cast<std::uint64_t>(delta));
    return value;
  }

  Result<std::vector<NamedCounter>> counters() override {
    base::LockGuard lock(counters_mutex_);
    std::vector<NamedCounter> all;
    all.reserve(counters_.size());
    for (const auto& [name, value] : counters_) all.push_back({name, value});
    return all;
  }

  Result<StoreUsage> usage() override {
    base::SharedGuard working(files_.gate);
    const auto bytes = files_.space_bytes();
    if (!bytes) return fail(bytes.error());
    return StoreUsage{files_.present(), *bytes};
  }

  void before_fork() override FARHEAP_ACQUIRE(files_.gate) { files_.before_fork(); }
  void after_fork_in_parent(bool forked) override FARHEAP_RELEASE(files_.gate) { files_.after_fork_in_parent(forked); }
  void after_fork_in_child() override FARHEAP_RELEASE(files_.gate) { files_.after_fork_in_child(); }

 private:
  static constexpr char kNotHandedOn[] = "this process was forked when the store could open no further file";

  class InFlight final : public GetsInFlight {
   public:
    InFlight(ScratchFileStore& store, std::unique_ptr<os::ReadRing> ring, unsigned most)
        : store_(store), ring_(std::move(ring)), places_(most) {
      for (auto& place : places_) free_.push_back(&place);
    }

    bool begin(Get& entry) override {
      if (free_.empty()) return false;
      base::SharedGuard working(store_.files_.gate);
      const std::size_t count = store_.blocks_in(entry.into.size());
      const Home home = store_.files_.home_of(entry.block);
      if (home == kNowhere || store_.files_.device(home) == nullptr ||
          store_.files_.same_home(entry.block, count) != count) {
        return false;
      }
      const FileDevice& device = *store_.files_.device(home);
      Place& place = *free_.back();
      static_cast<os::IoRequest&>(place) = store_.request(entry);
      place.file = device.file();
      place.entry = &entry;
      if (!device.fits(place) || !ring_->begin(place)) return false;
      free_.pop_back();
      return true;
    }

    Get* take() override {
      auto* place = static_cast<Place*>(ring_->take());
      if (place == nullptr) return nullptr;
      free_.push_back(place);
      const char* why = "";
      place->entry->outcome = outcome_of(*place, why);
      place->entry->version = place->entry->outcome == Outcome::kOk ? 1 : 0;
      return place->entry;
    }

    int descriptor() const override { return ring_->descriptor(); }

   private:
    struct Place : os::IoRequest {
      Get* entry = nullptr;
    };
    ScratchFileStore& store_;
    std::unique_ptr<os::ReadRing> ring_;
    std::vector<Place> places_;
    std::vector<Place*> free_;
  };

  // Runs requests that belong to several files.
  void run_all(std::vector<os::IoRequest>& requests, const std::vector<Home>& homes)
      FARHEAP_REQUIRES_SHARED(files_.gate) {
    std::vector<os::IoRequest> some;
    for (Home home = 1; home <= kMostFiles; ++home) {
      const auto here = static_cast<std::size_t>(std::ranges::count(homes, home));
      if (here == 0) continue;
      if (here == homes.size()) return files_.device(home)->run(requests);
      some.clear();
      for (std::size_t i = 0; i < homes.size(); ++i) {
        if (homes[i] == home) some.push_back(requests[i]);
      }
      files_.device(home)->run(some);
      auto done = some.begin();
      for (std::size_t i = 0; i < homes.size(); ++i) {
        if (homes[i] == home) requests[i] = *done++;
      }
    }
  }

  // Of one entry, a request for each file that a part of it is in. The number of them; 0, with the outcome set, if it
  // cannot be read.
  std::size_t add_requests(Get& entry, std::vector<os::IoRequest>& requests, std::vector<Home>& homes, const char*& why)
      FARHEAP_REQUIRES_SHARED(files_.gate) {
    const std::size_t before = requests.size();
    const os::IoRequest whole = request(entry);
    const std::size_t count = blocks_in(entry.into.size());
    for (std::size_t at = 0; at < count;) {
      const Home home = files_.home_of(entry.block + at);
      const std::size_t same = files_.same_home(entry.block + at, count - at);
      if (home == kNowhere || files_.device(home) == nullptr) {
        requests.resize(before);
        homes.resize(before);
        entry.outcome = home == kNowhere ? Outcome::kAbsent : Outcome::kFailed;
        if (home != kNowhere) why = kNotHandedOn;
        return 0;
      }
      os::IoRequest part = whole;
      part.offset += at * limits_.block_bytes;
      part.data += at * limits_.block_bytes;
      part.bytes = same * limits_.block_bytes;
      requests.push_back(part);
      homes.push_back(home);
      at += same;
    }
    return requests.size() - before;
  }

  void get_together(std::span<Get> batch, const char*& why) override {
    std::vector<os::IoRequest> requests;
    std::vector<Home> homes;
    std::array<std::size_t, kTogether> parts;
    requests.reserve(batch.size());
    homes.reserve(batch.size());
    base::SharedGuard working(files_.gate);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      batch[i].version = 0;
      parts[i] = add_requests(batch[i], requests, homes, why);
    }
    run_all(requests, homes);
    auto next = requests.begin();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (parts[i] == 0) continue;
      batch[i].outcome = Outcome::kOk;
      for (; parts[i] != 0; --parts[i]) batch[i].outcome = std::max(batch[i].outcome, outcome_of(*next++, why));
      batch[i].version = batch[i].outcome == Outcome::kOk ? 1 : 0;
    }
  }

  void put_together(std::span<Put> batch, const char*& why) override {
    put_in_current(batch, why);
    files_.tidy_up();
  }

  void put_in_current(std::span<Put> batch, const char*& why) {
    os::IoRequest requests[kTogether];
    Put* entries[kTogether];
    std::size_t count = 0;
    std::uint64_t stripes = 0;
    base::SharedGuard working(files_.gate);
    const Home current = files_.current();
    FileDevice* const device = files_.device(current);
    for (auto& entry : batch) {
      const auto blocks = blocks_in(entry.from.size());
      entry.version = 0;
      if (device == nullptr) {
        entry.outcome = Outcome::kFailed;
        why = files_.why_no_file();
        continue;
      }
      if (!files_.make_room(entry.block, blocks)) {
        entry.outcome = Outcome::kNoSpace;
        why = "no room in the table of blocks";
        continue;
      }
      if (const auto end = (entry.block + blocks) * limits_.block_bytes; !device->reaches(end)) {
        base::LockGuard lock(reaching_);
        device->reach(end);
      }
      if (files_.home_of(entry.block) != current || files_.same_home(entry.block, blocks) != blocks) {
        device->prepare(entry.block, blocks, batch.size());
      }
      if (files_.has_small_blocks()) stripes |= Stripes::of(entry.block, blocks);
      requests[count] = request(entry);
      entries[count++] = &entry;
    }
    if (count == 0) return;
    // A hole is made of whole pages: a neighbour must not make one while we write.
    const Stripes::Guard guard(stripes_, stripes);
    device->run({requests, count});
    for (std::size_t i = 0; i < count; ++i) {
      auto& entry = *entries[i];
      entry.outcome = outcome_of(requests[i], why);
      if (entry.outcome != Outcome::kOk) continue;
      files_.settle_in(current, entry.block, blocks_in(entry.from.size()));
      entry.version = 1;
    }
  }

  ScratchFiles files_;
  base::Mutex reaching_;  // held by who makes the file longer
  Stripes stripes_;
  base::Mutex counters_mutex_;
  std::map<std::string, std::int64_t> counters_ FARHEAP_GUARDED_BY(counters_mutex_);
};

}  // namespace

StoreResult make_scratch_file_store(std::string place, const StoreOptions& options, OpenScratchFile open_file) {
  auto first = open_file();
  if (!first) return fail(std::move(first.error()));
  return std::make_unique<ScratchFileStore>(std::move(place), options, std::move(open_file), std::move(*first));
}

}  // namespace farheap::store
