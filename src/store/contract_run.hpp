// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contract (contract.hpp) put to the store that a URI names, kept and scratch, with small and large blocks. Each
// check has a namespace of its own there, with a name that nobody else has, which goes away afterwards, whatever
// happened: the checks run in a child process, so that one that crashes, or is broken off, leaves nothing.
//
// Thread-safety: one thread, and the process has no other.
#pragma once

#include <csignal>
#include <cstddef>
#include <farheap/store.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "store/contract.hpp"

namespace farheap::store {

struct ContractLine {
  StoreOptions options;  // lifetime and size of blocks
  std::string_view name;
  std::string_view proves;
  ContractAnswer answer;
  double seconds = 0;
};

struct ContractRun {
  std::string uri;
  StoreOptions options;
  std::vector<std::size_t> block_bytes = {4096, 65536};
  std::string only = {};  // this check alone; empty: all
  std::function<void(const ContractLine&)> report;
  const volatile std::sig_atomic_t* stop = nullptr;  // set by a signal, which breaks the run off
};

struct ContractSummary {
  std::size_t holding = 0;
  std::size_t broken = 0;
  std::size_t not_for_it = 0;
  bool broken_off = false;
};
// kInvalidArgument if the URI is malformed or there is no such check; the store's own error if it cannot be opened at
// all; kIo, with what is left, if it could not be cleaned up.
[[nodiscard]] Result<ContractSummary> run_contract(const ContractRun& run);

}  // namespace farheap::store
