// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "verify.hpp"

#include <fmt/format.h>

#include <vector>

#include "common/program.hpp"

namespace farheap::bench {
namespace {

// The tuples of the first relation and no others: compared by sums of a hash of each, which needs no memory.
std::string verify_table(const Relations& relations, std::span<const Tuple> table) {
  const auto fingerprint = [](const Tuple& tuple) { return random_at(tuple.key, tuple.payload); };
  std::uint64_t found = 0;
  for (const Tuple& slot : table) {
    if (slot.key != 0) found += fingerprint(slot);
    if (slot.key == 0 && slot.payload != 0) return "an empty slot has a payload";
  }
  for (std::uint64_t number = 0; number < relations.built(); ++number) {
    found -= fingerprint(relations.built_at(number));
  }
  return found == 0 ? "" : "the table does not hold the tuples that were put there";
}

}  // namespace

std::string verify_join(const Relations& relations, std::span<const Tuple> table, std::span<const Joined> found,
                        std::uint64_t probes) {
  std::vector<Joined> expected(found.size());
  for (std::uint64_t number = 0; number < probes; ++number) {
    const Relations::Probe probe = relations.probe_at(number);
    if (!probe.matches) continue;
    expected[number % found.size()].add(relations.built_at(probe.partner).payload, probe.tuple.payload);
  }
  for (std::size_t thread = 0; thread < found.size(); ++thread) {
    if (found[thread] == expected[thread]) continue;
    return fmt::format("thread {} joined {} pairs, there are {}; sum {:x}, not {:x}", thread, found[thread].pairs,
                       expected[thread].pairs, found[thread].sum, expected[thread].sum);
  }
  return verify_table(relations, table);
}

}  // namespace farheap::bench
