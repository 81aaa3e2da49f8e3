// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a kept heap lies, and who has it open: a lock file beside the store, locked with flock(), so that the kernel
// lets go of it with the process. It names the writer for those who are refused.
//
// Thread-safety: plain values.
#pragma once

#include <farheap/result.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace farheap::api {

struct HeapPlace {
  std::string uri;                  // of the store
  std::string snapshot;             // empty: the newest version
  std::string file;                 // that a store of this kind keeps its blocks in; empty: it keeps nothing (mem:)
  std::vector<std::string> others;  // the store's other files

  // kInvalidArgument for stores in which no heap can live.
  [[nodiscard]] static Result<HeapPlace> parse(std::string_view uri);
  [[nodiscard]] bool is_there() const;
  [[nodiscard]] std::string lock_file() const { return file + ".lock"; }

  // Removes the store's files. Whoever is killed in the middle leaves a removal that was begun: the next one who
  // creates or removes a heap there ends it. Requires: the lock for writing is held.
  [[nodiscard]] Status remove_files() const;
  [[nodiscard]] bool is_half_removed() const;

 private:
  [[nodiscard]] std::string leaving_file() const { return file + ".removed"; }
};

class HeapLock {
 public:
  enum class For { kReading, kWriting };
  // kConflict, with the holder's name, if somebody else's lock forbids it: one may write, or many read.
  [[nodiscard]] static Result<HeapLock> take(const HeapPlace& place, For what);

  HeapLock(HeapLock&& other) noexcept : file_(std::exchange(other.file_, -1)), names_holder_(other.names_holder_) {}
  HeapLock& operator=(HeapLock&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(names_holder_, other.names_holder_);
    return *this;
  }
  ~HeapLock();
  // In a forked child: it goes on as long as the parent has it.
  void leave_to_parent() { names_holder_ = false; }

 private:
  explicit HeapLock(int file) : file_(file) {}
  int file_;
  bool names_holder_ = false;
};

}  // namespace farheap::api
