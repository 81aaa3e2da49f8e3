// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/etcd/counter.hpp"

#include <algorithm>
#include <charconv>

#include "base/mutex.hpp"
#include "engines/etcd/rounds.hpp"
#include "engines/space/lost_races.hpp"

namespace farheap::engines::etcd {
namespace {

constexpr std::size_t kMostRemembered = 1024;

std::int64_t number_in(const std::string& text) {
  std::int64_t value = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::int64_t value_of(const api::RangeResponse& found) {
  return found.kvs_size() > 0 ? number_in(found.kvs(0).value()) : 0;
}

}  // namespace

Answer<std::int64_t> Counters::add(std::string_view counter, std::int64_t delta) {
  const auto key = space_.keys().counter(counter);
  if (delta == 0) return read(key);
  const base::LockGuard one_at_a_time(mutex_);
  if (counters_.size() >= kMostRemembered) counters_.clear();
  return add_to(counters_[key], key, delta);
}

Answer<std::int64_t> Counters::read(const std::string& key) {
  std::int64_t value = 0;
  const auto fill = [&](std::size_t, api::TxnRequest& request) {
    request.add_success()->mutable_request_range()->set_key(key);
  };
  const auto take = [&](std::size_t, const api::TxnResponse& response) {
    value = value_of(response.responses(0).response_range());
  };
  const auto end = run_rounds(space_, 1, false, fill, take);
  if (!end.status.ok()) return tl::unexpected(end.status);
  return value;
}

Answer<std::vector<NamedCounter>> Counters::all() {
  std::vector<NamedCounter> all;
  const auto prefix = space_.keys().counters();
  const auto fill = [&](std::size_t, api::TxnRequest& request) {
    auto& range = *request.add_success()->mutable_request_range();
    range.set_key(prefix);
    range.set_range_end(behind(prefix));
  };
  const auto take = [&](std::size_t, const api::TxnResponse& response) {
    for (const auto& kv : response.responses(0).response_range().kvs()) {
      all.push_back({kv.key().substr(prefix.size()), number_in(kv.value())});
    }
  };
  const auto end = run_rounds(space_, 1, false, fill, take);
  if (!end.status.ok()) return tl::unexpected(end.status);
  return all;
}

Answer<std::int64_t> Counters::add_to(Counter& counter, const std::string& key, std::int64_t delta) {
  for (unsigned lost_races = 0; !space_.is_lost(); ++lost_races) {
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
    put.set_lease(space_.lease());
    request.add_failure()->mutable_request_range()->set_key(key);
    const auto once = space_.once(request);
    if (!once) return tl::unexpected(once.error());
    if (once->done) {
      counter = {sum, once->revision};
      return sum;
    }
    const auto& found = once->found(0);
    counter = {value_of(found), found.kvs_size() > 0 ? found.kvs(0).mod_revision() : 0};
    if (lost_races > 0) pause_for_others(lost_races);
  }
  return tl::unexpected(grpc::Status(grpc::StatusCode::UNKNOWN, "the store is lost"));
}

}  // namespace farheap::engines::etcd
