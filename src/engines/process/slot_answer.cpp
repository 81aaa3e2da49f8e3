// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/process/slot_answer.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "store/deadline.hpp"

namespace farheap::engines {
namespace {

using store::beside::kMostEntries;
using store::beside::kTextBytes;
using store::beside::Operation;
using store::beside::SharedEntry;
using store::beside::Slot;

// Read once: what is looked at is what is used, whatever the client writes there meanwhile.
template <class T>
T taken(T& shared) {
  return std::atomic_ref(shared).load(std::memory_order_relaxed);
}

// Of the slot's own memory, as it was when the question was taken.
struct Question {
  Operation operation;
  std::uint32_t entries;
  std::uint32_t text_bytes;
  std::uint64_t first;
  std::uint64_t number;
  std::int64_t until_ns;
};

Error malformed() {
  return {ErrorCode::kInvalidArgument, "cannot answer", "farheap-engines", "the question is not of its form",
          "use the farheap-engines that was installed with this Farheap"};
}

void write_error(Slot& slot, const Error& error) {
  const std::string text = store::beside::encode(error);
  std::memcpy(slot.text, text.data(), text.size());  // encode() keeps to kTextBytes
  slot.answer_bytes = static_cast<std::uint32_t>(text.size());
  slot.failed = static_cast<std::uint32_t>(error.code) + 1;
}

Get entry_of(const SharedEntry& shared, std::span<std::byte> data, Get*) {
  return {.block = shared.block, .into = data, .known = shared.version};
}
Put entry_of(const SharedEntry& shared, std::span<std::byte> data, Put*) {
  Put entry{.block = shared.block, .from = data};
  if (shared.expects != 0) entry.expected = shared.version;
  return entry;
}

// False: the entries are longer than the data area.
template <class Entry>
bool collect(Slot& slot, std::uint32_t entries, std::span<std::byte> data, std::vector<Entry>& batch) {
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < entries; ++i) {
    SharedEntry& there = slot.entry[i];
    const SharedEntry shared{taken(there.block), taken(there.version), taken(there.bytes), taken(there.expects), 0};
    if (shared.bytes > data.size() - at) return false;
    batch.push_back(entry_of(shared, data.subspan(at, shared.bytes), static_cast<Entry*>(nullptr)));
    at += shared.bytes;
  }
  return true;
}

template <class Entry, class Run>
Status answer_batch(Slot& slot, const Question& question, std::span<std::byte> data, Run run) {
  thread_local std::vector<Entry> batch;  // keeps its memory from question to question
  batch.clear();
  if (question.entries == 0 || question.entries > kMostEntries || !collect(slot, question.entries, data, batch)) {
    return fail(malformed());
  }
  Status status = run(std::span(batch));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    slot.entry[i].outcome = static_cast<std::uint8_t>(batch[i].outcome);
    slot.entry[i].version = batch[i].version;
  }
  return status;
}

// What comes in the data area.
Status answer_with(Slot& slot, std::span<std::byte> data, const std::string& bytes) {
  std::memcpy(data.data(), bytes.data(), bytes.size());  // encode() keeps to its size
  slot.result = bytes.size();
  return {};
}

Status answer_counters(Slot& slot, std::size_t first, std::span<std::byte> data, Store& engine) {
  const auto counters = engine.counters();
  if (!counters) return fail(counters.error());
  const auto rest = std::span(*counters).subspan(std::min(first, counters->size()));
  return answer_with(slot, data, store::beside::encode(rest, data.size()));
}

Status answer_question(Slot& slot, const Question& question, std::span<std::byte> data, Store& engine) {
  switch (question.operation) {
    case Operation::kGet:
      return answer_batch<Get>(slot, question, data, [&](std::span<Get> batch) { return engine.get(batch); });
    case Operation::kPut:
      return answer_batch<Put>(slot, question, data, [&](std::span<Put> batch) { return engine.put(batch); });
    case Operation::kErase: return engine.erase(question.first, question.number);
    case Operation::kAdd: {
      if (question.text_bytes > kTextBytes) return fail(malformed());
      const std::string counter(slot.text, question.text_bytes);
      const auto sum = engine.add(counter, static_cast<std::int64_t>(question.number));
      if (!sum) return fail(sum.error());
      slot.result = static_cast<std::uint64_t>(*sum);
      return {};
    }
    case Operation::kSync: return engine.sync();
    case Operation::kUsage: {
      const auto usage = engine.usage();
      if (!usage) return fail(usage.error());
      slot.result = usage->blocks;
      slot.more = usage->space_bytes;
      return {};
    }
    case Operation::kRuns: {
      const auto runs = engine.runs_from(question.first);
      if (!runs) return fail(runs.error());
      return answer_with(slot, data, store::beside::encode(std::span(*runs), data.size()));
    }
    case Operation::kCounters: return answer_counters(slot, question.first, data, engine);
  }
  return fail(malformed());
}

// What a library throws is an error of its engine.
Status answer_safely(Slot& slot, const Question& question, std::span<std::byte> data, Store& engine) try {
  return answer_question(slot, question, data, engine);
} catch (const std::exception& thrown) {
  return fail(ErrorCode::kIo, "cannot answer", engine.describe(), thrown.what());
} catch (...) {
  return fail(ErrorCode::kIo, "cannot answer", engine.describe(), "its library gave up");
}

}  // namespace

void answer_slot(Slot& slot, std::span<std::byte> data, Store& engine) {
  const Question question{static_cast<Operation>(taken(slot.operation)),
                          taken(slot.entries),
                          taken(slot.text_bytes),
                          taken(slot.first),
                          taken(slot.number),
                          taken(slot.until_ns)};
  slot.failed = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(question.entries, kMostEntries); ++i) {
    slot.entry[i].outcome = static_cast<std::uint8_t>(Outcome::kFailed);
  }
  // Who asks has the same clock: it started this process.
  const store::CallDeadline until(question.until_ns == 0 ? store::Deadline() : store::Deadline::at(question.until_ns));
  if (const Status status = answer_safely(slot, question, data, engine); !status) write_error(slot, status.error());
}

}  // namespace farheap::engines
