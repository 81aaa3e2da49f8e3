// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Belady's optimum of recorded page traces, and exact LRU, as one line of JSON:
//
//   trace_optimum FILE BUDGET_BYTES...
//
// For each budget: what an oracle reads and writes in so much memory, and in memory less by what the recording could
// not see into (see plan/optimum.hpp); and what LRU reads in so much memory, in more and in less by the same (see
// plan/lru.hpp).
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "base/units.hpp"
#include "plan/lru.hpp"
#include "plan/optimum.hpp"
#include "policy/trace_file.hpp"

namespace {

using namespace farheap;
using base::kPageBytes;

std::string optimum_text(const plan::Uses& uses, std::uint64_t budget_bytes) {
  const std::uint64_t memory = budget_bytes / kPageBytes;
  const plan::Optimum least = plan::optimum(uses, memory);
  const std::uint64_t beside_window = memory > uses.most_in_view ? memory - uses.most_in_view : 1;
  const plan::Optimum most = plan::optimum(uses, beside_window);
  const auto lru_bytes = [&](std::uint64_t pages) { return plan::lru_reads(uses, pages) * kPageBytes; };
  return fmt::format(R"({{"budget_bytes":{},"bytes_read":{},"bytes_written":{},"bytes_read_at_most":{},)"
                     R"("bytes_written_at_most":{},"lru_bytes_read":{},"lru_bytes_read_at_least":{},)"
                     R"("lru_bytes_read_at_most":{}}})",
                     budget_bytes, least.pages_read * kPageBytes, least.pages_written * kPageBytes,
                     most.pages_read * kPageBytes, most.pages_written * kPageBytes, lru_bytes(memory),
                     lru_bytes(memory + uses.most_in_view), lru_bytes(beside_window));
}

int usage(std::string_view wrong) {
  fmt::print(stderr, "trace_optimum: cannot use '{}'\n  trace_optimum FILE BUDGET_BYTES...\n", wrong);
  return 2;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return usage(count > 1 ? "a trace without a budget" : "no trace");
  const auto trace = bench::read_trace_file(arguments[1]);
  if (!trace) {
    fmt::print(stderr, "trace_optimum: {}: {}\n", arguments[1], trace.error().message());
    return 1;
  }
  const plan::Uses uses = plan::uses_of(trace->entries);
  std::string optima;
  for (int i = 2; i < count; ++i) {
    const std::string_view text = arguments[i];
    std::uint64_t budget = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), budget);
    if (error != std::errc() || end != text.data() + text.size() || budget < kPageBytes) return usage(text);
    optima += (optima.empty() ? "" : ",") + optimum_text(uses, budget);
  }
  fmt::print(R"({{"format":1,"uses":{},"pages":{},"window_pages":{},"cut":{},"optima":[{}]}})"
             "\n",
             uses.uses.size(), uses.pages, uses.most_in_view, trace->cut, optima);
  return 0;
}
