// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batches of gets and puts as commands on groups, and the answers taken apart: pages go from the socket into the
// caller's memory.
//
// Thread-safety: one thread at a time.
#pragma once

#include <farheap/store.hpp>
#include <span>
#include <string>
#include <vector>

#include "store/redis/exchange.hpp"

namespace farheap::store::redis {

// Blocks [index, index + count) of a group, `at` blocks into an entry.
struct Part {
  std::uint64_t group;
  unsigned index, count;
  std::size_t entry, at;
};

// Entries cut into commands: at the borders of groups, and where a command is long enough. Neighbours in the batch
// that share a group share a command.
class Plan {
 public:
  explicit Plan(std::size_t block_bytes);
  // `alone`: shares none.
  void add(std::uint64_t block, std::size_t count, std::size_t entry, bool alone);
  [[nodiscard]] std::size_t commands() const { return begins_.size(); }
  [[nodiscard]] std::span<const Part> parts_of(std::size_t command) const {
    const std::size_t end = command + 1 < begins_.size() ? begins_[command + 1] : parts_.size();
    return std::span(parts_).subspan(begins_[command], end - begins_[command]);
  }

 private:
  std::size_t most_;  // blocks of a command
  std::vector<Part> parts_;
  std::vector<std::size_t> begins_;  // of the commands: parts
  std::size_t blocks_ = 0;           // of the last command
  bool is_open_ = false;             // it may be shared
};

class GetBatch final : public Sink {
 public:
  GetBatch(std::span<Get> batch, std::size_t block_bytes)
      : batch_(batch), block_bytes_(block_bytes), plan_(block_bytes) {}
  // Those that are kPending. `commands` refers to this.
  void write(const Keys& keys, Requests& requests, std::vector<Command>& commands);
  bool take(Replies& replies, const Head& head, std::size_t tag) override;
  // After the exchange.
  void settle(std::span<const Command> commands);

 private:
  [[nodiscard]] std::size_t fields_of(std::size_t command) const;
  [[nodiscard]] bool take_block(Replies& replies, Get& entry, std::size_t at);
  [[nodiscard]] bool take_stamp(Replies& replies, Get& entry);

  std::span<Get> batch_;
  std::size_t block_bytes_;
  Plan plan_;
};

// Of those entries that know a version: what the stamps are. Sets kSame and kAbsent.
class KnownBatch final : public Sink {
 public:
  explicit KnownBatch(std::span<Get> batch) : batch_(batch) {}
  void write(const Keys& keys, Requests& requests, std::vector<Command>& commands);
  bool take(Replies& replies, const Head& head, std::size_t tag) override;
  void settle(std::span<const Command> commands);

 private:
  std::span<Get> batch_;
};

class PutBatch final : public Sink {
 public:
  PutBatch(std::span<Put> batch, std::size_t block_bytes)
      : batch_(batch), block_bytes_(block_bytes), plan_(block_bytes) {}
  void write(Shared& shared, Lane& lane, std::vector<Command>& commands);
  bool take(Replies& replies, const Head& head, std::size_t tag) override;
  // After the exchange: each entry's outcome, from those of its commands.
  void settle(std::span<const Command> commands);

 private:
  void write_plain(const std::string& key, std::span<const Part> parts, Requests& requests) const;
  void write_swap(const std::string& key, const std::string& lane, const Part& part, Requests& requests) const;

  std::span<Put> batch_;
  std::size_t block_bytes_;
  Plan plan_;
  std::vector<std::string> keys_;  // of the commands
  std::vector<Version> stamps_;    // written with each entry
  unsigned note_seconds_ = 0;
};

// Of a refusal.
[[nodiscard]] Outcome outcome_of(const Command& command);

}  // namespace farheap::store::redis
