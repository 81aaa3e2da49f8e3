// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A server, a network, clocks and processes that are not there: all that happens between them is chosen by one seed.
//
// Every process is a thread, and one of them runs at a time: it goes on until it waits, for an answer or for time, and
// then the world does what comes next by its clock. So a run is a sequence of steps, the same one for the same seed.
//
// What may happen to a call: it takes its time; its request is lost, or its answer; it arrives late, long after its
// sender has given up on it, or after its sender has ended; it arrives more than once; the server is away; a process is
// cut off for 25 to 60 s, or stopped for as long at any place where it waits, or killed; a sync fails and forgets what
// it should have kept. What may not happen, because an engine promises it (Outcome::kUnknown): that a call which was
// answered arrives again later.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <queue>
#include <random>
#include <thread>

#include "os/boot_clock.hpp"
#include "share/segment_leases.hpp"
#include "store/deadline.hpp"

namespace farheap::simulation {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSecond = 1000 * kMs;
constexpr std::size_t kBlockBytes = 4096;

// Chances in a thousand, of each call or step.
struct Troubles {
  unsigned lost = 20;             // a request, or its answer
  unsigned late = 10;             // a request
  unsigned cut_off = 4;           // a process from the network
  unsigned stopped = 2;           // a process, where it waits
  unsigned killed = 2;            // a process, where it calls
  unsigned server_away = 1;       // for some seconds
  unsigned sync_fails = 0;        // and forgets
  bool dead_is_elsewhere = true;  // false: whoever is elsewhere is taken for dead
};

class World;

struct Process {
  std::uint64_t number = 0;  // another one after each start
  std::function<void()> life;
  std::thread thread;
  std::condition_variable turn;
  bool has_turn = false;
  bool has_ended = false;
  bool is_killed = false;                  // it can neither send nor hear
  std::int64_t cut_off_until = 0;          // on the world's clock
  std::int64_t clock_ahead = 0;            // of the world's
  share::SegmentLeases* leases = nullptr;  // that it has to renew
  std::int64_t next_beat = 0;
  bool is_at_leases = false;  // in a call about them
};

class World final : public os::BootClock {
 public:
  explicit World(std::uint64_t seed) : random_(seed), replaced_(*this) {}

  Troubles troubles;

  // ---- chance and time
  std::uint64_t dice(std::uint64_t sides) {
    const std::uint64_t thrown = random_() % sides;
    trace_ = (trace_ ^ thrown) * 0x9E3779B97F4A7C15u;
    return thrown;
  }
  bool happens(unsigned in_a_thousand) { return dice(1000) < in_a_thousand; }
  std::int64_t now() const { return now_; }
  // Alike for two runs that were alike.
  std::uint64_t trace() const { return trace_; }
  std::int64_t now_ns() override { return now_ + (current_ != nullptr ? current_->clock_ahead : 0); }
  void sleep(std::chrono::nanoseconds time) override { pass(time.count()); }
  void at(std::int64_t when, std::function<void()> what) { events_.push({when, next_event_++, std::move(what)}); }

  // ---- processes
  Process& current() { return *current_; }
  void add(std::function<void()> life) {
    auto process = std::make_unique<Process>();
    process->number = ++started_;
    process->life = std::move(life);
    process->clock_ahead = static_cast<std::int64_t>(processes_.size() + 1) * 1000 * kSecond;
    processes_.push_back(std::move(process));
  }
  // Until all have ended.
  void run() {
    for (auto& one : processes_) {
      Process& process = *one;
      process.thread = std::thread([this, &process] { live(process); });
      at(static_cast<std::int64_t>(dice(50)) * kMs, [this, &process] { give_turn(process); });
    }
    while (!events_.empty()) {
      const auto event = events_.top();
      events_.pop();
      now_ = std::max(now_, event.when);
      event.what();
    }
    for (auto& one : processes_) one->thread.join();
    processes_.clear();
  }
  // The running process, which was killed, is another one from now on.
  void start_again() {
    current_->number = ++started_;
    current_->is_killed = false;
  }
  // nullptr: it has ended.
  [[nodiscard]] Process* process(std::uint64_t number) const {
    for (const auto& one : processes_) {
      if (one->number == number) return one.get();
    }
    return nullptr;
  }

  // The running process waits; it may be stopped meanwhile, and beats in time.
  void pass(std::int64_t time) {
    if (current_ == nullptr) {  // before all begins, or after
      now_ += time;
      return;
    }
    const std::int64_t until = now_ + time;
    Process& self = *current_;
    if (happens(troubles.stopped)) wait_until(now_ + trouble_time());
    while (self.leases != nullptr && !self.is_at_leases && !self.is_killed && self.next_beat <= until) {
      wait_until(std::max(now_, self.next_beat));
      self.next_beat = now_ + share::lease_term().count() * kMs / 4;
      // By a thread of its own, as ever: what deadline this call has is none of a beat's.
      std::thread([&] { (void)self.leases->beat(); }).join();
    }
    if (now_ < until) wait_until(until);
  }
  std::int64_t trouble_time() { return static_cast<std::int64_t>(25'000 + dice(35'000)) * kMs; }

  // What must not be, in words.
  std::vector<std::string> wrongs;

 private:
  struct Event {
    std::int64_t when;
    std::uint64_t number;
    std::function<void()> what;
    bool operator<(const Event& other) const { return std::pair(when, number) > std::pair(other.when, other.number); }
  };

  void live(Process& self) {
    {
      std::unique_lock lock(turns_);
      self.turn.wait(lock, [&] { return self.has_turn; });
    }
    self.life();
    std::lock_guard lock(turns_);
    self.has_ended = true;
    self.has_turn = false;
    back_.notify_one();
  }
  void give_turn(Process& process) {
    std::unique_lock lock(turns_);
    current_ = &process;
    process.has_turn = true;
    process.turn.notify_all();
    back_.wait(lock, [&] { return !process.has_turn; });
    current_ = nullptr;
  }
  void wait_until(std::int64_t when) {
    Process& self = *current_;
    at(when, [this, &self] { give_turn(self); });
    std::unique_lock lock(turns_);
    self.has_turn = false;
    back_.notify_one();
    self.turn.wait(lock, [&] { return self.has_turn; });
  }

  std::mt19937_64 random_;
  std::uint64_t trace_ = 1;
  std::int64_t now_ = kSecond;
  std::priority_queue<Event> events_;
  std::uint64_t next_event_ = 0;
  std::vector<std::unique_ptr<Process>> processes_;
  std::uint64_t started_ = 0;
  Process* current_ = nullptr;
  std::mutex turns_;
  std::condition_variable back_;
  os::ReplacedBootClock replaced_;
};

// What is kept. A call is carried out when it arrives.
class Server {
 public:
  explicit Server(World& world) : world_(world) {}

  struct Block {
    Version version = 0;
    std::vector<std::byte> bytes;
    std::uint64_t writer = 0;  // a process
    bool is_kept = true;       // a sync was there since
  };

  [[nodiscard]] bool is_away() const { return world_.now() < away_until_; }
  void go_away() { away_until_ = world_.now() + static_cast<std::int64_t>(world_.dice(8000)) * kMs; }

  void get(Get& one) {
    const auto found = blocks_.find(one.block);
    if (found == blocks_.end()) {
      one.outcome = Outcome::kAbsent;
      return;
    }
    for (std::size_t i = 0; i < one.into.size() / kBlockBytes; ++i) {
      const auto next = blocks_.find(one.block + i);
      if (next == blocks_.end()) {
        one.outcome = Outcome::kAbsent;
        return;
      }
      std::ranges::copy(next->second.bytes, one.into.begin() + static_cast<std::ptrdiff_t>(i * kBlockBytes));
    }
    one.version = found->second.version;
    one.outcome = Outcome::kOk;
  }

  void put(std::uint64_t first, const std::vector<std::byte>& bytes, std::optional<Version> expected,
           std::uint64_t sender, Put* answer) {
    if (expected) {
      const auto found = blocks_.find(first);
      const Version there = found == blocks_.end() ? 0 : found->second.version;
      if (there != *expected) {
        if (answer != nullptr) answer->outcome = Outcome::kConflict, answer->version = there;
        return;
      }
      if (first == share::kFirstLease) look_at_change_of_hands(bytes);
    }
    for (std::size_t i = 0; i < bytes.size() / kBlockBytes; ++i) {
      Block& block = blocks_[first + i];
      if (block.is_kept && !expected) kept_[first + i] = block;
      block.version = ++versions_;
      block.bytes.assign(bytes.begin() + static_cast<std::ptrdiff_t>(i * kBlockBytes),
                         bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * kBlockBytes));
      block.writer = sender;
      block.is_kept = expected.has_value();
    }
    if (answer != nullptr) answer->outcome = Outcome::kOk, answer->version = versions_;
  }

  void erase(std::uint64_t first, std::uint64_t count) {
    blocks_.erase(blocks_.lower_bound(first), blocks_.lower_bound(first + count));
  }

  void sync(std::uint64_t sender) {
    for (auto& [number, block] : blocks_) {
      if (block.writer == sender) block.is_kept = true;
    }
  }
  // What this one has written since is what it was, or not.
  void fail_sync(std::uint64_t sender) {
    for (auto block = blocks_.begin(); block != blocks_.end();) {
      const bool is_forgotten = block->second.writer == sender && !block->second.is_kept && world_.dice(2) == 0;
      if (!is_forgotten) {
        block->second.is_kept = block->second.is_kept || block->second.writer == sender;
        ++block;
      } else if (const Block before = kept_[block->first]; before.version != 0) {
        block->second = before;
        ++block;
      } else {
        block = blocks_.erase(block);
      }
    }
  }

  // The number of the process that wrote it; 0: it is not there.
  [[nodiscard]] std::uint64_t writer_of(std::uint64_t block) const {
    const auto found = blocks_.find(block);
    return found == blocks_.end() ? 0 : found->second.writer;
  }

 private:
  void look_at_change_of_hands(const std::vector<std::byte>& bytes) {
    const auto found = blocks_.find(share::kFirstLease);
    const auto before = found == blocks_.end() ? std::nullopt : share::decode(found->second.bytes);
    const auto after = share::decode(bytes);
    if (!before || !after || before->owner == after->owner || before->use == share::LeaseUse::kNone) return;
    Process* const owner = world_.process(found->second.writer);
    if (owner == nullptr || owner->is_killed || owner->leases == nullptr) return;
    const std::int64_t its_now = world_.now() + owner->clock_ahead;
    if (owner->leases->sure_until().boot_ns() > its_now)
      world_.wrongs.emplace_back("two writers are sure that they have the lease");
  }

  World& world_;
  std::int64_t away_until_ = 0;
  Version versions_ = 0;
  std::map<std::uint64_t, Block> blocks_;
  std::map<std::uint64_t, Block> kept_;  // what stood where something is that no sync has kept
};

// A process's handle on the server: as an engine, it asks again until it is answered, for patience_s, or until the
// deadline of the call.
class Handle final : public Store {
 public:
  enum class For { kPages, kLeases };
  Handle(World& world, Server& server, For what)
      : world_(world), server_(server), is_for_leases_(what == For::kLeases) {}

  std::string describe() const override { return "simulated:"; }
  Capabilities capabilities() const override {
    return static_cast<Capabilities>(Capability::kVersions) | static_cast<Capabilities>(Capability::kManyMachines) |
           static_cast<Capabilities>(Capability::kDurable) | static_cast<Capabilities>(Capability::kLinearisable) |
           static_cast<Capabilities>(Capability::kSparse);
  }
  Limits limits() const override {
    return {.block_bytes = kBlockBytes,
            .largest_value_bytes = 4 * kBlockBytes,
            .largest_batch_bytes = 64 * kBlockBytes,
            .largest_batch_operations = 16,
            .best_run_bytes = kBlockBytes};
  }

  Status get(std::span<Get> batch) override {
    const Fate fate = call([&](bool is_heard) {
      if (!is_heard) return;
      for (Get& one : batch) {
        server_.get(one);
        if (one.outcome == Outcome::kOk && one.block >= share::kFirstLease) move_owner(one);
        if (one.known != 0 && one.outcome == Outcome::kOk && one.known == one.version) one.outcome = Outcome::kSame;
      }
    });
    if (fate == Fate::kAnswered) return {};
    for (Get& one : batch) one.outcome = Outcome::kFailed;
    return fail(ErrorCode::kUnavailable, "cannot read", describe(), "the server does not answer");
  }

  Status put(std::span<Put> batch) override {
    struct Piece {
      std::uint64_t first;
      std::vector<std::byte> bytes;
      std::optional<Version> expected;
    };
    auto pieces = std::make_shared<std::vector<Piece>>();
    for (const Put& one : batch) pieces->push_back({one.block, {one.from.begin(), one.from.end()}, one.expected});
    auto results = std::make_shared<std::vector<Put>>(batch.size());
    const std::uint64_t sender = world_.current().number;
    const Fate fate = call([&server = server_, pieces, results, sender, was = std::make_shared<bool>(false)](bool) {
      if (std::exchange(*was, true) && (*pieces)[0].expected) return;  // its note is there: not twice
      for (std::size_t i = 0; i < pieces->size(); ++i) {
        const Piece& piece = (*pieces)[i];
        server.put(piece.first, piece.bytes, piece.expected, sender, &(*results)[i]);
      }
    });
    for (std::size_t i = 0; i < batch.size(); ++i) {
      batch[i].outcome = fate == Fate::kAnswered  ? (*results)[i].outcome
                         : fate == Fate::kNotSent ? Outcome::kFailed
                                                  : Outcome::kUnknown;
      batch[i].version = fate == Fate::kAnswered ? (*results)[i].version : 0;
    }
    if (fate == Fate::kAnswered) return {};
    return fail(fate == Fate::kNotSent ? ErrorCode::kUnavailable : ErrorCode::kUnknown, "cannot write", describe(),
                "the server does not answer");
  }

  Status erase(std::uint64_t first, std::uint64_t count) override {
    const Fate fate = call([&server = server_, first, count](bool) { server.erase(first, count); });
    if (fate == Fate::kAnswered) return {};
    return fail(ErrorCode::kUnknown, "cannot erase", describe(), "the server does not answer");
  }

  Status sync() override {
    const std::uint64_t sender = world_.current().number;
    bool is_well = true;
    const Fate fate = call([&](bool is_heard) {
      if (!is_heard) return;
      const bool fails = world_.happens(world_.troubles.sync_fails);
      is_well = is_well && !fails;  // one that failed stays so, when its answer is lost and it is asked for again
      fails ? server_.fail_sync(sender) : server_.sync(sender);
    });
    if (fate == Fate::kAnswered && is_well) return {};
    return fail(ErrorCode::kIo, "cannot sync", describe(), is_well ? "the server does not answer" : "it failed");
  }

  Result<std::int64_t> add(std::string_view, std::int64_t) override {
    return fail(ErrorCode::kUnavailable, "cannot count", describe(), "no counters");
  }
  Result<StoreUsage> usage() override { return StoreUsage{}; }

 private:
  enum class Fate { kAnswered, kUnknown, kNotSent };

  // `work(is_heard)`: what it does on the server; is_heard: its caller waits for it still.
  Fate call(std::function<void(bool)> work) {
    Process& self = world_.current();
    const bool was_at_leases = std::exchange(self.is_at_leases, self.is_at_leases || is_for_leases_);
    const Fate fate = try_for_a_while(self, std::move(work));
    self.is_at_leases = was_at_leases;
    return fate;
  }

  Fate try_for_a_while(Process& self, const std::function<void(bool)>& work) {
    constexpr std::int64_t kTimeout = 5 * kSecond;
    const auto until = std::min(store::Deadline::in(std::chrono::seconds(60)), store::Deadline::of_this_call());
    const auto is_over = std::make_shared<bool>(false);  // answered: what was sent before does not come any more
    bool was_sent = false;
    for (std::int64_t pause = 5 * kMs;; pause = std::min(2 * pause, kSecond)) {
      if (!self.is_killed && world_.happens(world_.troubles.killed)) self.is_killed = true;
      if (self.is_killed) return was_sent ? Fate::kUnknown : Fate::kNotSent;
      if (until.has_passed()) return was_sent ? Fate::kUnknown : Fate::kNotSent;
      world_.pass(1);  // it may be stopped here, having looked at the clock
      if (world_.happens(world_.troubles.cut_off)) self.cut_off_until = world_.now() + world_.trouble_time();
      if (world_.happens(world_.troubles.server_away)) server_.go_away();
      const bool is_cut_off = world_.now() < self.cut_off_until;
      const bool is_late = is_cut_off ? world_.dice(2) == 0 : world_.happens(world_.troubles.late);
      const bool is_lost = is_cut_off || is_late || server_.is_away() || world_.happens(world_.troubles.lost);
      was_sent = true;
      if (is_late) send_late(self, work, is_over);
      if (!is_lost) {
        world_.pass(static_cast<std::int64_t>(1 + world_.dice(4)) * kMs);
        if (self.is_killed) return Fate::kUnknown;
        work(true);
        world_.pass(static_cast<std::int64_t>(1 + world_.dice(4)) * kMs);
        if (!world_.happens(world_.troubles.lost) && !self.is_killed) {
          *is_over = true;
          return Fate::kAnswered;
        }
      }
      world_.pass(std::min<std::int64_t>(kTimeout, until.left().count()));
      world_.pass(std::min<std::int64_t>(pause, until.left().count()));
    }
  }

  void send_late(const Process& self, const std::function<void(bool)>& work, const std::shared_ptr<bool>& is_over) {
    const std::int64_t healed = std::max(self.cut_off_until, world_.now());
    for (std::uint64_t times = 1 + world_.dice(2); times > 0; --times) {
      const std::int64_t when = healed + static_cast<std::int64_t>(world_.dice(40'000)) * kMs;
      world_.at(when, [work, is_over] {
        if (!*is_over) work(false);
      });
    }
  }

  // The owner of another's lease is on another machine, or seems to have ended.
  void move_owner(Get& one) {
    if (server_.writer_of(one.block) == world_.current().number) return;
    auto record = share::decode(one.into);
    if (!record) return;
    if (world_.troubles.dead_is_elsewhere) {
      record->process.boot = 1;
    } else {
      record->process.pid = INT32_MAX;
    }
    share::encode(*record, one.into);
  }

  World& world_;
  Server& server_;
  const bool is_for_leases_;
};

}  // namespace farheap::simulation
