// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The engines whose libraries have threads and a C++ runtime's worth of symbols. They run in a process of their own,
// `farheap-engines`; programs reach them through open_beside() of the store layer. Each is an ordinary Store, so that
// tests can also open it in process.
//
// Thread-safety: any thread.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "store/kinds.hpp"

namespace farheap::engines {

struct Engine {
  std::string_view scheme;  // as in the table of kinds (store/kinds.cpp)
  store::StoreResult (*open)(const std::string& place, const store::Parameters&, const StoreOptions&) = nullptr;
  const store::Keeper* keeper = nullptr;
};

// Those of this build.
[[nodiscard]] std::span<const Engine> engine_table();

// nullptr: it has none of this scheme.
[[nodiscard]] inline const Engine* find_engine(std::span<const Engine> table, std::string_view scheme) {
  const auto found = std::ranges::find(table, scheme, &Engine::scheme);
  return found != table.end() ? &*found : nullptr;
}

// ---- one a library; each is in the build only where its FARHEAP_HAVE_... is

[[nodiscard]] store::StoreResult open_rocksdb(const std::string& place, const store::Parameters&, const StoreOptions&);
extern const store::Keeper kRocksDbKeeper;

[[nodiscard]] store::StoreResult open_bigtable(const std::string& place, const store::Parameters&, const StoreOptions&);
extern const store::Keeper kBigtableKeeper;

[[nodiscard]] store::StoreResult open_spanner(const std::string& place, const store::Parameters&, const StoreOptions&);
extern const store::Keeper kSpannerKeeper;

[[nodiscard]] store::StoreResult open_etcd(const std::string& place, const store::Parameters&, const StoreOptions&);
extern const store::Keeper kEtcdKeeper;

[[nodiscard]] store::StoreResult open_datastore(const std::string& place, const store::Parameters&,
                                                const StoreOptions&);
extern const store::Keeper kDatastoreKeeper;

}  // namespace farheap::engines
