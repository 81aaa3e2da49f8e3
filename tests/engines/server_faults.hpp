// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The faults that every engine on a server has to get over (server_faults_test.cpp), over what an engine says of
// itself: how its server is started, and how to lay things into it that a store never would.
//
// Thread-safety: one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/engines/cutting_proxy.hpp"
#include "tests/engines/engine_fixture.hpp"
#include "tests/store/servers.hpp"

namespace farheap::test {

inline constexpr std::size_t kFaultBlock = 4096;

struct FaultyEngine {
  std::string name;   // "bigtable"
  std::string place;  // "//p/i/t", without a name
  std::string form;   // what a malformed place is told to look like
  std::vector<std::string> malformed;
  std::string variable;  // names an emulator's address; empty: the place has it, as "@"
  decltype(engines::Engine::open) open = nullptr;
  const store::Keeper* keeper = nullptr;
  Result<TestServers> (*start)() = nullptr;
  std::function<void()> warm_up = {};                   // what the first requests need
  std::function<void(TestServer&)> forget = {};         // makes a killed server restart empty
  std::string empty_words = "lost all that was in it";  // what a server that restarts empty is told to be
  // A block or a row that is not Farheap's below the name "n"; what it is called in words.
  std::function<std::string()> put_foreign;
  std::function<void(const std::string& bytes)> put_into_block_2;  // of the store "n"
  std::function<void(const std::string& text)> put_about;          // in its description's place
  std::function<void()> go_back = {};                              // to an older state (server_epochs_test.cpp)
  std::function<void()> leave_dead = {};  // a scratch store of a killed program (server_beats_test.cpp)
  int frozen_timeout_ms = 100;
};

// Of the engine that this program tests.
[[nodiscard]] const FaultyEngine& faulty_engine();

class ServerFaults : public testing::Test {
 protected:
  void SetUp() override;

  [[nodiscard]] const FaultyEngine& engine() const { return faulty_engine(); }
  [[nodiscard]] TestServer& server() { return *servers_.members.front(); }
  [[nodiscard]] std::string place() const;  // all stores of the server
  [[nodiscard]] std::string uri() const { return place() + "/n"; }
  [[nodiscard]] std::unique_ptr<Store> open(const std::string& parameters = "", Lifetime lifetime = Lifetime::kKeep,
                                            std::size_t block_bytes = kFaultBlock) const;
  [[nodiscard]] store::StoreResult try_to_open(const std::string& parameters = "",
                                               std::size_t block_bytes = kFaultBlock) const;
  // From now on stores are opened at this port.
  void use_port(std::uint16_t port);
  void restart_empty();
  // For so long, from now on, while the caller goes on; join the thread.
  [[nodiscard]] std::thread freeze_for(std::chrono::milliseconds time);
  // Writes, counts and swaps while the server is frozen, and looks that nothing comes late.
  void go_through_a_freeze(std::chrono::milliseconds time, const std::string& parameters);

  TestServers servers_;
  std::string address_;
};

}  // namespace farheap::test
