// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/units.hpp"
#include "store/batch.hpp"

namespace farheap::store::redis {
namespace {

// From about here on a longer command gains nothing, and holds other clients up.
constexpr std::size_t kCommandBytes = 256 * base::kKiB;

// "17" and "s17".
struct Field {
  char text[4];
  std::size_t length;
  Field(unsigned index, bool is_stamp) {
    char* at = text;
    if (is_stamp) *at++ = 's';
    length = static_cast<std::size_t>(std::to_chars(at, text + sizeof text, index).ptr - text);
  }
  operator std::string_view() const { return {text, length}; }
};

// Answers 1 when it wrote, now or when the same was asked before; otherwise the stamp that is there. What a lane's last
// swap was is noted beside the group: its own stamp may be overwritten by the time its answer is asked for again.
constexpr std::string_view kSwap =
    "local s=redis.call('HGET',KEYS[1],ARGV[2]) or '' "
    "if s==ARGV[4] or redis.call('GET',KEYS[2])==ARGV[4] then return 1 end "
    "if s~=ARGV[3] then return s end "
    "redis.call('HSET',KEYS[1],ARGV[1],ARGV[5],ARGV[2],ARGV[4]) "
    "redis.call('SET',KEYS[2],ARGV[4]) "
    "if ARGV[6]~='0' then redis.call('EXPIRE',KEYS[2],ARGV[6]) end return 1";

constexpr std::size_t kStampBytes = sizeof(Version);

bool is_single(const Get& entry, std::size_t block_bytes) { return entry.into.size() == block_bytes; }

bool read_stamp(Replies& replies, const Head& head, Version& version) {
  version = 0;
  if (head.kind == Kind::kNil) return true;
  if (head.kind != Kind::kBulk || head.number != kStampBytes) return replies.nonsense();
  return replies.bulk(std::as_writable_bytes(std::span(&version, 1)));
}

std::string_view stamp(const Version& version) { return {reinterpret_cast<const char*>(&version), kStampBytes}; }

Command command_on(const std::string& key, bool writes, std::size_t tag, Sink* sink) {
  Command command;
  command.slot = slot_of(key);
  command.writes = writes;
  command.tag = tag;
  command.sink = sink;
  return command;
}

}  // namespace

Outcome outcome_of(const Command& command) {
  if (command.state == Command::State::kDone) return Outcome::kOk;
  if (command.is_unknown) return Outcome::kUnknown;
  return command.why.find("OOM command") != std::string::npos ? Outcome::kNoSpace : Outcome::kFailed;
}

Plan::Plan(std::size_t block_bytes) : most_(std::max<std::size_t>(kCommandBytes / block_bytes, 1)) {}

void Plan::add(std::uint64_t block, std::size_t count, std::size_t entry, bool alone) {
  for (std::size_t done = 0; done < count;) {
    const std::uint64_t group = (block + done) / kGroupBlocks;
    const auto index = static_cast<unsigned>((block + done) % kGroupBlocks);
    const std::size_t here = std::min({count - done, kGroupBlocks - index, most_});
    if (alone || !is_open_ || parts_.back().group != group || blocks_ + here > most_) {
      begins_.push_back(parts_.size());
      blocks_ = 0;
    }
    parts_.push_back({group, index, static_cast<unsigned>(here), entry, done});
    blocks_ += here, done += here;
    is_open_ = !alone;
  }
}

// ---- gets

void GetBatch::write(const Keys& keys, Requests& requests, std::vector<Command>& commands) {
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (batch_[i].outcome != Outcome::kPending) continue;
    batch_[i].version = 0;
    batch_[i].outcome = Outcome::kOk;  // until something is missing
    plan_.add(batch_[i].block, batch_[i].into.size() / block_bytes_, i, false);
  }
  for (std::size_t number = 0; number < plan_.commands(); ++number) {
    const auto parts = plan_.parts_of(number);
    const auto key = keys.group(parts.front().group);
    Command& command = commands.emplace_back(command_on(key, false, number, this));
    command.first = requests.mark();
    requests.command(2 + fields_of(number));
    requests.argument("HMGET"), requests.argument(key);
    for (const Part& part : parts) {
      for (unsigned i = 0; i < part.count; ++i) requests.argument(Field(part.index + i, false));
      if (is_single(batch_[part.entry], block_bytes_)) requests.argument(Field(part.index, true));
    }
    command.last = requests.mark();
  }
}

// The version of a single block comes with it.
std::size_t GetBatch::fields_of(std::size_t command) const {
  std::size_t fields = 0;
  for (const Part& part : plan_.parts_of(command)) {
    fields += part.count + (is_single(batch_[part.entry], block_bytes_) ? 1 : 0);
  }
  return fields;
}

bool GetBatch::take(Replies& replies, const Head& head, std::size_t tag) {
  if (head.kind != Kind::kArray || static_cast<std::size_t>(head.number) != fields_of(tag)) return replies.nonsense();
  for (const Part& part : plan_.parts_of(tag)) {
    Get& entry = batch_[part.entry];
    for (unsigned i = 0; i < part.count; ++i) {
      if (!take_block(replies, entry, part.at + i)) return false;
    }
    if (is_single(entry, block_bytes_) && !take_stamp(replies, entry)) return false;
  }
  return true;
}

bool GetBatch::take_block(Replies& replies, Get& entry, std::size_t at) {
  Head head;
  if (!replies.head(head)) return false;
  if (head.kind == Kind::kNil) {
    if (entry.outcome == Outcome::kOk) entry.outcome = Outcome::kAbsent;
    return true;
  }
  if (head.kind == Kind::kBulk && static_cast<std::size_t>(head.number) == block_bytes_) {
    return replies.bulk(entry.into.subspan(at * block_bytes_, block_bytes_));
  }
  entry.outcome = Outcome::kCorrupt;  // not what any Farheap puts there
  return replies.skip(head);
}

bool GetBatch::take_stamp(Replies& replies, Get& entry) {
  Head head;
  if (!replies.head(head) || !read_stamp(replies, head, entry.version)) return false;
  if (entry.outcome != Outcome::kOk) {
    entry.version = 0;
  } else if (entry.version == 0) {
    entry.outcome = Outcome::kCorrupt;
  }
  return true;
}

void GetBatch::settle(std::span<const Command> commands) {
  for (const Command& command : commands) {
    if (command.state == Command::State::kDone) continue;
    for (const Part& part : plan_.parts_of(command.tag)) batch_[part.entry].outcome = Outcome::kFailed;
  }
  for (Get& entry : batch_) {
    if (entry.outcome != Outcome::kOk && entry.outcome != Outcome::kSame) entry.version = 0;
  }
}

void KnownBatch::settle(std::span<const Command> commands) {
  for (const Command& command : commands) {
    if (command.state != Command::State::kDone) batch_[command.tag].outcome = Outcome::kFailed;
  }
}

void KnownBatch::write(const Keys& keys, Requests& requests, std::vector<Command>& commands) {
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (batch_[i].known == 0 || batch_[i].outcome != Outcome::kPending) continue;
    const auto key = keys.group(batch_[i].block / kGroupBlocks);
    Command& command = commands.emplace_back(command_on(key, false, i, this));
    command.first = requests.mark();
    requests.command(3), requests.argument("HGET"), requests.argument(key);
    requests.argument(Field(static_cast<unsigned>(batch_[i].block % kGroupBlocks), true));
    command.last = requests.mark();
  }
}

bool KnownBatch::take(Replies& replies, const Head& head, std::size_t tag) {
  Get& entry = batch_[tag];
  if (!read_stamp(replies, head, entry.version)) return false;
  if (entry.version == 0) entry.outcome = Outcome::kAbsent;
  if (entry.version == entry.known) entry.outcome = Outcome::kSame;
  return true;
}

// ---- puts

void PutBatch::write(Shared& shared, Lane& lane, std::vector<Command>& commands) {
  Requests& requests = lane.requests;
  note_seconds_ = shared.note_seconds();
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    stamps_.push_back(shared.next_number());
    batch_[i].version = 0;
    batch_[i].outcome = Outcome::kOk;  // until a command of it says otherwise
    plan_.add(batch_[i].block, batch_[i].from.size() / block_bytes_, i, batch_[i].expected.has_value());
  }
  keys_.reserve(plan_.commands());  // commands refer to them
  for (std::size_t number = 0; number < plan_.commands(); ++number) {
    const auto parts = plan_.parts_of(number);
    const auto& key = keys_.emplace_back(shared.keys.group(parts.front().group));
    Command& command = commands.emplace_back(command_on(key, true, number, this));
    command.beat_beside = key;
    command.first = requests.mark();
    if (batch_[parts.front().entry].expected) {
      write_swap(key, lane.id, parts.front(), requests);
    } else {
      write_plain(key, parts, requests);
    }
    command.last = requests.mark();
  }
}

void PutBatch::write_plain(const std::string& key, std::span<const Part> parts, Requests& requests) const {
  std::size_t blocks = 0;
  for (const Part& part : parts) blocks += part.count;
  requests.command(2 + 4 * blocks);
  requests.argument("HSET"), requests.argument(key);
  for (const Part& part : parts) {
    for (unsigned i = 0; i < part.count; ++i) {
      requests.argument(Field(part.index + i, false));
      requests.argument(batch_[part.entry].from.subspan((part.at + i) * block_bytes_, block_bytes_));
      requests.argument(Field(part.index + i, true));
      requests.argument(stamp(stamps_[part.entry]));
    }
  }
}

void PutBatch::write_swap(const std::string& key, const std::string& lane, const Part& part, Requests& requests) const {
  const Put& entry = batch_[part.entry];
  const Version expected = entry.expected.value_or(0);
  requests.command(11);
  requests.argument("EVAL"), requests.argument(kSwap), requests.argument("2"), requests.argument(key);
  requests.argument(beside(key, "done", lane));
  requests.argument(Field(part.index, false)), requests.argument(Field(part.index, true));
  requests.argument(expected == 0 ? std::string_view() : stamp(expected));
  requests.argument(stamp(stamps_[part.entry]));
  requests.argument(entry.from);
  requests.argument(std::uint64_t{note_seconds_});
}

bool PutBatch::take(Replies& replies, const Head& head, std::size_t tag) {
  const std::size_t number = plan_.parts_of(tag).front().entry;
  Put& entry = batch_[number];
  const bool is_swap = entry.expected.has_value();
  if (head.kind == Kind::kInteger && (!is_swap || head.number == 1)) return true;
  if (!is_swap || head.kind != Kind::kBulk || (head.number != 0 && head.number != kStampBytes)) {
    return replies.nonsense();
  }
  entry.outcome = Outcome::kConflict;
  if (head.number != 0) return read_stamp(replies, head, entry.version);
  return replies.bulk({});
}

void PutBatch::settle(std::span<const Command> commands) {
  for (const Command& command : commands) {
    const Outcome outcome = outcome_of(command);
    for (const Part& part : plan_.parts_of(command.tag)) {
      Put& entry = batch_[part.entry];
      if (outcome != Outcome::kOk && (entry.outcome == Outcome::kOk || outcome == Outcome::kUnknown)) {
        entry.outcome = outcome;
      }
    }
  }
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (batch_[i].outcome == Outcome::kOk && batch_[i].from.size() == block_bytes_) batch_[i].version = stamps_[i];
  }
}

}  // namespace farheap::store::redis
