// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// etcd: for what must agree, and for small heaps: an etcd cluster holds 2 GiB unless it is told otherwise, on every
// member, and each write is on the disks of a quorum before it is acknowledged. So nothing acknowledged is lost while a
// quorum lives. The keys are specified in docs/formats.md.
//
// Whatever got no answer is found out by reading back: add() and compare-and-swap are done once and only once.
#include <fmt/format.h>

#include <charconv>
#include <random>
#include <thread>
#include <unordered_map>

#include "engines/engine_table.hpp"
#include "engines/etcd/blocks.hpp"
#include "engines/etcd/rounds.hpp"
#include "store/batch.hpp"

namespace farheap::engines {
namespace etcd {
namespace {

constexpr std::size_t kLargestBlock = std::size_t{1} << 20;

std::int64_t value_of(const api::RangeResponse& found) {
  std::int64_t value = 0;
  if (found.kvs_size() > 0) {
    const auto& text = found.kvs(0).value();
    (void)std::from_chars(text.data(), text.data() + text.size(), value);
  }
  return value;
}

class EtcdStore final : public Store {
 public:
  EtcdStore(std::unique_ptr<Space> space, std::size_t block_bytes) : space_(std::move(space)) {
    limits_.block_bytes = block_bytes;
    limits_.largest_value_bytes = std::size_t{4} << 20;
    limits_.largest_batch_bytes = std::size_t{16} << 20;
    limits_.largest_batch_operations = 4096;
    limits_.best_run_bytes = std::size_t{1} << 20;
  }

  std::string describe() const override { return space_->client().place().shown; }
  Limits limits() const override { return limits_; }
  Capabilities capabilities() const override {
    auto all = static_cast<Capabilities>(Capability::kVersions) | static_cast<Capabilities>(Capability::kCounters) |
               static_cast<Capabilities>(Capability::kLinearisable) | static_cast<Capabilities>(Capability::kSparse) |
               static_cast<Capabilities>(Capability::kSurvivesFailover);
    if (space_->is_kept()) {
      all |= static_cast<Capabilities>(Capability::kManyProcesses) |
             static_cast<Capabilities>(Capability::kManyMachines) | static_cast<Capabilities>(Capability::kDurable);
    }
    return all;
  }

  Status get(std::span<Get> batch) override {
    if (auto ok = store::check(batch, limits_, capabilities(), *this); !ok) return ok;
    return settle(batch, get_blocks(*space_, limits_.block_bytes, batch), "cannot read blocks");
  }

  Status put(std::span<Put> batch) override {
    if (auto ok = store::check(batch, limits_, capabilities(), *this); !ok) return ok;
    return settle(batch, put_blocks(*space_, limits_.block_bytes, batch), "cannot write blocks");
  }

  Status erase(std::uint64_t first, std::uint64_t count) override {
    if (count == 0) return done({}, "");
    const std::uint64_t last = count - 1 > ~std::uint64_t{0} - first ? ~std::uint64_t{0} : first + count - 1;
    return done(erase_blocks(*space_, first, last), "cannot erase blocks");
  }

  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override {
    const auto key = space_->keys().counter(counter);
    const auto sum = delta == 0 ? read_counter(key) : add_to_counter(key, delta);
    if (const auto ok = done(sum ? grpc::Status() : sum.error(), "cannot count"); !ok) return fail(ok.error());
    return *sum;
  }

  // etcd acknowledges what is on the disks of a quorum.
  Status sync() override { return done({}, ""); }

  Result<StoreUsage> usage() override {
    const auto count = count_blocks(*space_);
    if (auto ok = done(count ? grpc::Status() : count.error(), "cannot look at the store"); !ok) {
      return fail(ok.error());
    }
    return StoreUsage{.blocks = *count, .space_bytes = *count * (limits_.block_bytes + space_->keys().block(0).size())};
  }

 private:
  struct Counter {
    std::int64_t value = 0;
    std::int64_t revision = 0;  // of its key; 0: absent
  };

  Answer<std::int64_t> read_counter(const std::string& key) {
    std::int64_t value = 0;
    const auto fill = [&](std::size_t, api::TxnRequest& request) {
      request.add_success()->mutable_request_range()->set_key(key);
    };
    const auto take = [&](std::size_t, const api::TxnResponse& response) {
      value = value_of(response.responses(0).response_range());
    };
    const auto end = run_rounds(*space_, 1, false, fill, take);
    if (!end.status.ok()) return tl::unexpected(end.status);
    return value;
  }

  // Begins with what it was last; a wrong guess is answered with the truth.
  Answer<std::int64_t> add_to_counter(const std::string& key, std::int64_t delta) {
    const std::lock_guard one_at_a_time(counters_mutex_);
    if (counters_.size() >= kMostRemembered) counters_.clear();
    Counter& counter = counters_[key];
    for (unsigned lost_races = 0; !space_->is_lost(); ++lost_races) {
      const auto sum =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(counter.value) + static_cast<std::uint64_t>(delta));
      api::TxnRequest request;
      auto& compare = *request.add_compare();
      compare.set_key(key);
      compare.set_target(api::Compare::MOD);
      compare.set_result(api::Compare::EQUAL);
      compare.set_mod_revision(counter.revision);
      auto& put = *request.add_success()->mutable_request_put();
      put.set_key(key);
      put.set_value(std::to_string(sum));
      put.set_lease(space_->lease());
      request.add_failure()->mutable_request_range()->set_key(key);
      const auto once = space_->once(request);
      if (!once) return tl::unexpected(once.error());
      if (once->done) {
        counter = {sum, once->revision};
        return sum;
      }
      const auto& found = once->found(0);
      counter = {value_of(found), found.kvs_size() > 0 ? found.kvs(0).mod_revision() : 0};
      // So that those who race do not come back together.
      thread_local std::minstd_rand random{std::random_device{}()};
      const auto longest = 50u << std::min(lost_races, 6u);
      if (lost_races > 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % longest));
    }
    return tl::unexpected(grpc::Status(grpc::StatusCode::UNKNOWN, "the store is lost"));
  }

  Status done(const grpc::Status& status, const char* what) {
    if (space_->is_lost()) return fail(space_->lost_error());
    if (status.ok()) return {};
    if (status.error_code() == grpc::StatusCode::UNKNOWN) {
      return fail(ErrorCode::kUnknown, what, describe(), "no answer came: it may or may not have happened",
                  "read it back to know");
    }
    return fail(space_->client().error(status, what));
  }

  template <class Entry>
  Status settle(std::span<Entry> batch, const grpc::Status& status, const char* what) {
    if (space_->is_lost()) {
      for (auto& entry : batch) entry.outcome = Outcome::kCorrupt;
    }
    if (auto ok = done(status, what); !ok) return ok;
    return store::summary(std::span<const Entry>(batch), *this);
  }

  static constexpr std::size_t kMostRemembered = 1024;
  std::unique_ptr<Space> space_;
  Limits limits_;
  std::mutex counters_mutex_;
  std::unordered_map<std::string, Counter> counters_;
};

}  // namespace
}  // namespace etcd

store::StoreResult open_etcd(const std::string& place, const store::Parameters& parameters,
                             const StoreOptions& options) {
  auto client = etcd::Client::open(place, parameters, options);
  if (!client) return fail(std::move(client.error()));
  const auto& shown = (*client)->place().shown;
  if (auto ok = store::check_block_bytes(options.block_bytes, shown); !ok) return fail(std::move(ok.error()));
  if (options.block_bytes > etcd::kLargestBlock) {
    return fail(ErrorCode::kInvalidArgument, "cannot open the store", shown,
                fmt::format("etcd takes no blocks of {} bytes", options.block_bytes), "use blocks of at most 1 MiB");
  }
  auto space = etcd::Space::open(std::move(*client), options);
  if (!space) return fail(std::move(space.error()));
  return std::make_unique<etcd::EtcdStore>(std::move(*space), options.block_bytes);
}

}  // namespace farheap::engines
