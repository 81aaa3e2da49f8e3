// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/redis_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/log.hpp"
#include "base/units.hpp"
#include "os/own_descriptors.hpp"
#include "store/batch.hpp"
#include "store/redis/blocks.hpp"
#include "store/redis/gets_in_flight.hpp"
#include "store/redis/names_of_hosts.hpp"

namespace farheap::store::redis {
namespace {

constexpr std::uint64_t kMostListed = 4096;  // groups that are erased without looking which are there
constexpr std::size_t kTogether = 1000;      // commands
constexpr std::string_view kHour = "3600";

// The answer is kept, and given again when the same is asked again. Numbers beyond 2^53 are text in a script.
constexpr std::string_view kAdd =
    "local d=redis.call('GET',KEYS[2]) "
    "if d and string.sub(d,1,#ARGV[2]+1)==ARGV[2]..' ' then return string.sub(d,#ARGV[2]+2) end "
    "redis.call('INCRBY',KEYS[1],ARGV[1]) "
    "local v=redis.call('GET',KEYS[1]) "
    "redis.call('SET',KEYS[2],ARGV[2]..' '..v) "
    "if ARGV[3]~='0' then redis.call('EXPIRE',KEYS[2],ARGV[3]) end return v";

// The error of a batch: that of the first entry that has one.
template <class Entry>
Status explain_batch(std::span<const Entry> batch, bool write, const Store& store, const Status& ran,
                     std::span<const Command> commands) {
  const auto bad = std::ranges::find_if(batch, [](const Entry& entry) { return is_error(entry.outcome); });
  if (bad == batch.end()) return {};
  Error error = outcome_error(bad->outcome, write, store, bad->block);
  const auto refused = std::ranges::find(commands, Command::State::kRefused, &Command::state);
  if (!ran) {
    if (ran.error().code == ErrorCode::kCorrupt || bad->outcome != Outcome::kUnknown) error.code = ran.error().code;
    error.why = ran.error().why, error.remedy = ran.error().remedy;
  } else if (refused != commands.end()) {
    const Error said = explain(refused->why, "", "");
    error.code = said.code, error.why = said.why, error.remedy = said.remedy;
  }
  return fail(std::move(error));
}

}  // namespace

RedisStore::RedisStore(Place place, const std::string& name, const StoreOptions& options)
    : shared_(std::move(place), name), lanes_(shared_), options_(options) {
  limits_ = {.block_bytes = options.block_bytes,
             .largest_value_bytes = 4 * base::kMiB,
             .largest_batch_bytes = 16 * base::kMiB,
             .largest_batch_operations = 1024,
             .best_run_bytes = 256 * base::kKiB};
}

Status RedisStore::open() {
  auto lane = lanes_.take();
  Caller caller(shared_, *lane);
  caller.exchange().set_hasty();
  if (Status reached = reach_servers(caller); !reached) return reached;
  if (options_.lifetime == Lifetime::kScratch) {
    const auto& name = shared_.client_name;  // "farheap:PARENT~ID"
    const auto tilde = name.rfind('~');
    parent_ = name.substr(8, tilde - 8);
    shared_.scratch.id = name.substr(tilde + 1);
    shared_.scratch.key = Keys(parent_).scratch();
    if (family_.take(shared_.scratch.id)) shared_.scratch.machine = FamilyLock::machine();
    if (Status collected = collect_scratch(caller, parent_); !collected) {
      base::log(base::LogLevel::kWarn, "{}", collected.error().message());  // space is lost, no data
    }
    if (Status registered = register_scratch(caller); !registered) return registered;
    if (pipe2(alive_, O_CLOEXEC) != 0) return fail(errno_error(errno, "cannot open the store", describe()));
    for (int& end : alive_) end = os::keep_descriptor(end);
  } else {
    is_durable_ = is_each_write_durable(caller);
  }
  if (Status opened = open_meta(caller, shared_.client_name.substr(8), options_); !opened) return opened;
  if (!parent_.empty()) {
    constexpr unsigned kBeatsInGrace = 8;
    shared_.heart.start(std::chrono::nanoseconds(std::chrono::seconds(shared_.place.grace_s)) / kBeatsInGrace, [this] {
      auto own_lane = lanes_.take();
      Caller beating(shared_, *own_lane);
      renew_scratch(beating);
    });
  }
  return {};
}

// Nobody else has the other end of the pipe: forked children have.
bool RedisStore::is_last_process() {
  os::release_descriptor(alive_[1]);
  pollfd one{.fd = alive_[0], .events = POLLIN};
  const bool is_last = poll(&one, 1, 0) == 1 && (one.revents & POLLHUP) != 0;
  os::release_descriptor(alive_[0]);
  return is_last;
}

RedisStore::~RedisStore() {
  shared_.heart.stop();
  if (alive_[0] < 0 || !is_last_process() || shared_.is_lost()) return;
  auto lane = lanes_.take();
  Caller caller(shared_, *lane);
  caller.exchange().set_hasty();  // a server that is gone is no reason to stay
  if (Status removed = remove_scratch(caller, parent_, shared_.scratch.id); !removed) {
    base::log(base::LogLevel::kWarn, "{}", removed.error().message());
  }
}

Capabilities RedisStore::capabilities() const {
  auto all = static_cast<Capabilities>(Capability::kVersions) | static_cast<Capabilities>(Capability::kCounters) |
             static_cast<Capabilities>(Capability::kLinearisable) | static_cast<Capabilities>(Capability::kSparse) |
             static_cast<Capabilities>(Capability::kForks);
  if (options_.lifetime == Lifetime::kScratch) return all;
  all |= static_cast<Capabilities>(Capability::kManyProcesses);
  if (!shared_.place.addresses.front().host.empty()) all |= static_cast<Capabilities>(Capability::kManyMachines);
  if (is_durable_) all |= static_cast<Capabilities>(Capability::kDurable);
  return all;
}

Status RedisStore::get(std::span<Get> batch) {
  if (auto ok = check(batch, limits_, capabilities(), *this); !ok) return ok;
  auto lane = lanes_.take();
  Exchange exchange(shared_, *lane);
  std::vector<Command> commands;
  Status ran;
  KnownBatch known(batch);
  GetBatch gets(batch, limits_.block_bytes);
  if (std::ranges::any_of(batch, [](const Get& entry) { return entry.known != 0; })) {
    lane->requests.clear();
    known.write(shared_.keys, lane->requests, commands);
    ran = exchange.run(commands);
    known.settle(commands);
  }
  const bool is_known =
      std::ranges::all_of(commands, [](const Command& one) { return one.state == Command::State::kDone; });
  if (ran && is_known) {
    commands.clear();
    lane->requests.clear();
    gets.write(shared_.keys, lane->requests, commands);
    if (!commands.empty()) ran = exchange.run(commands);
    gets.settle(commands);
  }
  for (auto& entry : batch) {
    if (entry.outcome == Outcome::kPending) entry.outcome = Outcome::kFailed;
  }
  return explain_batch<Get>(batch, false, *this, ran, commands);
}

Status RedisStore::put(std::span<Put> batch) {
  if (auto ok = check(batch, limits_, capabilities(), *this); !ok) return ok;
  auto lane = lanes_.take();
  lane->requests.clear();
  std::vector<Command> commands;
  PutBatch puts(batch, limits_.block_bytes);
  puts.write(shared_, *lane, commands);
  Exchange exchange(shared_, *lane);
  const Status ran = commands.empty() ? Status{} : exchange.run(commands);
  puts.settle(commands);
  return explain_batch<Put>(batch, true, *this, ran, commands);
}

void RedisStore::add_erasure(Caller& caller, std::uint64_t group, std::uint64_t first, std::uint64_t last) {
  const std::uint64_t begin = group * kGroupBlocks, end = begin + (kGroupBlocks - 1);
  const auto key = shared_.keys.group(group);
  if (first <= begin && end <= last) return caller.add(key, true, {"UNLINK", key});
  std::vector<std::string> words{"HDEL", key};
  for (auto block = std::max(first, begin); block <= std::min(last, end); ++block) {
    words.push_back(std::to_string(block - begin));
    words.push_back("s" + words.back());
  }
  caller.add(key, true, words);
}

Status RedisStore::erase_listed(Caller& caller, std::uint64_t first, std::uint64_t last) {
  for (auto group = first / kGroupBlocks; group <= last / kGroupBlocks; ++group) {
    add_erasure(caller, group, first, last);
    if (caller.count() < kTogether && group != last / kGroupBlocks) continue;
    if (auto done = caller.run("cannot erase blocks"); !done) return fail(std::move(done.error()));
  }
  return {};
}

Status RedisStore::erase_present(Caller& caller, std::uint64_t first, std::uint64_t last) {
  auto groups = groups_present(caller);
  if (!groups) return fail(std::move(groups.error()));
  for (const auto group : *groups) {
    if (group < first / kGroupBlocks || group > last / kGroupBlocks) continue;
    add_erasure(caller, group, first, last);
    if (caller.count() < kTogether) continue;
    if (auto done = caller.run("cannot erase blocks"); !done) return fail(std::move(done.error()));
  }
  auto done = caller.run("cannot erase blocks");
  return done ? Status{} : fail(std::move(done.error()));
}

Status RedisStore::erase(std::uint64_t first, std::uint64_t count) {
  if (count == 0) return {};
  const std::uint64_t last = count - 1 > ~std::uint64_t{0} - first ? ~std::uint64_t{0} : first + count - 1;
  auto lane = lanes_.take();
  Caller caller(shared_, *lane);
  caller.set_beats();
  const bool is_wide = last / kGroupBlocks - first / kGroupBlocks >= kMostListed;
  return is_wide ? erase_present(caller, first, last) : erase_listed(caller, first, last);
}

Result<std::int64_t> RedisStore::add(std::string_view counter, std::int64_t delta) {
  auto lane = lanes_.take();
  Caller caller(shared_, *lane);
  const auto key = shared_.keys.counter(counter);
  if (delta == 0) {
    caller.add(key, false, {"GET", key});
  } else {
    caller.set_beats();
    caller.add(key, true,
               {"EVAL", kAdd, "2", key, beside(key, "done", lane->id), std::to_string(delta),
                std::to_string(shared_.next_number()), std::to_string(shared_.note_seconds())});
  }
  auto replies = caller.run("cannot count");
  if (!replies) return fail(std::move(replies.error()));
  const Reply& reply = replies->front();
  if (reply.kind == Kind::kNil && delta == 0) return 0;
  std::int64_t value = 0;
  const char* const end = reply.text.data() + reply.text.size();
  if (const auto read = std::from_chars(reply.text.data(), end, value);
      reply.kind != Kind::kBulk || read.ec != std::errc() || read.ptr != end) {
    return fail(ErrorCode::kCorrupt, "cannot count", describe(), "what is there is no number", "remove the counter");
  }
  return value;
}

// A key of ours that this server owns.
std::string RedisStore::key_on(unsigned node) const {
  std::string key;
  for (unsigned i = 0; i < 100 * kSlots; ++i) {
    key = fmt::format("{}sync-{}}}", shared_.keys.prefix(), i);
    if (shared_.nodes.owner(slot_of(key)) == node) break;
  }
  return key;
}

// WAIT is for what its own connection wrote: a write there comes after all that was written before it.
Status RedisStore::sync() {
  if (options_.lifetime == Lifetime::kScratch || shared_.place.replicas == 0) return {};
  constexpr char kWhat[] = "cannot make it durable";
  auto lane = lanes_.take();
  Caller caller(shared_, *lane);
  const auto wanted = std::to_string(shared_.place.replicas), limit = std::to_string(shared_.place.timeout_ms / 2);
  for (const unsigned node : shared_.nodes.primaries()) {
    const auto key = key_on(node);
    caller.add(key, true, {"SET", key, "", "EX", kHour});
    caller.add_on(node, {"WAIT", wanted, limit});
    auto replies = caller.run(kWhat);
    if (!replies) return fail(std::move(replies.error()));
    const auto have = replies->back().number;
    if (have >= static_cast<std::int64_t>(shared_.place.replicas)) continue;
    return fail(ErrorCode::kIo, kWhat, describe(),
                fmt::format("{} of {} replicas of {} have it after {} ms", have, wanted,
                            shared_.nodes.address(node).text(), limit),
                "see that the replicas run and follow, or ask for fewer (?replicas=)");
  }
  return {};
}

// A forked child asks for them before anything else, while no other thread is started.
std::unique_ptr<GetsInFlight> RedisStore::gets_in_flight(unsigned most) {
  shared_.heart.renew();
  renew_names_of_hosts();
  return RedisGetsInFlight::make(*this, most);
}

Result<std::vector<std::uint64_t>> RedisStore::groups_present(Caller& caller) {
  constexpr char kLooking[] = "cannot look at the store";
  std::vector<std::uint64_t> groups;
  Status listed = caller.each_key(shared_.keys.own_prefix() + "*", kLooking, [&](const auto& keys) -> Status {
    for (const auto& key : keys) {
      std::uint64_t group = 0;
      if (shared_.keys.is_group(key, group)) groups.push_back(group);
    }
    return groups.size() > kMostCollected ? caller.too_many(kLooking) : Status{};
  });
  if (!listed) return fail(std::move(listed.error()));
  std::ranges::sort(groups);
  const auto rest = std::ranges::unique(groups);
  groups.erase(rest.begin(), rest.end());
  return groups;
}

// In time with the keys of the whole database: a thousand of them in a third of a millisecond.
Result<StoreUsage> RedisStore::usage() {
  auto lane = lanes_.take();
  Caller caller(shared_, *lane);
  auto groups = groups_present(caller);
  if (!groups) return fail(std::move(groups.error()));
  StoreUsage usage;
  for (std::size_t i = 0; i < groups->size(); ++i) {
    const auto key = shared_.keys.group((*groups)[i]);
    caller.add(key, false, {"HLEN", key});
    if (caller.count() < kTogether && i + 1 < groups->size()) continue;
    auto lengths = caller.run("cannot look at the store");
    if (!lengths) return fail(std::move(lengths.error()));
    for (const auto& one : *lengths) usage.blocks += static_cast<std::uint64_t>(one.number) / 2;
  }
  if (groups->empty()) return usage;
  // One of them stands for all.
  const auto key = shared_.keys.group(groups->front());
  caller.add(key, false, {"HLEN", key});
  caller.add(key, false, {"MEMORY", "USAGE", key, "SAMPLES", "5"});
  auto sample = caller.run("cannot look at the store");
  const auto fields = sample ? (*sample)[0].number : 0;
  usage.space_bytes = usage.blocks * limits_.block_bytes;
  if (fields > 1) usage.space_bytes = usage.blocks * static_cast<std::uint64_t>((*sample)[1].number / (fields / 2));
  return usage;
}

}  // namespace farheap::store::redis
