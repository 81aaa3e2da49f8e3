// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A Redis Cluster of three primaries with a replica each: slots that move, primaries that are replaced, with and
// without what they had acknowledged. The tests go on from one another, and the last ones leave a cluster with holes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <set>
#include <sstream>
#include <thread>

#include "store/redis/keys.hpp"
#include "tests/store/redis_fixture.hpp"
#include "tests/store/server_programs.hpp"

namespace farheap::test {
namespace {

using testing::HasSubstr;

const StoreOptions kLarge{.block_bytes = 65536, .lifetime = Lifetime::kKeep};

struct Node {
  std::string id;
  std::uint16_t port = 0;
  bool is_primary = false;
  bool is_up = true;
  std::string primary;  // of a replica: its primary's id
};

class RedisCluster : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto started = start_redis_cluster();
    if (!started) throw std::runtime_error(started.error().message());
    servers_ = new TestServers(std::move(*started));
    // Each replica follows its primary, and all know it.
    const auto is_whole = [] {
      unsigned following = 0;
      for (const auto& node : nodes()) {
        if (node.is_primary) continue;
        const auto info = tell(node.port, {"INFO", "replication"}).text;
        following += info.find("master_link_status:up") != std::string::npos ? 1 : 0;
      }
      return following == 3;
    };
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1); !is_whole();) {
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error("the replicas do not follow");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  static void TearDownTestSuite() { delete servers_; }

  // Servers tell each other in their own time, and no test starts before they have. Seen once: after slots had moved
  // and a replica had taken over at once, one server held the cluster for down for more than a minute.
  void SetUp() override {
    ASSERT_TRUE(await([] { return servers_agree(); })) << what_servers_think();
  }

  // Whether all servers that run find the cluster whole, and agree on which of them serves which slots.
  static bool servers_agree() {
    std::set<std::vector<std::array<std::int64_t, 3>>> opinions;
    for (const auto& member : servers_->members) {
      if (!member->is_running()) continue;
      if (!is_whole_cluster(member->port())) return false;
      std::vector<std::array<std::int64_t, 3>> opinion;
      for (const auto& range : tell(member->port(), {"CLUSTER", "SLOTS"}).elements) {
        opinion.push_back({range.elements[0].number, range.elements[1].number, range.elements[2].elements[1].number});
      }
      std::ranges::sort(opinion);
      opinions.insert(std::move(opinion));
    }
    return opinions.size() == 1;
  }
  static std::string what_servers_think() {
    std::string all;
    for (const auto& member : servers_->members) {
      if (!member->is_running()) continue;
      all += fmt::format("\n{}:\n{}{}{}", member->port(), tell(member->port(), {"CLUSTER", "INFO"}).text,
                         tell(member->port(), {"CLUSTER", "NODES"}).text, member->last_words());
    }
    return all;
  }

  static TestServer& server(std::uint16_t port) {
    for (auto& member : servers_->members) {
      if (member->port() == port) return *member;
    }
    throw std::runtime_error("no such server");
  }
  static std::uint16_t any_port() {
    for (auto& member : servers_->members) {
      if (member->is_running()) return member->port();
    }
    throw std::runtime_error("no server runs");
  }
  static std::string uri(const std::string& name, const std::string& parameters = "") {
    const auto whole = servers_->uri;
    return whole.substr(0, whole.rfind('/') + 1) + name + parameters;
  }

  static std::vector<Node> nodes() {
    std::vector<Node> all;
    std::istringstream lines(tell(any_port(), {"CLUSTER", "NODES"}).text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string address, flags;
      Node& node = all.emplace_back();
      words >> node.id >> address >> flags >> node.primary;
      const auto colon = address.find(':');
      node.port = static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1)));
      node.is_primary = flags.find("master") != std::string::npos;
      node.is_up = flags.find("fail") == std::string::npos;
    }
    return all;
  }
  static std::vector<Node> primaries() {
    auto all = nodes();
    std::erase_if(all, [](const Node& node) { return !node.is_primary || !node.is_up; });
    return all;
  }
  // A primary that has a replica, and that.
  static std::pair<Node, Node> a_pair() {
    const auto all = nodes();
    for (const auto& replica : all) {
      if (replica.is_primary || !replica.is_up) continue;
      for (const auto& primary : all) {
        if (primary.id == replica.primary && primary.is_up) return {primary, replica};
      }
    }
    throw std::runtime_error("no primary has a replica left");
  }
  // Groups that this server has.
  static std::vector<std::uint64_t> groups_on(const std::string& name, std::uint16_t port) {
    std::vector<std::uint64_t> found;
    const auto slots = tell(port, {"CLUSTER", "SLOTS"});
    const auto keys = keys_of(port, name);
    for (std::uint64_t group = 0; group < 300; ++group) {
      const auto slot = store::redis::slot_of(keys.group(group));
      for (const auto& range : slots.elements) {
        if (range.elements[0].number <= slot && slot <= range.elements[1].number &&
            range.elements[2].elements[1].number == port) {
          found.push_back(group);
        }
      }
    }
    return found;
  }
  static bool move_slots(const Node& from, const Node& to, unsigned count) {
    const auto command = fmt::format(
        "redis-cli --cluster reshard 127.0.0.1:{} --cluster-from {} --cluster-to {} --cluster-slots {} --cluster-yes "
        ">/dev/null 2>&1",
        from.port, from.id, to.id, count);
    // It refuses while the servers have not told each other of the last move.
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::system(command.c_str()) != 0) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return true;
  }

  static TestServers* servers_;
};
TestServers* RedisCluster::servers_ = nullptr;

// Writes and reads on its own blocks until told to stop.
void work(Store& store, std::uint64_t me, const std::atomic<bool>& stop, std::atomic<std::uint64_t>& rounds) {
  std::vector<std::uint64_t> tints(200);
  for (std::uint64_t step = 1; !stop; ++step) {
    const std::uint64_t number = step * 31 % tints.size();
    const std::uint64_t block = me * 100'000 + number * 50;  // runs that lie across the borders of groups
    if (tints[number] != 0) {
      ASSERT_EQ(expect_blocks(store, block, 30, tints[number]), Outcome::kOk) << block;
    }
    tints[number] = step;
    ASSERT_EQ(put_blocks(store, block, make_blocks(block, 30, 4096, step)).outcome, Outcome::kOk) << block;
    const auto sum = store.add(fmt::format("sum{}", me), 1);
    ASSERT_TRUE(sum) << sum.error().message();
    ASSERT_EQ(*sum, static_cast<std::int64_t>(step));
    ++rounds;
  }
  for (std::uint64_t number = 0; number < tints.size(); ++number) {
    const std::uint64_t block = me * 100'000 + number * 50;
    if (tints[number] != 0) {
      ASSERT_EQ(expect_blocks(store, block, 30, tints[number]), Outcome::kOk) << block;
    }
  }
}

void under_load(Store& store, const std::function<void()>& meanwhile) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> rounds{0};
  std::vector<std::thread> threads;
  for (std::uint64_t me = 1; me <= 2; ++me) threads.emplace_back([&, me] { work(store, me, stop, rounds); });
  const auto await_rounds = [&](std::uint64_t more) {
    for (const auto wanted = rounds + more; rounds < wanted && !testing::Test::HasFatalFailure();) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  await_rounds(100);
  meanwhile();
  await_rounds(100);
  stop = true;
  for (auto& thread : threads) thread.join();
}

TEST_F(RedisCluster, SlotsMoveWhileAProgramRuns) {
  auto store = open_or_fail(uri("moving"), kKeep);
  under_load(*store, [&] {
    const auto all = primaries();
    EXPECT_EQ(all.size(), 3u);
    EXPECT_TRUE(move_slots(all[0], all[1], 400));
    EXPECT_TRUE(move_slots(all[1], all[2], 800));
    EXPECT_TRUE(move_slots(all[2], all[0], 400));
  });
  EXPECT_TRUE(store->usage());
  ASSERT_TRUE(store->erase(0, ~std::uint64_t{0}));
  EXPECT_EQ(store->usage()->blocks, 0u);
}

// Between "this slot is being moved" and "it is there", for as long as it takes.
TEST_F(RedisCluster, ASlotThatIsHalfMovedIsReadAndWritten) {
  auto store = open_or_fail(uri("half"), kKeep);
  const auto all = primaries();
  const auto groups = groups_on("half", all[0].port);
  ASSERT_FALSE(groups.empty());
  const auto key = keys_of(all[0].port, "half").group(groups[0]);
  const auto slot = std::to_string(store::redis::slot_of(key));
  const auto block = groups[0] * 64;
  (void)put_blocks(*store, block, make_blocks(block, 10, 4096));
  EXPECT_EQ(tell(all[1].port, {"CLUSTER", "SETSLOT", slot, "IMPORTING", all[0].id}).text, "OK");
  EXPECT_EQ(tell(all[0].port, {"CLUSTER", "SETSLOT", slot, "MIGRATING", all[1].id}).text, "OK");
  EXPECT_EQ(expect_blocks(*store, block, 10), Outcome::kOk);  // still there
  (void)tell(all[0].port, {"MIGRATE", "127.0.0.1", std::to_string(all[1].port), key, "0", "5000"});
  EXPECT_EQ(expect_blocks(*store, block, 10), Outcome::kOk);  // ASK
  EXPECT_EQ(put_blocks(*store, block + 3, make_blocks(block + 3, 4, 4096, 1)).outcome, Outcome::kOk);
  for (const auto& rest : tell(all[0].port, {"CLUSTER", "GETKEYSINSLOT", slot, "100"}).elements) {
    (void)tell(all[0].port, {"MIGRATE", "127.0.0.1", std::to_string(all[1].port), rest.text, "0", "5000"});
  }
  for (const auto& node : {all[1], all[0], all[2]}) {
    EXPECT_EQ(tell(node.port, {"CLUSTER", "SETSLOT", slot, "NODE", all[1].id}).text, "OK");
  }
  EXPECT_EQ(expect_blocks(*store, block + 3, 4, 1), Outcome::kOk);  // MOVED
  EXPECT_EQ(expect_blocks(*store, block + 7, 3), Outcome::kOk);
}

TEST_F(RedisCluster, AReplicaThatTookOverInOrderIsGoneOnWith) {
  auto store = open_or_fail(uri("handed"), kKeep);
  under_load(*store, [&] {
    const auto [primary, replica] = a_pair();
    EXPECT_EQ(tell(replica.port, {"CLUSTER", "FAILOVER"}).text, "OK");
    for (bool is_done = false; !is_done; std::this_thread::sleep_for(std::chrono::milliseconds(20))) {
      for (const auto& node : nodes()) is_done = is_done || (node.id == replica.id && node.is_primary);
    }
  });
}

TEST_F(RedisCluster, SyncWaitsForReplicas) {
  auto store = open_or_fail(uri("waited", "?replicas=1"), kKeep);
  (void)put_blocks(*store, 0, make_blocks(0, 1000, 4096));
  const Status synced = store->sync();
  EXPECT_TRUE(synced) << synced.error().message();
  auto greedy = open_or_fail(uri("waited", "?replicas=2&timeout_ms=400"), kKeep);
  const Status refused = greedy->sync();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("1 of 2 replicas"));
}

// It is replaced meanwhile, and what it was sent last it carries out when it wakes, as nobody's primary.
TEST_F(RedisCluster, WhatAPrimaryThatStoodStillDoesWhenItWakesIsOfNoConsequence) {
  auto store = open_or_fail(uri("woken", "?replicas=1&timeout_ms=400"), kKeep);
  const auto [primary, replica] = a_pair();
  const auto groups = groups_on("woken", primary.port);
  ASSERT_FALSE(groups.empty());
  const auto block = groups.front() * 64;
  (void)put_blocks(*store, block, make_blocks(block, 5, 4096));
  const Status synced = store->sync();
  ASSERT_TRUE(synced) << synced.error().message();
  server(primary.port).freeze();
  ASSERT_EQ(put_blocks(*store, block, make_blocks(block, 5, 4096, 1)).outcome, Outcome::kOk);  // by the replica
  ASSERT_EQ(put_blocks(*store, block, make_blocks(block, 5, 4096, 2)).outcome, Outcome::kOk);
  server(primary.port).thaw();
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(expect_blocks(*store, block, 5, 2), Outcome::kOk);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  // It follows the other one now: the next tests count on it.
  const auto follows = [&] {
    const auto info = tell(primary.port, {"INFO", "replication"}).text;
    return info.find("role:slave") != std::string::npos && info.find("master_link_status:up") != std::string::npos;
  };
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1); !follows();) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST_F(RedisCluster, AKilledPrimaryWhoseReplicaHasItAllIsGoneOnWith) {
  auto store = open_or_fail(uri("killed", "?replicas=1"), kKeep);
  for (std::uint64_t block = 0; block < 10'000; block += 100)
    (void)put_blocks(*store, block, make_blocks(block, 20, 4096));
  const Status synced = store->sync();
  ASSERT_TRUE(synced) << synced.error().message();
  const auto [primary, replica] = a_pair();
  server(primary.port).kill();
  for (std::uint64_t block = 0; block < 10'000; block += 100) {
    ASSERT_EQ(expect_blocks(*store, block, 20), Outcome::kOk) << block;
    ASSERT_EQ(put_blocks(*store, block, make_blocks(block, 20, 4096, 1)).outcome, Outcome::kOk) << block;
  }
  for (std::uint64_t block = 0; block < 10'000; block += 100) {
    ASSERT_EQ(expect_blocks(*store, block, 20, 1), Outcome::kOk) << block;
  }
}

// The replica stands still while the primary acknowledges; then the primary is killed and the replica takes over.
TEST_F(RedisCluster, WhatAKilledPrimaryHadAcknowledgedAndItsReplicaHasNotIsReportedAndNotUsed) {
  auto store = open_or_fail(uri("lost"), kLarge);
  const auto [primary, replica] = a_pair();
  const auto groups = groups_on("lost", primary.port);
  ASSERT_GE(groups.size(), 20u);
  for (const auto group : groups) (void)put_blocks(*store, group * 64, make_blocks(group * 64, 4, 65536));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the replica has some of it
  server(replica.port).freeze();
  for (const auto group : groups) (void)put_blocks(*store, group * 64, make_blocks(group * 64, 4, 65536, 1));
  server(primary.port).kill();
  server(replica.port).thaw();
  unsigned lost = 0;
  for (const auto group : groups) {
    Bytes bytes(4 * 65536);
    Get get{.block = group * 64, .into = bytes};
    const Status status = store->get({&get, 1});
    if (get.outcome == Outcome::kOk) {
      ASSERT_TRUE(bytes == make_blocks(group * 64, 4, 65536, 1)) << "older contents were used";
      continue;
    }
    ASSERT_EQ(get.outcome, Outcome::kFailed);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kCorrupt) << status.error().message();
    EXPECT_THAT(status.error().message(), HasSubstr("older contents"));
    ++lost;
  }
  EXPECT_GT(lost, 0u) << "the replica had everything: nothing was tested";
}

TEST_F(RedisCluster, AClusterWithAHoleSaysSoWhenPatienceEnds) {
  auto store = open_or_fail(uri("holes", "?patience_s=4&timeout_ms=500"), kKeep);
  (void)put_blocks(*store, 0, make_blocks(0, 1000, 4096));
  const auto all = nodes();
  for (const auto& node : all) {
    const bool has_replica = std::ranges::any_of(
        all, [&](const Node& other) { return !other.is_primary && other.is_up && other.primary == node.id; });
    if (!node.is_primary || !node.is_up || has_replica) continue;
    server(node.port).kill();
    break;
  }
  Bytes bytes(1000 * 4096);
  Get get{.block = 0, .into = bytes};
  const Status status = store->get({&get, 1});
  EXPECT_EQ(get.outcome, Outcome::kFailed);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kUnavailable) << status.error().message();
  EXPECT_THAT(status.error().message(), HasSubstr("s now"));
}

}  // namespace
}  // namespace farheap::test
