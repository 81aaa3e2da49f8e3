// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engines whose stores have an epoch of ours, which grows with every opening.
#include "tests/engines/server_faults.hpp"

namespace farheap::test {
namespace {

using testing::HasSubstr;

TEST_F(ServerFaults, AServerInAnOlderStateIsSeenByItsEpoch) {
  CuttingProxy proxy(server().port());
  use_port(proxy.port());
  auto first = open();
  auto store = open();
  engine().go_back();
  proxy.cut_after(0);
  Bytes into(kFaultBlock);
  Get get{.block = 1, .into = into};
  EXPECT_THAT(words_of(store->get({&get, 1})), HasSubstr("went back to an older state"));
}

}  // namespace
}  // namespace farheap::test
