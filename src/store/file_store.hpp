// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// file: the two stores behind it. Both keep block N at byte N * block_bytes of one file; they differ in what they
// know about a block. file_open.cpp chooses between them.
//
// Thread-safety: any thread; forked children too.
#pragma once

#include <farheap/store.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/uri_path.hpp"
#include "store/file_device.hpp"
#include "store/kinds.hpp"
#include "store/side_table.hpp"

namespace farheap::store {

// Opens one more nameless file of a scratch store.
using OpenScratchFile = std::function<Result<std::unique_ptr<FileDevice>>()>;

// Nothing outlives it: no versions, and what is known of a block is known to this process alone. A fork copies it
// (copied_by_fork.hpp).
[[nodiscard]] StoreResult make_scratch_file_store(std::string place, const StoreOptions& options,
                                                  OpenScratchFile open_file);

// Kept, and open in several processes at once: a version for each block.
[[nodiscard]] std::unique_ptr<Store> make_kept_file_store(std::string place, std::unique_ptr<FileDevice> device,
                                                          std::unique_ptr<SideTable> table);

// Of a finished request; where it failed, `why` is set.
[[nodiscard]] Outcome outcome_of(const os::IoRequest& io, const char*& why);

// What both have in common.
class FileStore : public Store {
 public:
  FileStore(std::string place, std::size_t block_bytes);
  std::string describe() const final { return base::path_uri("file", place_); }
  Limits limits() const final { return limits_; }
  Status get(std::span<Get> batch) final;
  Status put(std::span<Put> batch) final;

 protected:
  // Entries that are carried out together, with what they need on the stack.
  static constexpr std::size_t kTogether = 64;

  // At most kTogether entries of a batch that check() has passed; `why` is set where one fails.
  virtual void get_together(std::span<Get> batch, const char*& why) = 0;
  virtual void put_together(std::span<Put> batch, const char*& why) = 0;

  [[nodiscard]] std::size_t blocks_in(std::size_t bytes) const { return bytes / limits_.block_bytes; }
  [[nodiscard]] os::IoRequest request(const Get& entry) const;  // `file` is the device's to fill in
  [[nodiscard]] os::IoRequest request(const Put& entry) const;

  template <class Entry, class Together>
  [[nodiscard]] Status in_groups(std::span<Entry> batch, Together together);

  std::string place_;
  Limits limits_;
};

}  // namespace farheap::store
