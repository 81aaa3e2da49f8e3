// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/engines/server_faults.hpp"

#include <fmt/format.h>

#include <thread>

namespace farheap::test {

void ServerFaults::SetUp() {
  auto servers = engine().start();
  if (!servers) GTEST_SKIP() << "NOT TESTED: " << servers.error().message();
  servers_ = std::move(*servers);
  servers_.set_environment();
  address_ = server().address();
  if (engine().warm_up) engine().warm_up();
}

std::string ServerFaults::place() const {
  auto place = engine().name + ":" + engine().place;
  if (const auto at = place.find('@'); at != std::string::npos) place.replace(at, 1, address_);
  return place;
}

store::StoreResult ServerFaults::try_to_open(const std::string& parameters, std::size_t block_bytes) const {
  return open_here(engine().open, uri() + parameters, {.block_bytes = block_bytes, .lifetime = Lifetime::kKeep});
}

std::unique_ptr<Store> ServerFaults::open(const std::string& parameters, Lifetime lifetime,
                                          std::size_t block_bytes) const {
  auto opened = open_here(engine().open, uri() + parameters, {.block_bytes = block_bytes, .lifetime = lifetime});
  if (!opened) throw std::runtime_error(opened.error().message());
  return std::move(*opened);
}

void ServerFaults::use_port(std::uint16_t port) {
  address_ = fmt::format("127.0.0.1:{}", port);
  if (!engine().variable.empty()) setenv(engine().variable.c_str(), address_.c_str(), 1);
}

void ServerFaults::restart_empty() {
  server().kill();
  if (engine().forget) engine().forget(server());
  ASSERT_TRUE(server().start_again());
}

std::thread ServerFaults::freeze_for(std::chrono::milliseconds time) {
  server().freeze();
  return std::thread([this, time] {
    std::this_thread::sleep_for(time);
    server().thaw();
  });
}

void ServerFaults::go_through_a_freeze(std::chrono::milliseconds time, const std::string& parameters) {
  auto store = open(parameters);
  (void)put_blocks(*store, 1, make_blocks(1, 300, kFaultBlock));
  Bytes into(kFaultBlock);
  const auto seen = get_blocks(*store, 7, into);
  auto thaws = freeze_for(time);
  EXPECT_EQ(put_blocks(*store, 7, make_blocks(7, 1, kFaultBlock, 1), seen.version).outcome, Outcome::kOk);
  EXPECT_EQ(put_blocks(*store, 100, make_blocks(100, 20, kFaultBlock, 1)).outcome, Outcome::kOk);
  EXPECT_EQ(store->add("n", 1).value(), 1);
  thaws.join();
  (void)put_blocks(*store, 110, make_blocks(110, 10, kFaultBlock, 2));
  ASSERT_TRUE(store->erase(200, 50));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // for whatever is late
  EXPECT_EQ(expect_blocks(*store, 7, 1, 1), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 100, 10, 1), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 110, 10, 2), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 249, 1), Outcome::kAbsent);
  EXPECT_EQ(expect_blocks(*store, 250, 51), Outcome::kOk);
  EXPECT_EQ(store->add("n", 0).value(), 1);
  EXPECT_EQ(store->usage()->blocks, 250u);
}

}  // namespace farheap::test
