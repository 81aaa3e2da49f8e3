// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The openers of every engine and decorator. kinds.cpp holds the one table that names them.
//
// Thread-safety: any thread.
#pragma once

#include <farheap/store.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/uri.hpp"

namespace farheap::store {

using StoreResult = Result<std::unique_ptr<Store>>;

[[nodiscard]] StoreResult open_mem(const std::string& place, const Parameters&, const StoreOptions&);
[[nodiscard]] StoreResult open_file(const std::string& place, const Parameters&, const StoreOptions&);
[[nodiscard]] StoreResult open_lmdb(const std::string& place, const Parameters&, const StoreOptions&);

// redis: and rediss:, as Parameters::kind() says.
[[nodiscard]] StoreResult open_redis(const std::string& place, const Parameters&, const StoreOptions&);
[[nodiscard]] StoreResult open_redis_cluster(const std::string& place, const Parameters&, const StoreOptions&);
// The engine Parameters::kind(), in a process beside this one: its library has threads and a C++ runtime's worth of
// symbols, which are not for a program that knows nothing of them.
[[nodiscard]] StoreResult open_beside(const std::string& place, const Parameters&, const StoreOptions&);

// An engine's kept stores seen from outside: is_store_there(), list_stores(), remove_store().
struct Keeper {
  Result<bool> (*is_there)(const std::string& place, const Parameters&, const StoreOptions&) = nullptr;
  Result<std::vector<StoreListing>> (*list)(const std::string& place, const Parameters&, const StoreOptions&) = nullptr;
  Status (*remove)(const std::string& place, const Parameters&, const StoreOptions&) = nullptr;
};
extern const Keeper kFileKeeper;
extern const Keeper kLmdbKeeper;
extern const Keeper kRedisKeeper;
extern const Keeper kRedisClusterKeeper;
extern const Keeper kBesideKeeper;

// A decorator opens what is below it, because it may need other blocks than it offers.
using OpenInner = std::function<StoreResult(const StoreOptions&)>;
[[nodiscard]] StoreResult open_checksum(const OpenInner&, const Parameters&, const StoreOptions&);
[[nodiscard]] StoreResult open_encrypt(const OpenInner&, const Parameters&, const StoreOptions&);
[[nodiscard]] StoreResult open_compress(const OpenInner&, const Parameters&, const StoreOptions&);
[[nodiscard]] StoreResult open_slow(const OpenInner&, const Parameters&, const StoreOptions&);
[[nodiscard]] StoreResult open_faulty(const OpenInner&, const Parameters&, const StoreOptions&);

// What parse_uri() accepts: every kind, those that this build lacks included.
[[nodiscard]] std::span<const Vocabulary> vocabulary();

// As open_store(), also a store with a mark in its block 0 (marks.hpp).
[[nodiscard]] StoreResult open_marked(std::string_view uri, const StoreOptions& options);

// A library behind one of its kinds (of either store, where it names two) allocates by the malloc() that the whole
// process has. False if it is no store's URI.
[[nodiscard]] bool allocates_through_a_library(std::string_view uri);

// A scratch store there outlives a process that ends without closing it, until somebody opens another there. False if
// it is no store's URI.
[[nodiscard]] bool outlives_its_process(std::string_view uri);

// What it holds is at a server, which may be lost while the process goes on. False if it is no store's URI.
[[nodiscard]] bool is_at_a_server(std::string_view uri);

}  // namespace farheap::store
