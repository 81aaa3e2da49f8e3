// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a kept heap lies, and who has it open: a lock file beside the store, with record locks (F_OFD_SETLK), so that
// the kernel lets go of them with the process. It names the writer for those who are refused.
//
//   byte 2^40      held alone by who writes
//   byte 2^40 + 1  shared by all who have the heap open, alone by who creates or removes it
//   byte 2^41 + N  shared by who reads commit N
//
// Thread-safety: plain values.
#pragma once

#include <farheap/result.hpp>
#include <farheap/store.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "segment/version_leases.hpp"

namespace farheap::api {

struct HeapPlace {
  std::string uri;                  // of the store
  std::string snapshot;             // empty: the newest version
  std::string file;                 // that a store of this kind keeps its blocks in; empty: it keeps nothing (mem:)
  std::vector<std::string> others;  // the store's other files
  std::string locked;               // the file without symbolic links: whatever its name, it has one lock

  // kInvalidArgument for stores in which no heap can live.
  [[nodiscard]] static Result<HeapPlace> parse(std::string_view uri);
  [[nodiscard]] bool is_there() const;
  // kNotFound, in words.
  [[nodiscard]] tl::unexpected<Error> not_there() const;
  [[nodiscard]] Result<std::unique_ptr<Store>> open() const;
  // The same kind of store in another file.
  [[nodiscard]] std::string uri_with(const std::string& other_file) const;
  [[nodiscard]] std::string lock_file() const { return locked + ".lock"; }

  // Removes the store's files. Whoever is killed in the middle leaves a removal that was begun: the next one who
  // creates or removes a heap there ends it. Requires: the lock for writing is held.
  [[nodiscard]] Status remove_files() const;
  [[nodiscard]] bool is_half_removed() const;

 private:
  [[nodiscard]] std::string leaving_file() const { return file + ".removed"; }
};

class HeapLock final : public segment::VersionLeases {
 public:
  enum class For { kReading, kWriting, kAlone };
  // kConflict, with the holder's name, if somebody else's lock forbids it: one may write, many may read beside him, and
  // who creates or removes it is alone.
  [[nodiscard]] static Result<HeapLock> take(const HeapPlace& place, For what);
  // Takes nothing.
  [[nodiscard]] static Result<bool> has_writer(const HeapPlace& place);

  HeapLock(HeapLock&& other) noexcept
      : file_(std::exchange(other.file_, -1)),
        path_(std::move(other.path_)),
        names_holder_(other.names_holder_),
        reads_(other.reads_) {}
  HeapLock& operator=(HeapLock&&) = delete;
  ~HeapLock() override;
  // It was created: others may read it.
  [[nodiscard]] Status let_readers_in();
  [[nodiscard]] Status take(std::uint64_t commit) override;
  [[nodiscard]] Result<std::uint64_t> oldest() override;
  // In a forked child: it goes on as long as the parent has it.
  void leave_to_parent() { names_holder_ = false; }

 private:
  HeapLock(int file, std::string path) : file_(file), path_(std::move(path)) {}
  // False: somebody else's lock is in the way.
  [[nodiscard]] Result<bool> lock(std::uint64_t byte, short how);

  int file_;
  std::string path_;
  bool names_holder_ = false;
  std::uint64_t reads_ = kNobody;  // the commit of its lease
};

}  // namespace farheap::api
