// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// file: the two stores behind it. Both keep block N at byte N * block_bytes of one file; they differ in what they
// know about a block. file_open.cpp chooses between them.
//
// Thread-safety: any thread; forked children too.
#pragma once

#include <farheap/store.hpp>
#include <memory>
#include <string>

#include "base/uri_path.hpp"
#include "store/file_device.hpp"
#include "store/side_table.hpp"

namespace farheap::store {

// Nothing outlives it: a presence bit for each block, no versions.
[[nodiscard]] std::unique_ptr<Store> make_scratch_file_store(std::string place, std::unique_ptr<FileDevice> device,
                                                             std::unique_ptr<SideTable> table);

// Kept, and open in several processes at once: a version for each block.
[[nodiscard]] std::unique_ptr<Store> make_kept_file_store(std::string place, std::unique_ptr<FileDevice> device,
                                                          std::unique_ptr<SideTable> table);

// What both have in common.
class FileStore : public Store {
 public:
  FileStore(std::string place, std::unique_ptr<FileDevice> device, std::unique_ptr<SideTable> table);
  std::string describe() const final { return base::path_uri("file", place_); }
  Limits limits() const final { return limits_; }
  Status get(std::span<Get> batch) final;
  Status put(std::span<Put> batch) final;
  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) final;
  Result<StoreUsage> usage() final;
  Result<std::vector<NamedCounter>> counters() final { return table_->counters(); }

 protected:
  // Entries that are carried out together, with what they need on the stack.
  static constexpr std::size_t kTogether = 64;
  // Blocks that share a stripe of the table's locks: neighbours, so that a run takes few.
  static constexpr std::uint64_t kBlocksPerStripe = 64;

  // At most kTogether entries of a batch that check() has passed; `why` is set where one fails.
  virtual void get_together(std::span<Get> batch, const char*& why) = 0;
  virtual void put_together(std::span<Put> batch, const char*& why) = 0;

  [[nodiscard]] std::size_t blocks_in(std::size_t bytes) const { return bytes / limits_.block_bytes; }
  [[nodiscard]] static std::uint64_t stripes_of(std::uint64_t first, std::uint64_t count);
  [[nodiscard]] os::IoRequest request(const Get& entry) const;  // `file` is the device's to fill in
  [[nodiscard]] os::IoRequest request(const Put& entry) const;
  // Turns a finished request into an outcome; remembers the reason of the last failure for the Status.
  [[nodiscard]] Outcome settle(const os::IoRequest& io, const char*& why) const;

  template <class Entry, class Together>
  [[nodiscard]] Status in_groups(std::span<Entry> batch, Together together);

  std::string place_;
  std::unique_ptr<FileDevice> device_;
  std::unique_ptr<SideTable> table_;
  Limits limits_;
};

}  // namespace farheap::store
