// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engines without leases, whose scratch stores live by their beats.
#include "tests/engines/server_faults.hpp"

namespace farheap::test {
namespace {

TEST_F(ServerFaults, WhatAKilledProgramLeftIsCollectedAndWhatLivesIsNot) {
  auto alive = open("", Lifetime::kScratch);
  (void)put_blocks(*alive, 1, make_blocks(1, 1, kFaultBlock));
  engine().leave_dead();
  const auto in_use = [&] {
    std::vector<bool> all;
    const auto listed = ask_keeper(engine().keeper->list, uri());
    for (const auto& one : listed.value()) all.push_back(one.in_use);
    return all;
  };
  EXPECT_THAT(in_use(), testing::UnorderedElementsAre(true, false));
  auto next = open("", Lifetime::kScratch);
  EXPECT_THAT(in_use(), testing::ElementsAre(true, true));
  EXPECT_EQ(expect_blocks(*alive, 1, 1), Outcome::kOk);
  alive.reset(), next.reset();
  EXPECT_THAT(in_use(), testing::IsEmpty());
}

}  // namespace
}  // namespace farheap::test
