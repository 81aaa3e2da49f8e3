// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// etcd: over clusters that lose a member, fill up, know their users, and whose leases end.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "engines/etcd/client.hpp"
#include "tests/engines/engine_fixture.hpp"
#include "tests/store/servers.hpp"

namespace farheap::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
namespace etcd = engines::etcd;

constexpr std::size_t kBlock = 4096;

class EtcdFaults : public testing::Test {
 protected:
  bool start(unsigned members, const std::vector<std::string>& arguments = {}) {
    auto servers = start_etcd(members, arguments);
    if (servers) servers_ = std::move(*servers);
    return servers.has_value();
  }
  TestServer& member(std::size_t i = 0) { return *servers_.members[i]; }
  std::unique_ptr<Store> open(const std::string& parameters = "", const StoreOptions& options = kKept) {
    auto opened = open_here(engines::open_etcd, servers_.uri + parameters, options);
    if (!opened) throw std::runtime_error(opened.error().message());
    return std::move(*opened);
  }
  // The cluster itself, for what a store does not do.
  std::unique_ptr<etcd::Client> cluster(const std::string& parameters = "") {
    const auto parsed = store::parse_uri(servers_.uri + parameters, store::vocabulary());
    return std::move(*etcd::Client::open(parsed->place, store::Parameters(*parsed, "etcd"), {}));
  }
  grpc::Status set_key(const std::string& key, const std::string& value) {
    const auto client = cluster();
    etcd::api::PutRequest request;
    request.set_key(key);
    request.set_value(value);
    etcd::api::PutResponse response;
    return client->ask([&](etcd::Client::Member& asked, grpc::ClientContext& context) {
      return asked.kv->Put(&context, request, &response);
    });
  }

  static inline const StoreOptions kKept{.lifetime = Lifetime::kKeep};
  TestServers servers_;
};

#define NEEDS_ETCD(...) \
  if (!start(__VA_ARGS__)) GTEST_SKIP() << "NOT TESTED: apt install etcd-server"

// What one thread was told is done, and then must be there.
struct Acknowledged {
  std::int64_t added = 0;
  std::uint64_t tint = 0;
};

// Kills and restarts each member in turn while three threads work.
TEST_F(EtcdFaults, NothingThatWasAcknowledgedIsLostWithAMember) {
  NEEDS_ETCD(3);
  auto store = open("?timeout_ms=1000");
  std::atomic<bool> stop{false};
  Acknowledged acknowledged[3];
  std::vector<std::thread> threads;
  std::atomic<int> calls{0};
  for (std::uint64_t me = 0; me < 3; ++me) {
    threads.emplace_back([&, me] {
      for (std::uint64_t i = 1; !stop; ++i, ++calls) {
        const auto sum = store->add("n", 1);
        ASSERT_TRUE(sum) << sum.error().message();
        ++acknowledged[me].added;
        ASSERT_EQ(put_blocks(*store, me * 100, make_blocks(me * 100, 16, kBlock, i)).outcome, Outcome::kOk);
        acknowledged[me].tint = i;
      }
    });
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const int before = calls;
    while (calls < before + 30 && !HasFailure()) std::this_thread::sleep_for(10ms);
    member(i).kill();
    while (calls < before + 60 && !HasFailure()) std::this_thread::sleep_for(10ms);
    ASSERT_TRUE(member(i).start_again());
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  auto fresh = open();
  EXPECT_EQ(fresh->add("n", 0).value(), acknowledged[0].added + acknowledged[1].added + acknowledged[2].added);
  for (std::uint64_t me = 0; me < 3; ++me) {
    EXPECT_EQ(expect_blocks(*fresh, me * 100, 16, acknowledged[me].tint), Outcome::kOk);
  }
}

TEST_F(EtcdFaults, AFrozenMemberIsPassedOver) {
  NEEDS_ETCD(3);
  auto store = open("?timeout_ms=300");
  member(0).freeze();
  EXPECT_EQ(put_blocks(*store, 1, make_blocks(1, 3, kBlock)).outcome, Outcome::kOk);
  EXPECT_EQ(store->add("n", 1).value(), 1);
  EXPECT_EQ(expect_blocks(*store, 1, 3), Outcome::kOk);
  member(0).thaw();
}

TEST_F(EtcdFaults, ARestartedClusterGoesOn) {
  NEEDS_ETCD(1);
  auto store = open();
  (void)put_blocks(*store, 1, make_blocks(1, 3, kBlock));
  member().kill();
  ASSERT_TRUE(member().start_again());
  EXPECT_EQ(expect_blocks(*store, 1, 3), Outcome::kOk);
}

TEST_F(EtcdFaults, AStoreThatWasRemovedOrMadeAnewIsAnotherOne) {
  NEEDS_ETCD(1);
  auto first = open();
  auto second = open();
  (void)put_blocks(*first, 1, make_blocks(1, 3, kBlock));
  ASSERT_TRUE(ask_keeper(engines::kEtcdKeeper.remove, servers_.uri));
  Bytes into(kBlock);
  Get get{.block = 1, .into = into};
  EXPECT_THAT(words_of(first->get({&get, 1})), HasSubstr("somebody has removed it"));
  auto fresh = open();
  EXPECT_THAT(words_of(second->get({&get, 1})), HasSubstr("somebody has made a new one"));
  EXPECT_EQ(get.outcome, Outcome::kCorrupt);
  EXPECT_EQ(expect_blocks(*fresh, 1, 1), Outcome::kAbsent);
}

TEST_F(EtcdFaults, AFullClusterIsNoSpaceInWords) {
  NEEDS_ETCD(1, {"--quota-backend-bytes", "20971520"});
  auto store = open();
  const auto bytes = make_blocks(0, 256, kBlock);
  Status status;
  Put put{};
  for (std::uint64_t i = 0; status && i < 40; ++i) {
    put = {.block = i * 256, .from = bytes};
    status = store->put({&put, 1});
  }
  ASSERT_FALSE(status);
  EXPECT_EQ(put.outcome, Outcome::kNoSpace);
  EXPECT_EQ(status.error().code, ErrorCode::kNoSpace);
  EXPECT_THAT(status.error().message(), HasSubstr("etcdctl alarm disarm"));
  EXPECT_THAT(words_of(store->add("n", 1)), HasSubstr("the cluster is full"));
}

// A heap that changes the same blocks for ever would fill any etcd with their past.
TEST_F(EtcdFaults, WhatIsRewrittenForEverDoesNotFillTheCluster) {
  NEEDS_ETCD(1, {"--quota-backend-bytes", "167772160", "--unsafe-no-fsync"});
  auto store = open("", {.block_bytes = 65536, .lifetime = Lifetime::kKeep});
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(put_blocks(*store, 0, make_blocks(0, 64, 65536, i)).outcome, Outcome::kOk) << i;  // 4 MiB
  }
  EXPECT_EQ(expect_blocks(*store, 0, 64, 99), Outcome::kOk);
}

TEST_F(EtcdFaults, ARequestThatIsTooLargeForTheClusterIsRefusedInWords) {
  NEEDS_ETCD(1, {"--max-request-bytes", "65536"});
  auto store = open("", {.block_bytes = 65536, .lifetime = Lifetime::kKeep});
  const auto page = make_blocks(1, 1, 65536);
  Put put{.block = 1, .from = page};
  EXPECT_THAT(words_of(store->put({&put, 1})), HasSubstr("the server takes only shorter requests"));
  EXPECT_EQ(put.outcome, Outcome::kFailed);
  const auto huge = open_here(engines::open_etcd, servers_.uri, {.block_bytes = std::size_t{2} << 20});
  EXPECT_THAT(words_of(huge), HasSubstr("use blocks of at most 1 MiB"));
}

TEST_F(EtcdFaults, AWrongPasswordIsRefusedAndNotShown) {
  NEEDS_ETCD(1);
  const auto client = cluster();
  const auto admin = etcd::api::Auth::NewStub(client->member(0).channel);
  const auto call = [&](auto method, const auto& request, auto response) {
    grpc::ClientContext context;
    const auto status = (admin.get()->*method)(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  };
  using Stub = etcd::api::Auth::Stub;
  etcd::api::AuthUserAddRequest user;
  user.set_name("root");
  user.set_password("sesame");
  call(&Stub::UserAdd, user, etcd::api::AuthUserAddResponse());
  etcd::api::AuthRoleAddRequest role;
  role.set_name("root");
  call(&Stub::RoleAdd, role, etcd::api::AuthRoleAddResponse());
  etcd::api::AuthUserGrantRoleRequest grant;
  grant.set_user("root");
  grant.set_role("root");
  call(&Stub::UserGrantRole, grant, etcd::api::AuthUserGrantRoleResponse());
  call(&Stub::AuthEnable, etcd::api::AuthEnableRequest(), etcd::api::AuthEnableResponse());

  const auto nobody = open_here(engines::open_etcd, servers_.uri);
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, ErrorCode::kPermission);
  const auto named = [&](const std::string& login) {
    return fmt::format("etcd://{}@{}/contract", login, member().address());
  };
  const auto wrong = open_here(engines::open_etcd, named("root:shazam"));
  EXPECT_THAT(words_of(wrong), HasSubstr("does not accept this user or password"));
  EXPECT_THAT(words_of(wrong), testing::Not(HasSubstr("shazam")));
  const auto right = open_here(engines::open_etcd, named("root:sesame"));
  ASSERT_TRUE(right) << right.error().message();
  EXPECT_THAT((*right)->describe(), testing::Not(HasSubstr("sesame")));
  EXPECT_EQ(put_blocks(**right, 1, make_blocks(1, 3, kBlock)).outcome, Outcome::kOk);
  // A restarted server knows no tokens of before.
  member().kill();
  ASSERT_TRUE(member().start_again());
  EXPECT_EQ(put_blocks(**right, 1, make_blocks(1, 3, kBlock, 1)).outcome, Outcome::kOk);
  EXPECT_EQ(expect_blocks(**right, 1, 3, 1), Outcome::kOk);
}

// Leases end when a program is killed, or when nothing could be reached for too long.
TEST_F(EtcdFaults, AKeptStoreOutlivesItsLeaseAndAScratchStoreGoesWithIt) {
  NEEDS_ETCD(1);
  auto kept = open();
  auto scratch = open("", {});
  (void)put_blocks(*kept, 1, make_blocks(1, 3, kBlock));
  (void)put_blocks(*scratch, 1, make_blocks(1, 3, kBlock));
  auto listed = ask_keeper(engines::kEtcdKeeper.list, servers_.uri);
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->size(), 2u);
  const auto client = cluster();
  etcd::api::LeaseLeasesResponse leases;
  grpc::ClientContext listing;
  ASSERT_TRUE(client->member(0).lease->LeaseLeases(&listing, {}, &leases).ok());
  EXPECT_EQ(leases.leases_size(), 2);
  for (const auto& lease : leases.leases()) {
    etcd::api::LeaseRevokeRequest revoke;
    revoke.set_id(lease.id());
    etcd::api::LeaseRevokeResponse response;
    grpc::ClientContext context;
    ASSERT_TRUE(client->member(0).lease->LeaseRevoke(&context, revoke, &response).ok());
  }
  EXPECT_EQ(put_blocks(*kept, 2, make_blocks(2, 3, kBlock, 1)).outcome, Outcome::kOk);
  EXPECT_EQ(kept->add("n", 1).value(), 1);
  EXPECT_EQ(expect_blocks(*kept, 1, 1), Outcome::kOk);
  Bytes into(kBlock);
  Get get{.block = 1, .into = into};
  EXPECT_THAT(words_of(scratch->get({&get, 1})), HasSubstr("no sign of life"));
  EXPECT_EQ(get.outcome, Outcome::kCorrupt);
  scratch.reset();
  listed = ask_keeper(engines::kEtcdKeeper.list, servers_.uri);
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().lifetime, Lifetime::kKeep);
}

TEST_F(EtcdFaults, ForeignKeysStayAsTheyAre) {
  NEEDS_ETCD(1);
  ASSERT_TRUE(set_key("farheap/contract/users", "theirs").ok());
  EXPECT_FALSE(open_here(engines::open_etcd, servers_.uri));
  const auto client = cluster();
  etcd::api::RangeRequest request;
  request.set_key("farheap/contract/users");
  EXPECT_EQ(client->range(request)->kvs(0).value(), "theirs");
  ASSERT_TRUE(set_key("farheap/contract/m", "somebody's own").ok());
  EXPECT_THAT(words_of(open_here(engines::open_etcd, servers_.uri)), HasSubstr("not one of Farheap's"));
}

TEST(Etcd, APlaceHasMembersANameAndAUser) {
  const auto place = etcd::etcd_place("//root:sesame@h1,h2:99,[::1]:7/app");
  ASSERT_TRUE(place);
  EXPECT_THAT(place->members, testing::ElementsAre("h1:2379", "h2:99", "[::1]:7"));
  EXPECT_EQ(place->name, "app");
  EXPECT_EQ(place->shown, "etcd://root@h1,h2:99,[::1]:7/app");
}

}  // namespace
}  // namespace farheap::test
