// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one table of engines and decorators. The parser's vocabulary, store_kinds() and open_store() derive from it.
#include "store/kinds.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

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
};

constexpr std::string_view kSlowParameters[] = {"delay_us", "mb_s"};
constexpr std::string_view kFaultyParameters[] = {"seed",  "error", "torn",    "lost",
                                                  "short", "flip",  "unknown", "full_after"};

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
#else
constexpr EngineOpener kOpenLmdb = nullptr;
#endif

constexpr Kind kKinds[] = {
    {.shown = {"mem", "mem:", "blocks in this process's own memory, for tests and measurements"}, .engine = open_mem},
    {.shown = {"file", "file:DIR | file:FILE", "a file on a local disk, past the page cache, unlinked from birth"},
     .engine = open_file},
    {.shown = {"lmdb", "lmdb:DIR | lmdb:FILE", "an LMDB database, shared by the processes of one machine if kept"},
     .parameters = kLmdbParameters,
     .engine = kOpenLmdb,
     .library_allocates = true},
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
    {.shown = {"faulty", "faulty+...?seed=N&error=RATE&torn=&lost=&short=&flip=&unknown=&full_after=SIZE",
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

StoreResult open_level(const StoreUri& uri, std::size_t level, const StoreOptions& options) {
  const bool is_engine = level == uri.decorators.size();
  const std::string& scheme = is_engine ? uri.engine : uri.decorators[level];
  const Kind& kind = find(scheme);
  const Parameters parameters(uri, scheme);
  if (kind.engine == nullptr && kind.decorator == nullptr) {
    return fail(ErrorCode::kUnavailable, "cannot open the store", uri.text(),
                "this build of Farheap is without '" + scheme + "'", "configure with its library installed");
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
  const auto parsed = parse_uri(uri, vocabulary());
  const auto allocates = [](const std::string& scheme) { return find(scheme).library_allocates; };
  return parsed && (allocates(parsed->engine) || std::ranges::any_of(parsed->decorators, allocates));
}

}  // namespace store

Result<std::unique_ptr<Store>> open_store(std::string_view uri, const StoreOptions& options) {
  auto parsed = store::parse_uri(uri, store::vocabulary());
  if (!parsed) return fail(std::move(parsed.error()));
  if (auto ok = store::check_company_of_encrypt(*parsed); !ok) return fail(std::move(ok.error()));
  return store::open_level(*parsed, 0, options);
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
