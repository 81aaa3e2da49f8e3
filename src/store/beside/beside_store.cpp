// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/beside/beside_store.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "store/batch.hpp"
#include "store/beside/gets.hpp"
#include "store/beside/process.hpp"
#include "store/beside/slots.hpp"
#include "store/deadline.hpp"

namespace farheap::store::beside {
namespace {

// An engine that ends its process whenever it is asked is given up.
constexpr std::size_t kMostProcesses = 32;
constexpr int kMostAttempts = 8;

// So that a question of any kind can end without an answer.
constexpr char kNotOfItsForm[] = "what its farheap-engines answered is not of its form";
constexpr char kNoAnswer[] = "the process farheap-engines has ended without an answer";

// A forked child goes on with a connection of its own.
Capabilities with_forks(Capabilities engine) { return engine | static_cast<Capabilities>(Capability::kForks); }

bool expects_any(std::span<const Get>) { return false; }
bool expects_any(std::span<const Put> batch) {
  for (const Put& entry : batch) {
    if (entry.expected) return true;
  }
  return false;
}

// Gives its slot back.
class TakenSlot {
 public:
  explicit TakenSlot(Connection& connection) : connection_(connection), index_(connection.take_slot()) {}
  ~TakenSlot() { connection_.give_back(index_); }
  TakenSlot(const TakenSlot&) = delete;
  TakenSlot& operator=(const TakenSlot&) = delete;
  [[nodiscard]] std::uint32_t index() const { return index_; }

 private:
  Connection& connection_;
  std::uint32_t index_;
};

}  // namespace

BesideStore::BesideStore(Opening opening, Opened opened, std::unique_ptr<Connection> connection)
    : opening_(std::move(opening)),
      description_(std::move(opened.description)),
      capabilities_(with_forks(opened.capabilities)),
      limits_(narrowed(opened.limits, kDataBytes)),
      starter_(getpid()),
      current_(connection.get()) {
  connections_.push_back(std::move(connection));
}

BesideStore::~BesideStore() {
  Connection* const last = current_.load();
  if (last->owner() == getpid()) last->leave();
}

// ---- the process

Result<std::pair<Opened, std::unique_ptr<Connection>>> open_in_process(const Opening& opening) {
  auto program = find_engines();
  if (!program) return fail(std::move(program.error()));
  auto socket = start_engines(*program);
  if (!socket) return fail(std::move(socket.error()));
  auto connection = std::make_unique<Connection>(*socket);
  auto answer = connection->ask(encode(Message::kOpen, opening));
  if (!answer) return fail(std::move(answer.error()));
  Reader reader(*answer);
  auto opened = read_opened(reader);
  const bool sound = opened && opened->limits.block_bytes == opening.options.block_bytes &&
                     opened->limits.largest_value_bytes >= opening.options.block_bytes &&
                     opened->limits.largest_batch_bytes >= opening.options.block_bytes &&
                     opened->limits.largest_batch_operations > 0 && opened->limits.best_run_bytes > 0;
  if (!sound) {
    return fail(ErrorCode::kIo, "cannot open the store", opening.scheme + ":" + opening.place,
                "farheap-engines gave an answer of another form",
                "use the farheap-engines that was installed with this Farheap");
  }
  if (auto attached = connection->attach(); !attached) return fail(std::move(attached.error()));
  return std::pair(std::move(*opened), std::move(connection));
}

Result<Connection*> BesideStore::connection() {
  Connection* const seen = current_.load(std::memory_order_acquire);
  if (seen->owner() == getpid() && !seen->has_ended()) return seen;
  return renew(seen);
}

Result<Connection*> BesideStore::renew(Connection* seen) {
  base::LockGuard lock(renewing_);
  Connection* const now = current_.load(std::memory_order_acquire);
  if (now != seen) return now;  // another thread was first
  const bool is_parents = now->owner() != getpid();
  auto renewed = is_parents ? Connection::join(*now) : start_again();
  if (!renewed) return fail(std::move(renewed.error()));
  // A forked child lets go of its parent's; of its own ended ones, other threads may still hold slots.
  if (is_parents) connections_.clear(), notified_.store(0);
  connections_.push_back(std::move(*renewed));
  current_.store(connections_.back().get(), std::memory_order_release);
  return connections_.back().get();
}

Result<std::unique_ptr<Connection>> BesideStore::start_again() {
  constexpr char kWhat[] = "the store is gone";
  if (getpid() != starter_) {
    return fail(ErrorCode::kUnavailable, kWhat, description_, kNoAnswer,
                "only the process that opened the store can start another");
  }
  if (opening_.options.lifetime == Lifetime::kScratch) {
    return fail(ErrorCode::kUnavailable, kWhat, description_,  // asking again is of no use
                fmt::format("{}, and what a scratch store held is lost with it", kNoAnswer),
                "look in the system's log for what ended it, and start again");
  }
  if (connections_.size() >= kMostProcesses) {
    return fail(ErrorCode::kIo, kWhat, description_, fmt::format("farheap-engines has ended {} times", kMostProcesses),
                "look in the system's log for what ends it");
  }
  auto opened = open_in_process(opening_);
  for (int attempt = 1; attempt < kMostAttempts && !opened && opened.error().code == ErrorCode::kUnknown; ++attempt) {
    opened = open_in_process(opening_);  // this one has ended, too
  }
  if (!opened) {
    // Not what became of the question, but why none can be asked.
    if (opened.error().code == ErrorCode::kUnknown) opened.error().code = ErrorCode::kIo;
    return fail(std::move(opened.error()));
  }
  if (opened->first.description != description_ || with_forks(opened->first.capabilities) != capabilities_) {
    return fail(ErrorCode::kIo, kWhat, description_, "it came back as another store");
  }
  base::log(base::LogLevel::kWarn, "{}: {}; another was started, and the store is open again", description_, kNoAnswer);
  return std::move(opened->second);
}

std::uint32_t BesideStore::take_notified_number() {
  std::uint64_t seen = notified_.load();
  while (~seen != 0) {
    const int number = std::countr_one(seen);
    if (notified_.compare_exchange_weak(seen, seen | std::uint64_t{1} << number)) {
      return static_cast<std::uint32_t>(number);
    }
  }
  return kMostNotified;
}

// ---- questions

// Write fills a slot, read takes its answer. Until there is one, or none can be had.
template <class Write, class Read>
Status BesideStore::ask(Write write, Read read, bool may_repeat) {
  for (int attempt = 1;; ++attempt) {
    const auto connection = this->connection();
    if (!connection) return fail(connection.error());
    const TakenSlot slot(**connection);
    write(**connection, slot.index());
    (*connection)->submit(slot.index());
    if ((*connection)->wait(slot.index())) return read(**connection, slot.index());
    if (!may_repeat) return fail(ErrorCode::kUnknown, "no answer", description_, kNoAnswer, "read it back to know");
    if (attempt == kMostAttempts || Deadline::of_this_call().has_passed())
      return fail(ErrorCode::kIo, "no answer", description_, kNoAnswer);
  }
}

template <class Entry>
Status BesideStore::ask_batch(std::span<Entry> batch, Operation operation) {
  if (auto ok = check(batch, limits_, capabilities_, *this); !ok) return ok;
  if (batch.empty()) return {};
  const bool may_repeat = !expects_any(batch);
  bool answered = false;
  Status status =
      ask([&](Connection& connection, std::uint32_t index) { write_batch(connection, index, operation, batch); },
          [&](Connection& connection, std::uint32_t index) {
            answered = true;
            return read_batch(connection, index, batch);
          },
          may_repeat);
  if (answered) return status;
  const bool unknown = status.error().code == ErrorCode::kUnknown;
  for (auto& entry : batch) entry.outcome = unknown ? Outcome::kUnknown : Outcome::kFailed, entry.version = 0;
  return status;
}

Status BesideStore::get(std::span<Get> batch) { return ask_batch(batch, Operation::kGet); }

// A compare-and-swap without an answer: its process is gone, so it will not happen any more, and where the version is
// still the expected one it has not happened.
Status BesideStore::put(std::span<Put> batch) {
  Status status = ask_batch(batch, Operation::kPut);
  const auto is_open = [&] { return !status && status.error().code == ErrorCode::kUnknown && expects_any(batch); };
  if (!is_open()) return status;
  for (int attempt = 1; is_open() && attempt < kMostAttempts && has_not_happened(batch); ++attempt) {
    status = ask_batch(batch, Operation::kPut);
  }
  // Who wrote the version that is found now is not known.
  for (Put& entry : batch) {
    if (entry.outcome == Outcome::kConflict) entry.outcome = Outcome::kUnknown, entry.version = 0;
  }
  return status ? summary(batch, *this) : status;
}

bool BesideStore::has_not_happened(std::span<const Put> batch) {
  std::vector<std::byte> block(limits_.block_bytes);
  for (const Put& entry : batch) {
    if (!entry.expected) continue;
    Get found{.block = entry.block, .into = block, .known = *entry.expected};
    if (!get({&found, 1})) return false;
    const Outcome as_before = *entry.expected == 0 ? Outcome::kAbsent : Outcome::kSame;
    if (found.outcome != as_before) return false;
  }
  return true;
}

std::unique_ptr<GetsInFlight> BesideStore::gets_in_flight(unsigned most) { return BesideGets::make(*this, most); }

Status BesideStore::ask_plainly(const PlainQuestion& question, bool may_repeat, PlainAnswer* answer) {
  return ask(
      [&](Connection& connection, std::uint32_t index) {
        Slot& slot = connection.slot(index);
        slot.operation = static_cast<std::uint32_t>(question.operation);
        slot.entries = 0, slot.notify = 0;
        write_deadline(slot);
        slot.first = question.first, slot.number = question.number;
        slot.text_bytes = static_cast<std::uint32_t>(question.text.size());
        if (!question.text.empty()) std::memcpy(slot.text, question.text.data(), question.text.size());
      },
      [&](Connection& connection, std::uint32_t index) {
        const Slot& slot = connection.slot(index);
        if (answer != nullptr) *answer = {slot.result, slot.more};
        const bool has_data = question.operation == Operation::kRuns || question.operation == Operation::kCounters;
        if (has_data && answer != nullptr && slot.failed == 0) {
          const auto* bytes = reinterpret_cast<const char*>(connection.data(index));
          answer->data.assign(bytes, std::min<std::size_t>(answer->result, connection.data_bytes()));
        }
        return read_status(slot);
      },
      may_repeat);
}

Status BesideStore::erase(std::uint64_t first, std::uint64_t count) {
  return ask_plainly({.operation = Operation::kErase, .first = first, .number = count}, true);
}

Result<std::int64_t> BesideStore::add(std::string_view counter, std::int64_t delta) {
  if (counter.size() > kTextBytes) {
    return fail(ErrorCode::kInvalidArgument, "cannot count", description_, "the counter's name is too long",
                fmt::format("use one of at most {} bytes", kTextBytes));
  }
  PlainAnswer sum{};
  const PlainQuestion question{
      .operation = Operation::kAdd, .number = static_cast<std::uint64_t>(delta), .text = counter};
  auto status = ask_plainly(question, delta == 0, &sum);
  if (!status) return fail(std::move(status.error()));
  return static_cast<std::int64_t>(sum.result);
}

Status BesideStore::sync() { return ask_plainly({.operation = Operation::kSync}, true); }

Result<StoreUsage> BesideStore::usage() {
  PlainAnswer found{};
  auto status = ask_plainly({.operation = Operation::kUsage}, true, &found);
  if (!status) return fail(std::move(status.error()));
  return StoreUsage{found.result, found.more};
}

// ---- what it holds

Result<std::vector<BlockRun>> BesideStore::runs_from(std::uint64_t first) {
  PlainAnswer found{};
  auto status = ask_plainly({.operation = Operation::kRuns, .first = first}, true, &found);
  if (!status) return fail(std::move(status.error()));
  auto runs = read_runs(found.data);
  if (!runs) return fail(ErrorCode::kIo, "cannot look at the store", description_, kNotOfItsForm);
  return std::move(*runs);
}

Result<std::vector<NamedCounter>> BesideStore::counters() {
  std::vector<NamedCounter> all;
  std::size_t bytes = 0;
  for (;;) {
    PlainAnswer found{};
    auto status = ask_plainly({.operation = Operation::kCounters, .first = all.size()}, true, &found);
    if (!status) return fail(std::move(status.error()));
    auto some = read_counters(found.data);
    bytes += found.data.size();
    if (!some || bytes > kMostListedBytes) {
      return fail(ErrorCode::kIo, "cannot look at the store", description_, kNotOfItsForm);
    }
    if (some->empty()) return all;
    std::ranges::move(*some, std::back_inserter(all));
  }
}

}  // namespace farheap::store::beside
