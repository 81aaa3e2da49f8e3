// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FILE and FILE.versions of a kept store as a disk would have them if the power failed now. The program that includes
// this has the system calls that change them for its own (recorded_files.cpp), so all of Farheap above them runs as it
// is. FILE is known by its calls. FILE.versions is mapped: it is looked at around every call, and the kernel may write
// each of its pages at any of these moments.
//
// A sync can be made to fail. It loses what Linux loses: of FILE some of the writes since the last good sync; of
// FILE.versions some pages, which count as written until somebody writes to them again.
//
// Thread-safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace farheap::testing {

class RecordedFiles {
 public:
  using Bytes = std::vector<std::byte>;
  // One at a time; what the two files have is durable. From here on their calls are recorded.
  explicit RecordedFiles(std::string file);
  ~RecordedFiles();
  RecordedFiles(const RecordedFiles&) = delete;
  RecordedFiles& operator=(const RecordedFiles&) = delete;

  // Of the syncs that come, one in so many fails; 0: none.
  unsigned one_sync_fails_of = 0;
  std::mt19937_64 chance{11};
  [[nodiscard]] unsigned failed_syncs() const { return failed_syncs_; }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }

  // The store was opened anew, and mapped its table.
  void watch_lost_pages();

  // Called after every recorded call.
  std::function<void()> changed = [] {};

  // All that was not synced, some of it (torn in sectors of 512 bytes), or none.
  enum class Left { kAll, kSome, kNone };
  // Blocks of FILE by number; absent ones are zeros.
  struct Blocks {
    std::uint64_t bytes = 0;
    std::map<std::uint64_t, Bytes> at;
  };
  struct Pair {
    Blocks file;
    Bytes table;
  };
  [[nodiscard]] Pair lost(Left left, std::mt19937_64& random);
  // Makes the two files of a pair.
  static void write(const Pair& pair, const std::string& file);

  // ---- for recorded_files.cpp
  static RecordedFiles* current();
  [[nodiscard]] bool is_file(int descriptor) const;
  [[nodiscard]] bool is_table(int descriptor) const;
  struct Change {
    enum class Kind { kWrite, kHole, kSize } kind;
    std::uint64_t offset = 0, length = 0;
    Bytes bytes = {};
  };
  void note(Change change);
  // The call's answer: 0, or EIO, after which nothing is to be done.
  int sync_file();
  int sync_table();
  bool was_written_to(const void* address);

 private:
  static constexpr std::size_t kPage = 4096, kSector = 512;
  static void apply(Blocks& to, const Change& change);
  [[nodiscard]] bool fails() { return one_sync_fails_of != 0 && chance() % one_sync_fails_of == 0; }
  void look_at_table();
  void show_what_is_durable(const Change& lost) const;

  std::string name_;
  std::uint64_t file_inode_ = 0, table_inode_ = 0, device_ = 0;
  Blocks file_;  // both as a sync that was good has left them
  Bytes table_;
  std::vector<Change> since_;
  std::map<std::size_t, std::vector<Bytes>> pages_since_;  // of the table: what each held, by turns
  std::map<std::size_t, bool> lost_pages_;                 // of the table: whether they were written to again
  std::map<std::uintptr_t, std::size_t> watched_;          // where, which page
  unsigned failed_syncs_ = 0;
  std::uint64_t calls_ = 0;
};

// While it lives, every sync of that file fails, whoever makes it.
class FailingSyncs {
 public:
  explicit FailingSyncs(const std::string& file);
  ~FailingSyncs();
  FailingSyncs(const FailingSyncs&) = delete;
  FailingSyncs& operator=(const FailingSyncs&) = delete;
  [[nodiscard]] static bool fails(int descriptor);
};

}  // namespace farheap::testing
