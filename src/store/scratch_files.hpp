// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The files of a scratch store, and which of them each block is in, its home. Until the first fork there is one. At a
// fork the file that was written to is closed to writing for ever: parent and child each go on in a fresh file of their
// own, which the other never has open, and the child keeps the older ones for reading only. So a child that turns
// against its parent (it has become another user, and is broken into) finds no byte that was written after the fork,
// and can change none that was written before. No page is encrypted for that, and nothing that is known of a block lies
// in memory that the two share.
//
// A file is closed when none of this process's blocks is in it any more. The space of single blocks is given back at
// once in the file that is written to; in an older one by who opened it, as soon as all children have ended that may
// read it: each of them holds the end of a pipe. When there are many files, the one with the fewest blocks is copied
// into another.
//
// Invariant: a block's home is set after its bytes are there, and cleared before its space is given back.
//
// Thread-safety: any thread that has the gate. Known to scratch_file*.cpp only.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "os/spare_descriptors.hpp"
#include "store/block_table.hpp"
#include "store/file_store.hpp"

namespace farheap::store {

using Home = std::uint8_t;  // the number of a file; kNowhere: the block is absent
inline constexpr Home kNowhere = 0;
inline constexpr Home kMostFiles = 24;

class ScratchFile {
 public:
  explicit ScratchFile(std::unique_ptr<FileDevice> its_device) : device(std::move(its_device)) {}

  const std::unique_ptr<FileDevice> device;
  bool mine = true;                      // opened by this process, and not by one that it was forked from
  std::atomic<std::uint64_t> blocks{0};  // of this process that have their home here

  void add_left(std::uint64_t block);
  [[nodiscard]] std::vector<BlockRun> take_left();
  [[nodiscard]] bool has_left();

 private:
  base::Mutex left_lock_;
  std::vector<BlockRun> left_ FARHEAP_GUARDED_BY(left_lock_);  // have left, but children may still read them
};

// One end of a pipe. Where children have the other, this one says when the last of them has gone.
class PipeEnd {
 public:
  explicit PipeEnd(int file = -1);
  ~PipeEnd();
  PipeEnd(PipeEnd&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  PipeEnd& operator=(PipeEnd&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  [[nodiscard]] bool is_there() const { return file_ >= 0; }
  [[nodiscard]] bool is_the_last() const;

 private:
  int file_;
};

class ScratchFiles {
 public:
  // `subject`: for messages.
  ScratchFiles(std::string subject, std::size_t block_bytes, OpenScratchFile open_file,
               std::unique_ptr<FileDevice> first);

  // Shared by who works with blocks, held alone while files come and go.
  base::SharedMutex gate;

  [[nodiscard]] bool gives_back() const { return gives_back_; }
  [[nodiscard]] bool has_small_blocks() const { return has_small_blocks_; }
  [[nodiscard]] std::uint64_t present() const { return present_.load(); }
  // No block from here on was ever there.
  [[nodiscard]] std::uint64_t end() const { return homes_.end(); }
  [[nodiscard]] Home home_of(std::uint64_t block) const {
    const auto* const home = homes_.find(block);
    return home == nullptr ? kNowhere : home->load(std::memory_order_acquire);
  }
  // How many blocks from `first` on, at most `count`, have the home of the first.
  [[nodiscard]] std::size_t same_home(std::uint64_t first, std::size_t count) const;
  // Of what is known of these blocks. False: there is none.
  [[nodiscard]] bool make_room(std::uint64_t first, std::uint64_t count);

  // The one that is written to; kNowhere has none.
  [[nodiscard]] Home current() const FARHEAP_REQUIRES_SHARED(gate) { return current_; }
  // nullptr: there is none, as why_no_file() says of the one that is written to, or it was not handed on.
  [[nodiscard]] FileDevice* device(Home home) const FARHEAP_REQUIRES_SHARED(gate) {
    return files_[home] == nullptr ? nullptr : files_[home]->device.get();
  }
  [[nodiscard]] const char* why_no_file() const FARHEAP_REQUIRES_SHARED(gate) { return why_no_file_.c_str(); }
  [[nodiscard]] Result<std::uint64_t> space_bytes() const FARHEAP_REQUIRES_SHARED(gate);

  // They were written to that file. Requires: make_room().
  void settle_in(Home home, std::uint64_t first, std::uint64_t count) FARHEAP_REQUIRES_SHARED(gate);
  // They are absent from now on, and their space is given back as soon as that may be.
  [[nodiscard]] Status forget(std::uint64_t first, std::uint64_t count) FARHEAP_REQUIRES_SHARED(gate);

  // Closes files that are empty, and gives space back that nobody reads any more. Not where somebody works with blocks.
  void tidy_up() FARHEAP_EXCLUDES(gate);

  // As CopiedByFork (scratch_files_fork.cpp).
  void before_fork() FARHEAP_ACQUIRE(gate);
  void after_fork_in_parent(bool forked) FARHEAP_RELEASE(gate);
  void after_fork_in_child() FARHEAP_RELEASE(gate);

 private:
  static constexpr char kWhat[] = "the store";
  static constexpr int kToFork = 6;  // descriptors: the next file twice, a pipe, and to move them

  void leave(Home home, std::uint64_t block) FARHEAP_REQUIRES_SHARED(gate);
  [[nodiscard]] Status give_back(Home home, const BlockRun& run) FARHEAP_REQUIRES_SHARED(gate);
  void tidy_up_alone() FARHEAP_REQUIRES(gate);
  void give_back_left(Home home) FARHEAP_REQUIRES(gate);

  // Where it fails, the parent goes on as it was, and the child has no blocks.
  [[nodiscard]] Status get_ready_to_fork() FARHEAP_REQUIRES(gate);
  [[nodiscard]] Status open_next() FARHEAP_REQUIRES(gate);
  void forget_fork() FARHEAP_REQUIRES(gate);
  [[nodiscard]] Home free_number() const FARHEAP_REQUIRES(gate);
  [[nodiscard]] std::ptrdiff_t free_numbers() const FARHEAP_REQUIRES(gate);
  // Copies the file with the fewest blocks into the one that is written to, and closes it.
  [[nodiscard]] Status fold_one() FARHEAP_REQUIRES(gate);
  [[nodiscard]] Status copy_all(Home from, Home to) FARHEAP_REQUIRES(gate);

  const std::string subject_;
  const std::size_t block_bytes_;
  const OpenScratchFile open_file_;
  const bool gives_back_;
  const bool has_small_blocks_;
  os::SpareDescriptors spare_{kToFork};
  std::array<std::unique_ptr<ScratchFile>, kMostFiles + 1> files_ FARHEAP_GUARDED_BY(gate);
  Home current_ FARHEAP_GUARDED_BY(gate) = kNowhere;
  BlockTable<std::atomic<Home>> homes_;
  std::atomic<std::uint64_t> present_{0};
  std::atomic<bool> untidy_{false};

  // An end for each fork whose children may read our files, and the other ends of those of our parents.
  std::vector<PipeEnd> children_ FARHEAP_GUARDED_BY(gate);
  std::vector<PipeEnd> held_ FARHEAP_GUARDED_BY(gate);
  // From before_fork() until the fork is over:
  Home next_ FARHEAP_GUARDED_BY(gate) = kNowhere;  // what the parent writes to then
  bool handed_on_ FARHEAP_GUARDED_BY(gate) = true;
  PipeEnd parents_end_ FARHEAP_GUARDED_BY(gate), childs_end_ FARHEAP_GUARDED_BY(gate);

  std::string why_no_file_ FARHEAP_GUARDED_BY(gate);
};

}  // namespace farheap::store
