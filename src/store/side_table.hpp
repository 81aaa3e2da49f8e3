// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kept file: must know beside the bytes of its blocks: a word-addressed table (a version for each block) and
// counters, in a file of their own that is mapped shared: FILE.versions. So all processes that have it see one state.
//
// Layout (format 1, little-endian): a header of 4 KiB; 960 counters of 64 bytes; from 64 KiB on the words.
//
// Thread-safety: any thread, any process; words are atomics, everything else is under a Guard or set at open.
#pragma once

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>
#include <farheap/store.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/fork_lock.hpp"

namespace farheap::store {

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8, "words are shared between processes");

class SideTable {
 public:
  static constexpr std::size_t kWordsPerChunk = std::size_t{4} << 20 >> 3;
  static constexpr std::size_t kChunks = 8192;
  static constexpr std::uint64_t kWords = kWordsPerChunk * kChunks;
  static constexpr std::size_t kStripes = 64;

  // Takes the file over, and makes a fresh table if it is empty or was left before it was made. kInvalidArgument if it
  // was made for other blocks, kCorrupt if it is no such table or of a newer format.
  // Use::kRead, for a file that may not be written: there has to be one already, nothing in it is changed, and no lock
  // is taken.
  enum class Use { kWrite, kRead };
  [[nodiscard]] static Result<std::unique_ptr<SideTable>> open(int file, std::size_t block_bytes, std::string name,
                                                               Use use = Use::kWrite);
  ~SideTable();
  SideTable(const SideTable&) = delete;
  SideTable& operator=(const SideTable&) = delete;

  // How large the blocks are that the table in this file is for, and how many there are. kNotFound if there is no file,
  // kCorrupt if it is no such table. Changes nothing.
  struct Facts {
    std::size_t block_bytes = 0;
    std::uint64_t blocks = 0;
  };
  [[nodiscard]] static Result<Facts> look(const std::string& path);

  // The word, its part of the table mapped on first use; nullptr where the table does not reach (all words there
  // are 0) or cannot be mapped.
  [[nodiscard]] Word* find(std::uint64_t index);
  // The same, and the table is made longer where needed, with room on the disk: writing to the word cannot fail
  // afterwards. nullptr only if there is no room.
  [[nodiscard]] Word* make(std::uint64_t index);
  // No word from here on was ever made.
  [[nodiscard]] std::uint64_t end() const { return header_->end_word.load(std::memory_order_acquire); }

  // Unique over the life of the table, never 0, never with one of the two top bits.
  [[nodiscard]] std::uint64_t new_version() { return header_->next_version.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] Word& blocks_present() { return header_->blocks_present; }

  [[nodiscard]] bool is_only_read() const { return use_ == Use::kRead; }

  [[nodiscard]] Result<std::int64_t> add(std::string_view counter, std::int64_t delta);
  [[nodiscard]] std::vector<NamedCounter> counters();

  // After one that failed the next one writes all of it again.
  [[nodiscard]] Status sync();

  // Excludes the other threads and processes from some of the 64 stripes. Always taken in one order.
  class Guard {
   public:
    Guard(SideTable& table, std::uint64_t stripes, bool counters_and_size = false);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    SideTable& table_;
    std::uint64_t stripes_;
    bool extra_;
  };

 private:
  struct Header {
    char magic[8];
    std::uint32_t format;
    std::uint32_t block_bytes;
    std::uint64_t boot;  // which boot of the machine wrote last
    Word next_version;
    Word blocks_present;
    Word end_word;
  };
  struct Counter {
    std::int64_t value;
    char name[56];  // zero-terminated; empty: free from here on
  };
  // Of a damaged one, too.
  [[nodiscard]] static std::string_view name_of(const Counter& counter) {
    const std::string_view whole(counter.name, sizeof counter.name);
    return whole.substr(0, whole.find('\0'));
  }
  static constexpr std::size_t kHeaderBytes = 4096;
  static constexpr std::size_t kCounters = 960;
  static constexpr std::size_t kWordsAt = 64 << 10;
  static constexpr std::size_t kWordsPerSegment = 8192;  // what is allocated at once
  static_assert(kHeaderBytes + kCounters * sizeof(Counter) == kWordsAt);

  SideTable(int file, std::string name, Use use);
  [[nodiscard]] int protection() const { return use_ == Use::kRead ? PROT_READ : PROT_READ | PROT_WRITE; }
  [[nodiscard]] void* map(std::size_t bytes, std::uint64_t at) const;
  // A forked child has neither its mappings nor its file.
  [[nodiscard]] bool is_the_parents() const;
  [[nodiscard]] Status set_up(std::size_t block_bytes);
  [[nodiscard]] Word* chunk(std::size_t number);
  [[nodiscard]] bool allocate(std::uint64_t segment);
  void write_all_again();
  [[nodiscard]] int lock_file();
  void lock_byte(int number, bool take);

  int file_;
  std::string name_;
  const Use use_;
  const bool for_us_alone_;
  const unsigned born_;
  Header* header_ = nullptr;
  Counter* counters_ = nullptr;
  std::atomic<bool> sync_has_failed_{false};
  std::array<ForkLock, kStripes + 1> locks_;  // the last one: counters, size, header
  // A forked child shares the file description and with it the parent's locks, so it opens one of its own.
  std::atomic<std::uint64_t> lock_file_{0};  // process id << 32 | descriptor
  std::array<std::atomic<Word*>, kChunks> chunks_{};
  std::array<std::atomic<std::uint64_t>, kWords / kWordsPerSegment / 64> allocated_{};  // by this process, a bit each
};

}  // namespace farheap::store
