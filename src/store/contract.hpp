// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What include/farheap/store.hpp promises, as a table of checks that any store can be put to: the tests run it over
// every engine, `farheap store check` over a user's own server. A check that asks for what a store does not promise
// (see its capabilities) says so and asks for nothing else.
//
// Thread-safety: one thread. A check makes threads, and processes where the subject allows it, and ends them itself.
// Requires: what ContractSubject::open() opens is empty, and nobody else uses it.
#pragma once

#include <farheap/store.hpp>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/kinds.hpp"

namespace farheap::store {

struct ContractSubject {
  // Another handle on the store of this check: for Lifetime::kScratch a new one each time.
  std::function<StoreResult(const StoreOptions&)> open;
  StoreOptions options;
  std::string describes = {};    // what describe() must say; empty: anything
  bool may_fork = true;          // false: clients are threads with handles of their own
  bool child_may_go_on = false;  // forked children use the handle although kForks is not set
};

class Trial;

struct ContractCheck {
  std::string_view name;
  std::string_view proves;  // one sentence
  void (*run)(Trial&);
};
[[nodiscard]] std::span<const ContractCheck> contract_checks();

enum class Verdict {
  kHolds,
  kBroken,
  kNotForThisStore,  // it does not promise this
};
struct ContractAnswer {
  Verdict verdict = Verdict::kHolds;
  std::vector<std::string> words;  // what is broken, or why it is not for this store
};
[[nodiscard]] ContractAnswer run_contract_check(const ContractCheck& check, const ContractSubject& subject);

}  // namespace farheap::store
