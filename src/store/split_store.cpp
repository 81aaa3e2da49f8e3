// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/split_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "store/batch.hpp"
#include "store/contents.hpp"
#include "store/heap_blocks.hpp"

namespace farheap::store {
namespace {

constexpr char kSplitForm[] = "write it as pages=URI,sync=URI, for example pages=redis://h1,sync=etcd://h2";

bool is_for_sync(std::uint64_t block) { return block < kRoots || block >= kFirstLease; }

// Blocks of `sync` are neighbours there: some engines take no numbers as large as those of leases.
std::uint64_t in_sync(std::uint64_t block) { return block < kRoots ? block : block - kFirstLease + kRoots; }
std::uint64_t out_of_sync(std::uint64_t block) { return block < kRoots ? block : block - kRoots + kFirstLease; }

Get part_of(const Get& entry, std::uint64_t skip, std::uint64_t count, std::size_t block_bytes) {
  auto part = entry;
  part.block += skip;
  part.into = entry.into.subspan(skip * block_bytes, count * block_bytes);
  return part;
}
Put part_of(const Put& entry, std::uint64_t skip, std::uint64_t count, std::size_t block_bytes) {
  auto part = entry;
  part.block += skip;
  part.from = entry.from.subspan(skip * block_bytes, count * block_bytes);
  return part;
}

class SplitStore final : public Store {
 public:
  SplitStore(std::unique_ptr<Store> pages, std::unique_ptr<Store> sync, bool is_marked)
      : pages_(std::move(pages)),
        sync_(std::move(sync)),
        is_marked_(is_marked),
        block_bytes_(pages_->limits().block_bytes) {}

  std::string describe() const override { return SplitUri{pages_->describe(), sync_->describe()}.text(); }

  Capabilities capabilities() const override {
    const auto counters = static_cast<Capabilities>(Capability::kCounters);
    const auto both = pages_->capabilities() & sync_->capabilities();
    return (both & ~counters & ~static_cast<Capabilities>(Capability::kAtomicBatch)) |
           (sync_->capabilities() & counters);
  }

  Limits limits() const override {
    const auto one = pages_->limits();
    const auto two = sync_->limits();
    auto all = one;
    all.largest_value_bytes = std::min(one.largest_value_bytes, two.largest_value_bytes);
    all.largest_batch_bytes = std::min(one.largest_batch_bytes, two.largest_batch_bytes);
    all.largest_batch_operations = std::min(one.largest_batch_operations, two.largest_batch_operations);
    return all;
  }

  Status get(std::span<Get> batch) override {
    if (auto ok = check(batch, limits(), capabilities(), *this); !ok) return ok;
    Parts<Get> parts(batch, block_bytes_);
    const bool versions = has(capabilities(), Capability::kVersions);
    if (!versions) forget_known(parts);
    Status result;
    if (!parts.pages.empty()) result = pages_->get(parts.pages);
    if (!parts.sync.empty()) {
      if (auto got = sync_->get(parts.sync); !got && result) result = std::move(got);
    }
    parts.answer(batch);
    if (!versions) hide_versions(batch);
    return result;
  }

  Status put(std::span<Put> batch) override {
    if (auto ok = check(batch, limits(), capabilities(), *this); !ok) return ok;
    Parts<Put> parts(batch, block_bytes_);
    Status result;
    if (!parts.pages.empty()) {
      result = pages_->put(parts.pages);
      unsynced_.store(true, std::memory_order_release);
    }
    if (!parts.sync.empty()) {
      if (result && has_root(parts.sync)) result = make_pages_durable();
      if (result) {
        result = sync_->put(parts.sync);
      } else {
        for (Put& entry : parts.sync) entry.outcome = Outcome::kFailed;
      }
    }
    parts.answer(batch);
    if (!has(capabilities(), Capability::kVersions)) hide_versions(batch);
    return result;
  }

  std::unique_ptr<GetsInFlight> gets_in_flight(unsigned most) override {
    auto inner = pages_->gets_in_flight(most);
    return inner ? std::make_unique<PagesInFlight>(std::move(inner), block_bytes_,
                                                   has(capabilities(), Capability::kVersions))
                 : nullptr;
  }

  Status erase(std::uint64_t first, std::uint64_t count) override {
    Status result;
    each_part(first, count, [&](bool to_sync, std::uint64_t from, std::uint64_t blocks) {
      auto erased = to_sync ? sync_->erase(in_sync(from), blocks) : pages_->erase(from, blocks);
      if (!erased && result) result = std::move(erased);
    });
    return result;
  }

  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override { return sync_->add(counter, delta); }

  Status sync() override {
    if (auto done = make_pages_durable(); !done) return done;
    return sync_->sync();
  }

  Result<StoreUsage> usage() override {
    auto one = pages_->usage();
    if (!one) return one;
    const auto two = sync_->usage();
    if (!two) return fail(two.error());
    const auto pages = one->blocks - (is_marked_ ? std::min<std::uint64_t>(one->blocks, 1) : 0);
    return StoreUsage{pages + two->blocks, one->space_bytes + two->space_bytes};
  }

  Result<std::vector<BlockRun>> runs_from(std::uint64_t first) override {
    if (first < kRoots) {
      auto roots = sync_->runs_from(first);
      if (!roots) return roots;
      std::erase_if(*roots, [](const BlockRun& run) { return run.first >= kRoots; });
      for (BlockRun& run : *roots) run.count = std::min(run.count, kRoots - run.first);
      if (!roots->empty()) return roots;
    }
    if (first < kFirstLease) {
      auto pages = pages_->runs_from(std::max(first, kRoots));
      if (!pages || !pages->empty()) return pages;
    }
    auto leases = sync_->runs_from(in_sync(std::max(first, kFirstLease)));
    if (!leases) return leases;
    for (BlockRun& run : *leases) run.first = out_of_sync(run.first);
    return leases;
  }
  Result<std::vector<NamedCounter>> counters() override { return sync_->counters(); }

 private:
  // Calls visit(to sync, first, count) for each part of a range that goes to one of the two.
  template <class Visit>
  static void each_part(std::uint64_t first, std::uint64_t count, Visit visit) {
    while (count != 0) {
      const std::uint64_t end = first < kRoots ? kRoots : first < kFirstLease ? kFirstLease : 0;
      const std::uint64_t here = std::min(count, end - first);  // 0 - first: what is left of all numbers
      visit(is_for_sync(first), first, here);
      first += here, count -= here;
    }
  }

  // A batch taken apart. An entry that goes to both is as good as the worse of its parts.
  template <class Entry>
  struct Parts {
    Parts(std::span<Entry> batch, std::size_t block_bytes) {
      for (std::size_t i = 0; i < batch.size(); ++i) {
        each_part(batch[i].block, bytes_of(batch[i]) / block_bytes, [&](bool to_sync, auto first, auto count) {
          auto part = part_of(batch[i], first - batch[i].block, count, block_bytes);
          if (to_sync) part.block = in_sync(part.block);
          (to_sync ? sync : pages).push_back(part);
          (to_sync ? sync_of : pages_of).push_back(i);
        });
      }
    }
    void answer(std::span<Entry> batch) const {
      for (Entry& entry : batch) entry.outcome = Outcome::kPending;
      for (std::size_t i = 0; i < pages.size(); ++i) take(batch[pages_of[i]], pages[i]);
      for (std::size_t i = 0; i < sync.size(); ++i) take(batch[sync_of[i]], sync[i]);
    }
    static void take(Entry& entry, const Entry& part) {
      const bool first = entry.outcome == Outcome::kPending;
      if (first || entry.outcome == Outcome::kOk) entry.outcome = part.outcome;
      entry.version = first ? part.version : 0;
    }
    std::vector<Entry> pages, sync;
    std::vector<std::size_t> pages_of, sync_of;
  };

  // Where one of the two has no versions, the whole has none either.
  static void forget_known(Parts<Get>& parts) {
    for (auto* some : {&parts.pages, &parts.sync}) {
      for (Get& entry : *some) entry.known = 0;
    }
  }
  template <class Entry>
  static void hide_versions(std::span<Entry> batch) {
    for (Entry& entry : batch) entry.version = std::min<Version>(entry.version, 1);
  }

  static bool has_root(std::span<const Put> entries) {
    return std::ranges::any_of(entries, [](const Put& entry) { return entry.block < kRoots; });
  }

  Status make_pages_durable() {
    if (!unsynced_.exchange(false, std::memory_order_acq_rel)) return {};
    auto done = pages_->sync();
    if (!done) unsynced_.store(true, std::memory_order_release);
    return done;
  }

  class PagesInFlight final : public GetsInFlight {
   public:
    PagesInFlight(std::unique_ptr<GetsInFlight> inner, std::size_t block_bytes, bool versions)
        : inner_(std::move(inner)), block_bytes_(block_bytes), versions_(versions) {}
    bool begin(Get& entry) override {
      const auto last = entry.block + entry.into.size() / block_bytes_ - 1;
      return entry.known == 0 && !is_for_sync(entry.block) && !is_for_sync(last) && inner_->begin(entry);
    }
    Get* take() override {
      Get* const taken = inner_->take();
      if (taken != nullptr && !versions_) hide_versions(std::span(taken, 1));
      return taken;
    }
    int descriptor() const override { return inner_->descriptor(); }

   private:
    std::unique_ptr<GetsInFlight> inner_;
    std::size_t block_bytes_;
    bool versions_;
  };

  std::unique_ptr<Store> pages_;
  std::unique_ptr<Store> sync_;
  bool is_marked_;
  std::size_t block_bytes_;
  std::atomic<bool> unsynced_{false};  // put since pages_ was last made durable
};

}  // namespace

Status check_split(const SplitUri& uri) {
  const auto wrong = [&](std::string why) {
    return fail(ErrorCode::kInvalidArgument, "not a store", uri.text(), std::move(why), kSplitForm);
  };
  // As it was written: nobody has said the other half.
  const auto half = [](const std::string& there, const std::string& uri_there, const std::string& missing) {
    return fail(ErrorCode::kInvalidArgument, "not a store", there + uri_there, missing + " is missing",
                uri_there.empty() ? std::string(kSplitForm)
                                  : "for one store write " + uri_there + " alone; for two " + std::string(kSplitForm));
  };
  if (uri.pages.empty()) return half("sync=", uri.sync, "pages=");
  if (uri.sync.empty()) return half("pages=", uri.pages, "sync=");
  if (split_uri(uri.pages) || split_uri(uri.sync)) return wrong("one of the two is itself of two");
  return {};
}

StoreResult join_stores(std::unique_ptr<Store> pages, std::unique_ptr<Store> sync, bool is_marked) {
  if (pages->limits().block_bytes != sync->limits().block_bytes) {
    return fail(ErrorCode::kInvalidArgument, "cannot open the store",
                SplitUri{pages->describe(), sync->describe()}.text(), "their blocks are of different sizes");
  }
  return std::make_unique<SplitStore>(std::move(pages), std::move(sync), is_marked);
}

}  // namespace farheap::store
