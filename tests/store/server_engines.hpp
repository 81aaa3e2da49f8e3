// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The engines that tests start servers of, by name.
//
// Thread-safety: as servers.hpp.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <farheap/store.hpp>
#include <string_view>

#include "tests/store/servers.hpp"

namespace farheap::test {

constexpr int kNotTested = 77;  // ctest's SKIP_RETURN_CODE

struct Engine {
  std::string_view name;
  std::string_view scheme;
  Result<TestServers> (*start)();
};
inline constexpr Engine kEngines[] = {
    {"redis", "redis", [] { return start_redis(); }},
    {"redis-cluster", "redis+cluster", start_redis_cluster},
    {"etcd", "etcd", [] { return start_etcd(1); }},
    {"etcd-3", "etcd", [] { return start_etcd(3); }},
    {"bigtable", "bigtable", start_bigtable},
    {"datastore", "datastore", start_datastore},
    {"spanner", "spanner", start_spanner},
};

inline int not_tested(std::string_view name, std::string_view why) {
  fmt::print("NOT TESTED: {}: {}\n", name, why);
  return kNotTested;
}

[[nodiscard]] inline bool is_in_build(const Engine& engine) {
  const auto kinds = store_kinds();
  return std::ranges::find(kinds, engine.scheme, &StoreKind::scheme) != kinds.end();
}

}  // namespace farheap::test
