// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Versions over leases over a store on a server, with all that can go wrong between them, against a model of what each
// commit holds. One seed is one run; a run that fails prints its seed, and FARHEAP_SIMULATION_SEED=N runs that alone.
//
// What must hold in every run:
//   - no two writers are sure of the lease at a time;
//   - who opens the heap, to write or to read, finds exactly what some commit held, and none before the last one that
//     was acknowledged when it began to open;
//   - what it reads stays so while it has its lease, and a writer reads what it wrote.
//
// That it finds what it is for is a part of the test: FindsAWriterThatIsTakenForDead, FindsAWriteThatOutlivesItsLease
// and FindsAFailedSync put the old faults back, each by a stand-in for what mends it, and are green when a run fails.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "segment/versions.hpp"
#include "share/leased_store.hpp"
#include "simulated_world.hpp"
#include "store/aligned_buffer.hpp"
#include "tests/steps.hpp"
#include "tests/words.hpp"

namespace farheap::simulation {
namespace {

using pager::Backing;
using segment::Versions;
using share::LeasedStore;
using share::LeaseUse;
using share::SegmentLeases;

constexpr std::uint64_t kPages = 12;
using Contents = std::array<std::uint64_t, kPages>;  // what each page is full of; page 0: which attempt this is

// The faults of old, for those who look whether they are found.
struct OldFaults {
  bool takes_the_living_for_dead = false;
  bool has_no_fence = false;
  bool forgets_a_failed_sync = false;
};

class WithoutFence final : public segment::VersionLeases {
 public:
  explicit WithoutFence(SegmentLeases& leases) : leases_(leases) {}
  Status take(std::uint64_t commit) override { return leases_.take(commit); }
  Result<std::uint64_t> oldest() override { return leases_.oldest(); }

 private:
  SegmentLeases& leases_;
};

// As a kernel does, and as nobody noticed: a sync that failed is followed by one that is well.
class ForgetsFailures final : public store::Decorator {
 public:
  explicit ForgetsFailures(std::unique_ptr<Store> inner) : Decorator("forgets", std::move(inner)) {}
  Status sync() override {
    for (int i = 0; i < 8; ++i) {
      if (inner_->sync()) return {};
    }
    return inner_->sync();
  }
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, const Troubles& troubles, const OldFaults& faults = {})
      : troubles_(troubles), faults_(faults), world_(seed) {}

  std::vector<std::string> operator()() {
    world_.troubles = {.lost = 0, .late = 0, .cut_off = 0, .stopped = 0, .killed = 0, .server_away = 0};
    const Troubles none = world_.troubles;
    world_.add([&] { create(); });
    world_.run();
    world_.troubles = troubles_;
    world_.troubles.dead_is_elsewhere = !faults_.takes_the_living_for_dead;
    for (int i = 0; i < 2; ++i) world_.add([&] { write_for_a_while(); });
    world_.add([&] { read_for_a_while(); });
    world_.run();
    world_.troubles = none;
    world_.add([&] { look_at_the_end(); });
    world_.run();
    return world_.wrongs;
  }
  [[nodiscard]] std::uint64_t trace() const { return world_.trace(); }
  [[nodiscard]] std::uint64_t commits() const { return commits_; }
  [[nodiscard]] std::uint64_t take_overs() const { return take_overs_; }

 private:
  void wrong(const std::string& what) { world_.wrongs.push_back(what); }
  std::unique_ptr<Handle> handle(Handle::For what) { return std::make_unique<Handle>(world_, server_, what); }

  // What has a lease, and is given up with it.
  struct Session {
    Session(World& its_world, std::unique_ptr<SegmentLeases> taken) : world(its_world), leases(std::move(taken)) {
      world.current().next_beat = world.now() + share::lease_term().count() * kMs / 4;
      world.current().leases = leases.get();
    }
    ~Session() {
      store.reset();
      world.current().leases = nullptr;
      leases.reset();
      if (world.current().is_killed) world.start_again();
    }
    World& world;
    std::unique_ptr<SegmentLeases> leases;
    std::unique_ptr<Store> store;
  };
  std::unique_ptr<Session> session(LeaseUse use) {
    auto leases = SegmentLeases::take(handle(Handle::For::kLeases), use, "simulated", SegmentLeases::Beats::kByHand);
    if (!leases) {
      if (world_.current().is_killed) world_.start_again();
      return nullptr;
    }
    auto made = std::make_unique<Session>(world_, std::move(*leases));
    made->store = std::make_unique<LeasedStore>(handle(Handle::For::kPages), *made->leases);
    if (faults_.forgets_a_failed_sync) made->store = std::make_unique<ForgetsFailures>(std::move(made->store));
    return made;
  }

  // ---- pages
  Status write(Versions& versions, std::uint64_t page, std::uint64_t value) {
    const store::AlignedBuffer buffer(kBlockBytes);
    std::byte* const bytes = buffer.part(0, kBlockBytes).data();
    test::repeat_word(bytes, kBlockBytes, value);
    const Backing::Write one{{page, 1}, bytes};
    Status status;
    for (int i = 0; i < 3; ++i) {  // on error it is to be written again
      status = versions.write({&one, 1});
      if (status || world_.current().is_killed) break;
      world_.pass(100 * kMs);
    }
    return status;
  }
  // Nothing on error: that is no wrong.
  std::optional<Contents> read(Versions& versions) {
    const store::AlignedBuffer into(kPages * kBlockBytes);
    const Backing::Read all{{0, kPages}, into.part(0, kPages * kBlockBytes).data()};
    if (!versions.read({&all, 1})) return std::nullopt;
    Contents found{};
    for (std::uint64_t page = 0; page < kPages; ++page) {
      const auto bytes = into.part(page * kBlockBytes, kBlockBytes);
      std::memcpy(&found[page], bytes.data(), sizeof found[page]);
      if (std::memcmp(bytes.data(), bytes.data() + 8, kBlockBytes - 8) != 0) wrong("a page is torn, or another's");
    }
    return found;
  }
  // What is opened is a commit, and none before `acknowledged`.
  std::optional<Contents> look(Versions& versions, std::uint64_t acknowledged, const char* who) {
    const auto found = read(versions);
    if (!found) return found;
    const std::uint64_t attempt = (*found)[0];
    if (attempt >= attempts_.size() || attempts_[attempt] != *found) {
      std::string told = std::string(who) + " finds what no commit held";
      for (std::uint64_t page = 0; page < kPages; ++page) {
        const std::uint64_t held = attempt < attempts_.size() ? attempts_[attempt][page] : 0;
        if ((*found)[page] != held) told += fmt::format(", page {}: {} for {}", page, (*found)[page], held);
      }
      wrong(told);
    } else if (attempt < acknowledged) {
      wrong(std::string(who) + " does not find the last commit that was acknowledged");
    }
    return found;
  }
  Status commit(Versions& versions, Contents& mine) {
    const std::uint64_t attempt = attempts_.size();
    attempts_.push_back(mine);
    attempts_.back()[0] = attempt;
    if (Status status = write(versions, 0, attempt); !status) return status;
    mine[0] = attempt;
    Status status = versions.commit();
    if (status) acknowledged_ = std::max(acknowledged_, attempt), ++commits_;
    return status;
  }

  // ---- lives
  void create() {
    auto session = this->session(LeaseUse::kAlone);
    auto versions = Versions::create(*session->store, {}, session->leases.get());
    Contents mine{};
    bool is_well = versions.has_value();
    for (std::uint64_t page = 1; is_well && page < kPages; ++page) {
      is_well = write(**versions, page, mine[page] = 1000 + page).has_value();
    }
    is_well = is_well && commit(**versions, mine) && session->leases->let_readers_in();
    if (!is_well) wrong("it cannot be created");
  }

  void write_for_a_while() {
    for (int i = 0; i < 6; ++i) {
      write_once();
      world_.pass(static_cast<std::int64_t>(world_.dice(4000)) * kMs);
    }
  }
  void write_once() {
    const std::uint64_t acknowledged = acknowledged_;
    auto session = this->session(LeaseUse::kWrites);
    if (!session) return;
    take_overs_ += session->leases->is_anybody_late();
    WithoutFence bare(*session->leases);
    segment::VersionLeases& leases =
        faults_.has_no_fence ? static_cast<segment::VersionLeases&>(bare) : *session->leases;
    auto versions = Versions::open(*session->store, &leases);
    if (!versions) return;
    auto mine = look(**versions, acknowledged, "a writer");
    for (int round = 0; mine && round < 12 && !world_.current().is_killed; ++round) {
      for (std::uint64_t i = world_.dice(6); i < 6; ++i) {
        const std::uint64_t page = 1 + world_.dice(kPages - 1);
        const std::uint64_t value = 1'000'000 + ++values_;
        if (!write(**versions, page, value)) return;
        (*mine)[page] = value;
      }
      if (world_.dice(3) == 0) (void)(*versions)->trim();
      if (!commit(**versions, *mine) && world_.dice(4) == 0) return;
      world_.pass(static_cast<std::int64_t>(world_.dice(2000)) * kMs);
      if (const auto found = read(**versions); found && *found != *mine) wrong("a writer does not read what it wrote");
    }
  }
  void read_for_a_while() {
    for (int i = 0; i < 10; ++i) {
      read_once();
      world_.pass(static_cast<std::int64_t>(world_.dice(9000)) * kMs);
    }
  }
  void read_once() {
    const std::uint64_t acknowledged = acknowledged_;
    auto session = this->session(LeaseUse::kReads);
    if (!session) return;
    auto versions = Versions::open_to_read(*session->store, *session->leases);
    if (!versions) return;
    const auto first = look(**versions, acknowledged, "a reader");
    for (int i = 0; first && i < 4; ++i) {
      world_.pass(static_cast<std::int64_t>(world_.dice(9000)) * kMs);
      if (const auto again = read(**versions); again && *again != *first) wrong("what a reader reads has changed");
    }
  }
  // When all is quiet.
  void look_at_the_end() {
    std::unique_ptr<Session> session;
    while (!session) session = this->session(LeaseUse::kWrites);
    auto versions = Versions::open(*session->store, session->leases.get());
    if (!versions) return wrong("at the end it cannot be opened: " + versions.error().message());
    if (!look(**versions, acknowledged_, "at the end one")) wrong("at the end it cannot be read");
    if (Status sound = (*versions)->check(true); !sound) wrong("at the end: " + sound.error().message());
  }

  const Troubles troubles_;
  const OldFaults faults_;
  World world_;
  Server server_{world_};
  std::vector<Contents> attempts_;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t values_ = 0;
  std::uint64_t commits_ = 0;
  std::uint64_t take_overs_ = 0;
};

// Seeds from..end; the first run that fails, in words, with its seed.
std::string first_wrong(std::uint64_t from, std::uint64_t end, const Troubles& troubles, const OldFaults& faults = {}) {
  for (std::uint64_t seed = from; seed < end; ++seed) {
    const auto wrongs = Simulation(seed, troubles, faults)();
    if (!wrongs.empty()) return "seed " + std::to_string(seed) + ": " + wrongs.front();
  }
  return {};
}

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// FARHEAP_SIMULATION_SEED=N: that one; FARHEAP_SIMULATION_SEEDS=N: the first N.
std::string first_wrong_of_many(std::uint64_t seeds, const Troubles& troubles) {
  const std::uint64_t one = number_of("FARHEAP_SIMULATION_SEED", 0);
  if (one != 0) return first_wrong(one, one + 1, troubles);
  return first_wrong(1, 1 + number_of("FARHEAP_SIMULATION_SEEDS", test::steps<std::uint64_t>(seeds, 3)), troubles);
}

TEST(ManyWriters, LoseAndMixNothingWhateverHappensBetweenThem) { EXPECT_EQ(first_wrong_of_many(100, {}), ""); }

// The store says that it could not keep what was written, and forgets a part of it.
TEST(ManyWriters, LoseNothingByASyncThatFails) { EXPECT_EQ(first_wrong_of_many(100, {.sync_fails = 100}), ""); }

TEST(ManyWriters, ASeedIsARun) {
  Simulation one(7, {}), same(7, {}), another(8, {});
  one(), same(), another();
  EXPECT_EQ(one.trace(), same.trace());
  EXPECT_NE(one.trace(), another.trace());
}

// A test that never gets to what it is about proves nothing.
TEST(ManyWriters, GetsToWhatItIsAbout) {
  std::uint64_t commits = 0, take_overs = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Simulation run(seed, {});
    run();
    commits += run.commits(), take_overs += run.take_overs();
  }
  EXPECT_GT(commits, 20u * 20);
  EXPECT_GT(take_overs, 20u);
}

TEST(ManyWriters, FindsAWriterThatIsTakenForDead) {
  const std::string found = first_wrong(1, 100, {}, {.takes_the_living_for_dead = true});
  EXPECT_NE(found.find("two writers are sure"), std::string::npos) << found;
  std::puts(found.c_str());
}

TEST(ManyWriters, FindsAWriteThatOutlivesItsLease) {
  const std::string found = first_wrong(1, 200, {}, {.has_no_fence = true});
  EXPECT_NE(found, "");
  std::puts(found.c_str());
}

TEST(ManyWriters, FindsAFailedSync) {
  const std::string found = first_wrong(1, 200, {.sync_fails = 100}, {.forgets_a_failed_sync = true});
  EXPECT_NE(found, "");
  std::puts(found.c_str());
}

}  // namespace
}  // namespace farheap::simulation
