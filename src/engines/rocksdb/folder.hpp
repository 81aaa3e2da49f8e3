// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The folder of a RocksDB database of ours: a marker file says that it is one and how long its blocks are, and a lock
// on the folder says that somebody has it open. Kept: the place itself, or farheap.rocksdb in it if it is a folder
// with something else in it. Scratch: a folder of its own in the place, which goes with its owner; what killed owners
// left is removed by the next one.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <farheap/store.hpp>
#include <optional>
#include <string>

namespace farheap::engines {

// What the marker says.
struct RocksDbMarker {
  std::uint64_t format = 0;
  std::uint64_t block_bytes = 0;
};

class RocksDbFolder {
 public:
  // Makes the folder unless it is there. kConflict while another has it open, kInvalidArgument if what is there is not
  // ours or has other blocks.
  [[nodiscard]] static Result<RocksDbFolder> open_kept(const std::string& place, std::size_t block_bytes);
  [[nodiscard]] static Result<RocksDbFolder> make_scratch(const std::string& place, std::size_t block_bytes);
  RocksDbFolder(RocksDbFolder&& other) noexcept;
  RocksDbFolder& operator=(RocksDbFolder&&) = delete;
  ~RocksDbFolder();  // a scratch folder is removed

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  RocksDbFolder(std::string path, int lock, bool is_scratch)
      : path_(std::move(path)), lock_(lock), is_scratch_(is_scratch) {}

  std::string path_;
  int lock_;  // the folder, open
  bool is_scratch_;
};

// Where a kept one of this place is, or would be.
[[nodiscard]] std::string kept_rocksdb_path(const std::string& place);
// nullopt: not a database of ours.
[[nodiscard]] std::optional<RocksDbMarker> rocksdb_marker(const std::string& path);

}  // namespace farheap::engines
