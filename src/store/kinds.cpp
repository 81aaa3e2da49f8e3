// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one table of engines and decorators. The parser's vocabulary, store_kinds() and open_store() derive from it.
#include "store/kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "store/marks.hpp"
#include "store/secrets.hpp"
#include "store/split_store.hpp"
#include "store/two_halves.hpp"

namespace farheap {
namespace store {
namespace {

using EngineOpener = StoreResult (*)(const std::string&, const Parameters&, const StoreOptions&);
using DecoratorOpener = StoreResult (*)(const OpenInner&, const Parameters&, const StoreOptions&);

struct Kind {
  StoreKind shown;
  std::span<const std::string_view> parameters;
  EngineOpener engine = nullptr;  // neither of the two: this build is without it
  DecoratorOpener decorator = nullptr;
  bool library_allocates = false;
  const Keeper* keeper = nullptr;
};

constexpr std::string_view kSlowParameters[] = {"delay_us", "mb_s"};
constexpr std::string_view kFaultyParameters[] = {"seed", "error",   "torn",      "lost",      "short",
                                                  "flip", "unknown", "sync_lost", "full_after"};

constexpr std::string_view kLmdbParameters[] = {"sync"};
constexpr std::string_view kCompressParameters[] = {"codec", "level"};
#if defined(FARHEAP_HAVE_ZSTD) || defined(FARHEAP_HAVE_LZ4)
constexpr DecoratorOpener kOpenCompress = open_compress;
#else
constexpr DecoratorOpener kOpenCompress = nullptr;
#endif
#ifdef FARHEAP_HAVE_SODIUM
constexpr DecoratorOpener kOpenEncrypt = open_encrypt;
#else
constexpr DecoratorOpener kOpenEncrypt = nullptr;
#endif
#ifdef FARHEAP_HAVE_LMDB
constexpr EngineOpener kOpenLmdb = open_lmdb;
constexpr const Keeper* kKeepLmdb = &kLmdbKeeper;
#else
constexpr EngineOpener kOpenLmdb = nullptr;
constexpr const Keeper* kKeepLmdb = nullptr;
#endif

// Of every engine that is a server: one attempt lasts timeout_ms at most, and a server that does not answer, or refuses
// for the time being, is asked again for patience_s.
constexpr std::string_view kServerParameters[] = {"timeout_ms", "patience_s"};
constexpr std::string_view kRedisParameters[] = {"timeout_ms",   "patience_s", "replicas",  "user",     "password_file",
                                                 "password_env", "ca_file",    "cert_file", "key_file", "server_name"};
constexpr std::string_view kEtcdParameters[] = {"timeout_ms",   "patience_s", "user",      "password_file",
                                                "password_env", "ca_file",    "cert_file", "key_file"};
constexpr std::string_view kBigtableParameters[] = {"timeout_ms", "patience_s", "app_profile"};
constexpr std::string_view kRocksDbParameters[] = {"sync"};
#ifdef FARHEAP_HAVE_REDIS
constexpr EngineOpener kOpenRedis = open_redis, kOpenRedisCluster = open_redis_cluster;
constexpr const Keeper *kKeepRedis = &kRedisKeeper, *kKeepRedisCluster = &kRedisClusterKeeper;
#else
constexpr EngineOpener kOpenRedis = nullptr, kOpenRedisCluster = nullptr;
constexpr const Keeper *kKeepRedis = nullptr, *kKeepRedisCluster = nullptr;
#endif
#ifdef FARHEAP_HAVE_ROCKSDB
constexpr EngineOpener kOpenRocksDb = open_beside;
constexpr const Keeper* kKeepRocksDb = &kBesideKeeper;
#else
constexpr EngineOpener kOpenRocksDb = nullptr;
constexpr const Keeper* kKeepRocksDb = nullptr;
#endif
#ifdef FARHEAP_HAVE_BIGTABLE
constexpr EngineOpener kOpenBigtable = open_beside;
constexpr const Keeper* kKeepBigtable = &kBesideKeeper;
#else
constexpr EngineOpener kOpenBigtable = nullptr;
constexpr const Keeper* kKeepBigtable = nullptr;
#endif
#ifdef FARHEAP_HAVE_ETCD
constexpr EngineOpener kOpenEtcd = open_beside;
constexpr const Keeper* kKeepEtcd = &kBesideKeeper;
#else
constexpr EngineOpener kOpenEtcd = nullptr;
constexpr const Keeper* kKeepEtcd = nullptr;
#endif
#ifdef FARHEAP_HAVE_DATASTORE
constexpr EngineOpener kOpenDatastore = open_beside;
constexpr const Keeper* kKeepDatastore = &kBesideKeeper;
#else
constexpr EngineOpener kOpenDatastore = nullptr;
constexpr const Keeper* kKeepDatastore = nullptr;
#endif
#ifdef FARHEAP_HAVE_SPANNER
constexpr EngineOpener kOpenSpanner = open_beside;
constexpr const Keeper* kKeepSpanner = &kBesideKeeper;
#else
constexpr EngineOpener kOpenSpanner = nullptr;
constexpr const Keeper* kKeepSpanner = nullptr;
#endif

constexpr Kind kKinds[] = {
    {.shown = {"mem", "mem:", "blocks in this process's own memory, for tests and measurements"}, .engine = open_mem},
    {.shown = {"file", "file:DIR | file:FILE", "a file on a local disk, past the page cache, unlinked from birth"},
     .engine = open_file,
     .keeper = &kFileKeeper},
    {.shown = {"lmdb", "lmdb:DIR | lmdb:FILE", "an LMDB database, shared by the processes of one machine if kept"},
     .parameters = kLmdbParameters,
     .engine = kOpenLmdb,
     .library_allocates = true,
     .keeper = kKeepLmdb},
    {.shown = {"redis", "redis://[USER@]HOST[:PORT][/DATABASE[/NAME]] | redis:///PATH/SOCKET[/DATABASE[/NAME]]",
               "a Redis server"},
     .parameters = kRedisParameters,
     .engine = kOpenRedis,
     .keeper = kKeepRedis},
    {.shown = {"rediss", "rediss://[USER@]HOST[:PORT][/DATABASE[/NAME]]", "a Redis server, by TLS"},
     .parameters = kRedisParameters,
     .engine = kOpenRedis,
     .keeper = kKeepRedis},
    {.shown = {"redis+cluster", "redis+cluster://HOST[:PORT][,HOST[:PORT]]...[/NAME]", "a Redis Cluster"},
     .parameters = kRedisParameters,
     .engine = kOpenRedisCluster,
     .keeper = kKeepRedisCluster},
    {.shown = {"rediss+cluster", "rediss+cluster://HOST[:PORT][,HOST[:PORT]]...[/NAME]", "a Redis Cluster, by TLS"},
     .parameters = kRedisParameters,
     .engine = kOpenRedisCluster,
     .keeper = kKeepRedisCluster},
    {.shown = {"rocksdb", "rocksdb:DIR", "a RocksDB database, for one process at a time"},
     .parameters = kRocksDbParameters,
     .engine = kOpenRocksDb,
     .keeper = kKeepRocksDb},
    {.shown = {"bigtable", "bigtable://PROJECT/INSTANCE/TABLE[/NAME]", "a table of Bigtable or its emulator"},
     .parameters = kBigtableParameters,
     .engine = kOpenBigtable,
     .keeper = kKeepBigtable},
    {.shown = {"etcd", "etcd://HOST[:PORT][,HOST[:PORT]]...[/NAME]",
               "an etcd cluster: small heaps, and what must agree"},
     .parameters = kEtcdParameters,
     .engine = kOpenEtcd,
     .keeper = kKeepEtcd},
    {.shown = {"datastore", "datastore://PROJECT[/NAME]", "Google's Datastore or its emulator"},
     .parameters = kServerParameters,
     .engine = kOpenDatastore,
     .keeper = kKeepDatastore},
    {.shown = {"spanner", "spanner://PROJECT/INSTANCE/DATABASE[/NAME]", "a Spanner database or its emulator"},
     .parameters = kServerParameters,
     .engine = kOpenSpanner,
     .keeper = kKeepSpanner},
    {.shown = {"checksum", "checksum+...", "finds blocks whose bytes are not those that were written", true},
     .decorator = open_checksum},
    {.shown = {"encrypt", "encrypt+...", "encrypts blocks and finds those that were changed; the key is in a file",
               true},
     .decorator = kOpenEncrypt},
    {.shown = {"compress", "compress+...?codec=zstd|lz4&level=N", "packs blocks closely, so that fewer bytes move",
               true},
     .parameters = kCompressParameters,
     .decorator = kOpenCompress,
     .library_allocates = true},
    {.shown = {"slow", "slow+...?delay_us=N&mb_s=N", "adds a delay to every call and limits the bandwidth", true},
     .parameters = kSlowParameters,
     .decorator = open_slow},
    {.shown = {"faulty", "faulty+...?seed=N&error=RATE&torn=&lost=&short=&flip=&unknown=&sync_lost=&full_after=SIZE",
               "breaks its promises at given rates, repeatably, for tests", true},
     .parameters = kFaultyParameters,
     .decorator = open_faulty},
};

const Kind& find(std::string_view scheme) {
  for (const auto& kind : kKinds) {
    if (kind.shown.scheme == scheme) return kind;
  }
  std::abort();  // the parser let through what is not in its vocabulary
}

// Ciphertext does not pack, and a checksum beside a seal finds nothing that the seal does not.
Status check_company_of_encrypt(const StoreUri& uri) {
  const auto place_of = [&](std::string_view name) { return std::ranges::find(uri.decorators, name); };
  const auto wrong = [&](std::string why, std::string remedy) {
    return fail(ErrorCode::kInvalidArgument, "not a store", uri.text(), std::move(why), std::move(remedy));
  };
  const auto encrypt = place_of("encrypt");
  if (encrypt == uri.decorators.end()) return {};
  if (place_of("checksum") != uri.decorators.end()) {
    return wrong("encrypt+ finds changed blocks by itself", "leave checksum+ out");
  }
  if (encrypt < place_of("compress") && place_of("compress") != uri.decorators.end()) {
    return wrong("what is encrypted does not compress", "write compress+ before encrypt+");
  }
  return {};
}

Error not_in_build(const StoreUri& uri, const std::string& scheme) {
  return {ErrorCode::kUnavailable, "cannot open the store", uri.text(),
          "this build of Farheap is without '" + scheme + "'", "configure with its library installed"};
}

StoreResult open_level(const StoreUri& uri, std::size_t level, const StoreOptions& options) {
  const bool is_engine = level == uri.decorators.size();
  const std::string& scheme = is_engine ? uri.engine : uri.decorators[level];
  const Kind& kind = find(scheme);
  const Parameters parameters(uri, scheme);
  if (kind.engine == nullptr && kind.decorator == nullptr) {
    return fail(not_in_build(uri, scheme));
  }
  if (is_engine) return kind.engine(uri.place, parameters, options);
  return kind.decorator([&](const StoreOptions& inner) { return open_level(uri, level + 1, inner); }, parameters,
                        options);
}

}  // namespace

std::span<const Vocabulary> vocabulary() {
  static const auto kAll = [] {
    std::vector<Vocabulary> all;
    for (const auto& kind : kKinds) {
      all.push_back({kind.shown.scheme, kind.shown.form, kind.shown.decorator, kind.parameters});
    }
    return all;
  }();
  return kAll;
}

bool allocates_through_a_library(std::string_view uri) {
  if (const auto parts = split_uri(uri)) {
    return allocates_through_a_library(parts->pages) || allocates_through_a_library(parts->sync);
  }
  const auto parsed = parse_uri(uri, vocabulary());
  const auto allocates = [](const std::string& scheme) { return find(scheme).library_allocates; };
  return parsed && (allocates(parsed->engine) || std::ranges::any_of(parsed->decorators, allocates));
}

bool outlives_its_process(std::string_view uri) {
  if (const auto parts = split_uri(uri)) return outlives_its_process(parts->pages) || outlives_its_process(parts->sync);
  const auto parsed = parse_uri(uri, vocabulary());
  return parsed && find(parsed->engine).keeper != nullptr;
}

bool is_at_a_server(std::string_view uri) {
  if (const auto parts = split_uri(uri)) return is_at_a_server(parts->pages) || is_at_a_server(parts->sync);
  const auto parsed = parse_uri(uri, vocabulary());
  return parsed && std::ranges::find(find(parsed->engine).parameters, kServerParameters[1]) !=
                       find(parsed->engine).parameters.end();
}

StoreResult open_marked(std::string_view uri, const StoreOptions& options) {
  if (const auto parts = split_uri(uri)) return open_two(*parts, options);
  auto parsed = parse_uri(uri, vocabulary());
  if (!parsed) return fail(std::move(parsed.error()));
  if (auto ok = check_company_of_encrypt(*parsed); !ok) return fail(std::move(ok.error()));
  return open_level(*parsed, 0, options);
}

}  // namespace store

Result<std::unique_ptr<Store>> open_store(std::string_view uri, const StoreOptions& options) {
  auto opened = store::open_marked(uri, options);
  if (!opened || options.lifetime != Lifetime::kKeep) return opened;
  const auto mark = store::mark_of(**opened);
  return mark ? fail(store::mark_error(*mark, store::without_secrets(uri))) : std::move(opened);
}

namespace {

// Decorators keep nothing of their own.
template <class Wanted, class Ask>
Wanted ask_keeper(std::string_view uri, Ask ask) {
  auto parsed = store::parse_uri(uri, store::vocabulary());
  if (!parsed) return fail(std::move(parsed.error()));
  const store::Kind& kind = store::find(parsed->engine);
  if (kind.engine == nullptr) return fail(store::not_in_build(*parsed, parsed->engine));
  if (kind.keeper == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "cannot look at kept stores", parsed->text(),
                fmt::format("{}: keeps none", parsed->engine), "`farheap store kinds` lists the engines");
  }
  return ask(*kind.keeper, *parsed, store::Parameters(*parsed, parsed->engine));
}

}  // namespace

Result<bool> is_store_there(std::string_view uri, const StoreOptions& options) {
  if (const auto parts = store::split_uri(uri)) return store::are_both_there(*parts, options);
  return ask_keeper<Result<bool>>(uri, [&](const auto& keeper, const auto& parsed, const auto& parameters) {
    return keeper.is_there(parsed.place, parameters, options);
  });
}

Result<std::vector<StoreListing>> list_stores(std::string_view uri, const StoreOptions& options) {
  if (const auto parts = store::split_uri(uri)) {
    if (auto ok = store::check_split(*parts); !ok) return fail(std::move(ok.error()));
    auto all = list_stores(parts->pages, options);
    auto sync = all ? list_stores(parts->sync, options) : all;
    if (!sync) return sync;
    all->insert(all->end(), sync->begin(), sync->end());
    return all;
  }
  return ask_keeper<Result<std::vector<StoreListing>>>(
      uri, [&](const auto& keeper, const auto& parsed, const auto& parameters) {
        return keeper.list(parsed.place, parameters, options);
      });
}

namespace {

Status remove_one(std::string_view uri, const StoreOptions& options) {
  return ask_keeper<Status>(uri, [&](const auto& keeper, const auto& parsed, const auto& parameters) {
    return keeper.remove(parsed.place, parameters, options);
  });
}

// As far as it lets itself be opened: what is damaged may be removed.
bool is_pages_of_two(std::string_view uri, StoreOptions options) {
  const auto there = list_stores(uri, options);
  if (!there || there->size() != 1) return false;
  options.lifetime = Lifetime::kKeep;
  options.block_bytes = there->front().block_bytes;
  const auto opened = store::open_marked(uri, options);
  return opened && store::mark_of(**opened) == store::Mark::kPagesOfTwo;
}

}  // namespace

Status remove_store(std::string_view uri, const StoreOptions& options) {
  if (const auto parts = store::split_uri(uri)) {
    if (auto ok = store::check_split(*parts); !ok) return ok;
    auto sync = remove_one(parts->sync, options);  // the roots first
    if (!sync && sync.error().code != ErrorCode::kNotFound) return sync;
    auto pages = remove_one(parts->pages, options);
    const bool only_pages_absent = !pages && pages.error().code == ErrorCode::kNotFound && sync.has_value();
    return only_pages_absent ? Status{} : pages;
  }
  if (!is_pages_of_two(uri, options)) return remove_one(uri, options);
  const std::string shown = store::without_secrets(uri);
  return fail(ErrorCode::kConflict, "cannot remove the store", shown, "it was made as one of two",
              fmt::format("`farheap store rm 'pages={},sync=URI'` removes both, and the one that is left", shown));
}

std::span<const StoreKind> store_kinds() {
  static const auto kAll = [] {
    std::vector<StoreKind> all;
    for (const auto& kind : store::kKinds) {
      if (kind.engine != nullptr || kind.decorator != nullptr) all.push_back(kind.shown);
    }
    return all;
  }();
  return kAll;
}

}  // namespace farheap
