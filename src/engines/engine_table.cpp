// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/engine_table.hpp"

namespace farheap::engines {
namespace {

// The first line is for builds without any: an array is not empty.
constexpr Engine kEngines[] = {
    {},
#ifdef FARHEAP_HAVE_ROCKSDB
    {"rocksdb", open_rocksdb, &kRocksDbKeeper},
#endif
#ifdef FARHEAP_HAVE_BIGTABLE
    {"bigtable", open_bigtable, &kBigtableKeeper},
#endif
#ifdef FARHEAP_HAVE_SPANNER
    {"spanner", open_spanner, &kSpannerKeeper},
#endif
#ifdef FARHEAP_HAVE_ETCD
    {"etcd", open_etcd, &kEtcdKeeper},
#endif
#ifdef FARHEAP_HAVE_DATASTORE
    {"datastore", open_datastore, &kDatastoreKeeper},
#endif
};

}  // namespace

std::span<const Engine> engine_table() { return std::span(kEngines).subspan(1); }

}  // namespace farheap::engines
