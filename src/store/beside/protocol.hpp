// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program and the process `farheap-engines` say to each other: messages over a socket for what is rare, and
// slots of shared memory for what is frequent. The specification is in docs/formats.md. Either side takes the other's
// bytes as foreign: lengths are checked, and what is decided upon is copied out of shared memory first.
//
// Thread-safety: plain values and functions.
#pragma once

#include <atomic>
#include <cstdint>
#include <farheap/store.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.hpp"
#include "base/units.hpp"

namespace farheap::store::beside {

inline constexpr std::uint32_t kFormat = 2;

// ---- messages

inline constexpr std::size_t kMostMessageBytes = 32 * base::kKiB;
// Of all listings, or of the names of all counters: what comes behind is no answer of an engine's.
inline constexpr std::size_t kMostListedBytes = 64 * base::kMiB;

enum class Message : std::uint32_t {
  kOpen = 1,     // the first of a process, once: Opening
  kAttach = 2,   // the shared memory of this connection (a descriptor): format, slots, data bytes of each
  kNotify = 3,   // an eventfd (a descriptor) for answers of slots that name its number: number
  kJoin = 4,     // a further connection (a descriptor) to the same store; not answered
  kIsThere = 5,  // instead of kOpen: Opening
  kList = 6,     // likewise; answered by many kListing and kDone
  kRemove = 7,   // likewise
  kLeave =
      8,  // nothing more will be asked; the descriptor, a pipe, is closed when the store is, or at once if others stay
  kDone = 100,     // what was asked for
  kFailed = 101,   // Error
  kListing = 102,  // StoreListing
};

// A message: its kind, and then fields.
class Writer : public base::FieldWriter {
 public:
  Writer() = default;  // of what is no message
  explicit Writer(Message kind) { number(static_cast<std::uint64_t>(kind)); }
};
using Reader = base::FieldReader;

// What open_store() was asked for, as far as it concerns the engine.
struct Opening {
  std::string scheme;
  std::string place;
  std::string parameters;  // "key=value&key=value"
  StoreOptions options;
};
struct Opened {
  std::string description;
  Capabilities capabilities = 0;
  Limits limits;
};

[[nodiscard]] std::string encode(Message kind, const Opening& opening);
[[nodiscard]] std::string encode(const Opened& opened);
[[nodiscard]] std::string encode(const StoreListing& listing);
[[nodiscard]] std::string encode(const Error& error);

// After the kind has been taken out. nullopt: not of this form.
[[nodiscard]] std::optional<Opening> read_opening(Reader& from);
[[nodiscard]] std::optional<Opened> read_opened(Reader& from);
[[nodiscard]] std::optional<StoreListing> read_listing(Reader& from);
[[nodiscard]] std::optional<Error> read_error(Reader& from);

// ---- slots

inline constexpr std::uint32_t kSlots = 32;
inline constexpr std::size_t kMostEntries = 1024;
inline constexpr std::size_t kTextBytes = 4096;
inline constexpr std::uint32_t kMostNotified = 64;
// A slot's data area: one of the largest blocks (2 MiB) has room.
inline constexpr std::size_t kDataBytes = 2 * base::kMiB;

enum class SlotState : std::uint32_t { kFree = 0, kAsked = 1, kTaken = 2, kAnswered = 3 };
enum class Operation : std::uint32_t {
  kGet = 1,
  kPut = 2,
  kErase = 3,
  kAdd = 4,
  kSync = 5,
  kUsage = 6,
  kRuns = 7,
  kCounters = 8
};

// What a store holds, in an answer's data area: numbers and texts as in a message, without a kind. As many as there is
// room for; who asks goes on behind the last.
[[nodiscard]] std::string encode(std::span<const BlockRun> runs, std::size_t most_bytes);
[[nodiscard]] std::string encode(std::span<const NamedCounter> counters, std::size_t most_bytes);
// nullopt: not of this form.
[[nodiscard]] std::optional<std::vector<BlockRun>> read_runs(std::string_view bytes);
[[nodiscard]] std::optional<std::vector<NamedCounter>> read_counters(std::string_view bytes);

struct SharedEntry {
  std::uint64_t block;
  std::uint64_t version;  // asked: known or expected; answered: found or written
  std::uint32_t bytes;    // the data of entries follow each other in the data area
  std::uint8_t expects;   // put: over `version` only
  std::uint8_t outcome;
};

// At the beginning of the shared memory.
struct alignas(64) SharedHead {
  std::atomic<std::uint32_t> doorbell;            // futex: goes up with every question
  alignas(64) std::atomic<std::uint32_t> asleep;  // workers that wait at it
  std::atomic<std::uint32_t> looking;             // workers that look for questions without sleeping
};

struct alignas(4096) Slot {
  std::atomic<std::uint32_t> state;   // SlotState; futex
  std::atomic<std::uint32_t> waited;  // 1: who asked sleeps on `state`
  // The question.
  std::uint32_t operation;
  std::uint32_t entries;
  std::uint32_t notify;  // 0: nobody; else the number of an eventfd, plus 1
  std::uint32_t text_bytes;
  std::uint64_t first;
  std::uint64_t number;   // erase: how many; add: the delta
  std::int64_t until_ns;  // store::Deadline of who asks; 0: it has none
  // The answer.
  alignas(64) std::uint32_t failed;  // 0, or the error's code plus 1; the text is the encoded error then
  std::uint32_t answer_bytes;
  std::uint64_t result;
  std::uint64_t more;
  alignas(64) char text[kTextBytes];
  SharedEntry entry[kMostEntries];
};

inline constexpr std::size_t kHeadBytes = base::kPageBytes;
static_assert(sizeof(SharedHead) <= kHeadBytes);

[[nodiscard]] constexpr std::size_t slot_stride(std::size_t data_bytes) { return sizeof(Slot) + data_bytes; }
[[nodiscard]] constexpr std::size_t shared_bytes(std::size_t data_bytes) {
  return kHeadBytes + kSlots * slot_stride(data_bytes);
}

// Views into the memory that both map.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(std::byte* at, std::size_t data_bytes) : at_(at), data_bytes_(data_bytes) {}
  [[nodiscard]] SharedHead& head() const { return *reinterpret_cast<SharedHead*>(at_); }
  [[nodiscard]] Slot& slot(std::uint32_t index) const {
    return *reinterpret_cast<Slot*>(at_ + kHeadBytes + index * slot_stride(data_bytes_));
  }
  [[nodiscard]] std::byte* data(std::uint32_t index) const {
    return reinterpret_cast<std::byte*>(&slot(index)) + sizeof(Slot);
  }
  [[nodiscard]] std::size_t data_bytes() const { return data_bytes_; }
  [[nodiscard]] std::byte* address() const { return at_; }
  [[nodiscard]] std::size_t bytes() const { return shared_bytes(data_bytes_); }

 private:
  std::byte* at_ = nullptr;
  std::size_t data_bytes_ = 0;
};

// The limits of an engine, seen through slots.
[[nodiscard]] Limits narrowed(Limits limits, std::size_t data_bytes);

// ---- both sides' system calls

// One message, with a descriptor unless that is negative. False: the other side has gone.
[[nodiscard]] bool send_message(int socket, std::string_view bytes, int descriptor = -1);
struct Received {
  std::string bytes;
  int descriptor = -1;  // the caller's to close
};
// nullopt: the other side has gone. Messages that are too long come out cut off, and are not whole for a Reader.
[[nodiscard]] std::optional<Received> receive_message(int socket);

// Sleeps while `word` is `seen`, at most so long; negative: without end. Spurious returns happen.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, int milliseconds);
void futex_wake(std::atomic<std::uint32_t>& word, int how_many);

}  // namespace farheap::store::beside
