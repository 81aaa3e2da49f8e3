// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An engine as its own client library uses it best, without Farheap: pages of 4 KiB by number, in the batches that are
// fastest with it. This is the bound of paging over it.
//
// Thread-safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace farheap::bench {

inline constexpr std::size_t kPage = 4096;

class OwnClient {
 public:
  virtual ~OwnClient() = default;
  // So many pages at a time are fastest; as large as any buffer below.
  [[nodiscard]] virtual std::size_t batch() const = 0;
  // `count` pages from `first` on; false after saying why. Requires: the memory is aligned to 4096; count <= batch().
  [[nodiscard]] virtual bool write(std::uint64_t first, std::size_t count, const char* bytes) = 0;
  [[nodiscard]] virtual bool read(std::uint64_t first, std::size_t count, char* into) = 0;
  // One byte of a page that was written before: by what the engine has for a part of a value, or by the whole page, of
  // which `bytes` has all. These are what a load or a store of a translated program is compared with.
  [[nodiscard]] virtual bool put_byte(std::uint64_t page, std::size_t /*offset*/, const char* bytes) {
    return write(page, 1, bytes);
  }
  [[nodiscard]] virtual bool get_byte(std::uint64_t page, std::size_t /*offset*/, char* into) {
    return read(page, 1, into);
  }
};

// nullptr after saying why. `place`: a file, a folder, or HOST:PORT, for Redis also the path of a socket.
[[nodiscard]] std::unique_ptr<OwnClient> own_bigtable(const std::string& place);
[[nodiscard]] std::unique_ptr<OwnClient> own_datastore(const std::string& place);
[[nodiscard]] std::unique_ptr<OwnClient> own_etcd(const std::string& place);
[[nodiscard]] std::unique_ptr<OwnClient> own_file(const std::string& place);
[[nodiscard]] std::unique_ptr<OwnClient> own_lmdb(const std::string& place);
[[nodiscard]] std::unique_ptr<OwnClient> own_redis(const std::string& place);
[[nodiscard]] std::unique_ptr<OwnClient> own_redis_cluster(const std::string& place);
[[nodiscard]] std::unique_ptr<OwnClient> own_rocksdb(const std::string& place);
[[nodiscard]] std::unique_ptr<OwnClient> own_spanner(const std::string& place);
// Farheap's own adapter of a store, by URI: for engines that have no other client (mem:).
[[nodiscard]] std::unique_ptr<OwnClient> own_store(const std::string& uri);

}  // namespace farheap::bench
