// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/beside/slots.hpp"

#include <algorithm>
#include <cstring>

#include "store/deadline.hpp"

namespace farheap::store::beside {
namespace {

SharedEntry shared_of(const Get& entry) {
  return {.block = entry.block, .version = entry.known, .bytes = static_cast<std::uint32_t>(entry.into.size())};
}
SharedEntry shared_of(const Put& entry) {
  return {.block = entry.block,
          .version = entry.expected.value_or(0),
          .bytes = static_cast<std::uint32_t>(entry.from.size()),
          .expects = static_cast<std::uint8_t>(entry.expected ? 1 : 0)};
}

}  // namespace

void write_deadline(Slot& slot) {
  const Deadline deadline = Deadline::of_this_call();
  slot.until_ns = deadline.is_never() ? 0 : deadline.boot_ns();
}

namespace {

template <class Entry>
void begin_question(Slot& slot, Operation operation, std::span<Entry> batch) {
  slot.operation = static_cast<std::uint32_t>(operation);
  slot.entries = static_cast<std::uint32_t>(batch.size());
  slot.notify = 0;
  slot.text_bytes = 0;
  write_deadline(slot);
  for (std::size_t i = 0; i < batch.size(); ++i) slot.entry[i] = shared_of(batch[i]);
}

// An outcome that does not exist, or none at all, is no answer.
Outcome outcome_of(const SharedEntry& shared) {
  const bool is_one = shared.outcome > static_cast<std::uint8_t>(Outcome::kPending) &&
                      shared.outcome <= static_cast<std::uint8_t>(Outcome::kFailed);
  return is_one ? static_cast<Outcome>(shared.outcome) : Outcome::kFailed;
}

}  // namespace

void write_batch(Connection& connection, std::uint32_t index, Operation operation, std::span<Get> batch) {
  begin_question(connection.slot(index), operation, batch);
}

void write_batch(Connection& connection, std::uint32_t index, Operation operation, std::span<Put> batch) {
  begin_question(connection.slot(index), operation, batch);
  std::byte* to = connection.data(index);
  for (const Put& entry : batch) {
    std::memcpy(to, entry.from.data(), entry.from.size());
    to += entry.from.size();
  }
}

Status read_status(const Slot& slot) {
  if (slot.failed == 0) return {};
  const std::size_t bytes = std::min<std::size_t>(slot.answer_bytes, kTextBytes);
  const std::string text(slot.text, bytes);
  Reader reader(text);
  (void)reader.number();
  auto error = read_error(reader);
  if (error) return fail(std::move(*error));
  return fail(ErrorCode::kIo, "no answer", "farheap-engines", "what came is not of its form",
              "use the farheap-engines that was installed with this Farheap");
}

Status read_batch(Connection& connection, std::uint32_t index, std::span<Get> batch) {
  const Slot& slot = connection.slot(index);
  const std::byte* from = connection.data(index);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    batch[i].outcome = outcome_of(slot.entry[i]);
    batch[i].version = slot.entry[i].version;
    if (batch[i].outcome == Outcome::kOk) std::memcpy(batch[i].into.data(), from, batch[i].into.size());
    from += batch[i].into.size();
  }
  return read_status(slot);
}

Status read_batch(Connection& connection, std::uint32_t index, std::span<Put> batch) {
  const Slot& slot = connection.slot(index);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    batch[i].outcome = outcome_of(slot.entry[i]);
    batch[i].version = slot.entry[i].version;
  }
  return read_status(slot);
}

}  // namespace farheap::store::beside
