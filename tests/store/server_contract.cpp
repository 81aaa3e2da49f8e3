// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// server_contract ENGINE [BLOCK_BYTES]: starts the servers of an engine and puts the store on them to the whole
// contract, kept and scratch, with blocks of 4 and 64 KiB, or of one size; a line for each check. The exit status is 0,
// 1 if something is broken, and 77, with a loud line, if this build or this machine has not what it takes.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "store/contract_run.hpp"
#include "tests/store/server_engines.hpp"

namespace farheap::test {
namespace {

void print(const store::ContractLine& line) {
  constexpr std::string_view kVerdicts[] = {"holds", "BROKEN", "not for this store"};
  fmt::print("{} {:5} {}: {} ({:.2f} s)\n", line.options.lifetime == Lifetime::kKeep ? "kept" : "scratch",
             line.options.block_bytes, line.name, kVerdicts[static_cast<int>(line.answer.verdict)], line.seconds);
  for (const auto& words : line.answer.words) fmt::print("    {}\n", words);
  (void)std::fflush(stdout);
}

int test(const Engine& engine, const std::vector<std::size_t>& block_bytes) {
  if (!is_in_build(engine)) return not_tested(engine.name, "it is not in this build");
  auto servers = engine.start();
  if (!servers) return not_tested(engine.name, servers.error().message());
  servers->set_environment();
  fmt::print("{}\n", servers->uri);
  const auto summary =
      store::run_contract({.uri = servers->uri, .options = {}, .block_bytes = block_bytes, .report = print});
  if (!summary) {
    fmt::print("{}\n", summary.error().message());
    return 1;
  }
  fmt::print("{} hold, {} broken, {} not for this store\n", summary->holding, summary->broken, summary->not_for_it);
  const auto left = list_stores(servers->uri);
  if (!left || !left->empty()) {
    fmt::print("BROKEN: it did not clean up: {}\n", left ? left->front().uri : left.error().message());
    return 1;
  }
  return summary->broken == 0 && summary->holding > 0 ? 0 : 1;
}

}  // namespace
}  // namespace farheap::test

int main(int count, char** values) {
  for (const auto& engine : farheap::test::kEngines) {
    if (count < 2 || count > 3 || engine.name != values[1]) continue;
    const std::size_t one = count == 3 ? std::strtoul(values[2], nullptr, 10) : 0;
    return farheap::test::test(engine, one == 0 ? std::vector<std::size_t>{4096, 65536} : std::vector{one});
  }
  std::puts("usage: server_contract redis|redis-cluster|etcd|etcd-3|bigtable|datastore|spanner [BLOCK_BYTES]");
  return 2;
}
