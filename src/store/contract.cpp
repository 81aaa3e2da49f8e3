// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of the checks; each is in contract_*.cpp.
#include "store/contract.hpp"

#include "store/contract_trial.hpp"

namespace farheap::store {

std::span<const ContractCheck> contract_checks() {
  using namespace contract;
  static constexpr ContractCheck kChecks[] = {
      {"knows-itself", "its limits fit together, and it says what it is", it_knows_itself},
      {"fresh", "a new store holds no blocks and no counters", fresh_is_empty},
      {"put-get", "what was put is got, with its version", put_and_get},
      {"every-byte", "every byte of a block comes back, also over other bytes", every_byte},
      {"runs", "runs overlap as they like", overlapping_runs},
      {"far-apart", "blocks far apart are put, got and erased", far_apart},
      {"erase", "what was erased is absent, and its neighbours are not", erasing},
      {"usage", "usage counts the blocks that are there", usage},
      {"unaligned", "memory that is not aligned is read and written", unaligned_memory},
      {"parts", "a part of a block is what the block holds there", parts_of_blocks},
      {"longest-run", "a run of the longest length passes, a longer one is refused", longest_run},
      {"over-limits", "a batch over the limits is refused whole", over_the_limits},
      {"fullest-batch", "a batch of as many entries as the limits allow passes", fullest_batch},
      {"outcomes", "every entry of a batch has its own outcome", outcome_of_each},
      {"nothing", "to ask for nothing is fine", nothing_asked},
      {"in-flight", "gets in flight are answered like others, in any order", gets_in_flight},
      {"known-version", "a version that is known is not copied", known_versions},
      {"expected-version", "only the expected version is overwritten: swap, swap again, stale", expected_versions},
      {"new-versions", "no version comes twice", versions_are_new},
      {"conflicts", "a conflict in a batch does not stop the others", conflicts_in_a_batch},
      {"one-creates", "one of many threads creates a block", one_creates},
      {"one-swaps", "one of many threads wins every compare-and-swap", one_swaps},
      {"counters", "counters add up over threads", counters},
      {"counter-names", "counters of any name, large and negative", counter_names},
      {"like-a-map", "it behaves like a map under threads", map_under_threads},
      {"never-torn", "a single block is never seen half written", never_torn},
      {"fork", "a forked child reads and writes", after_a_fork},
      {"two-clients", "each of two clients reads what the other wrote", two_clients},
      {"four-clients", "4 clients x 250 adds are 1000, and 4 x 50 swaps are 200", four_clients},
      {"killed-owner", "a lock whose owner was killed is taken over, and its late writes do not count", killed_owner},
      {"lifetime", "what is kept is there again, what is scratch is gone", kept_or_not},
      {"block-size", "a kept store is not opened with another block size", other_block_size},
  };
  return kChecks;
}

ContractAnswer run_contract_check(const ContractCheck& check, const ContractSubject& subject) {
  Trial trial(subject);
  if (trial.reopen()) check.run(trial);
  return trial.answer();
}

}  // namespace farheap::store
