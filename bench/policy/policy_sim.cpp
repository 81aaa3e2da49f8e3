// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which eviction policy pays: the pager itself, driven by page traces without a program or a disk, beside Belady's
// optimum for the same trace. Counts pages read and written, requests and soft faults; no time is measured.
//
//   policy_sim [--json FILE]
//
// drives synthetic traces, all policies, with memory for 90, 70 and 50 % of the pages touched;
//
//   policy_sim --trace BUDGET_BYTES FILE...
//
// recorded ones (docs/formats.md), and says what the traffic would cost on a disk.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "plan/lru.hpp"
#include "plan/optimum.hpp"
#include "plan/replay.hpp"
#include "policy/trace_file.hpp"

namespace {

using namespace farheap;
using namespace farheap::pager;
using base::kPageBytes;
using profile::PageEvent;
using profile::PageTrace;
using profile::PageTraceEntry;

using Touch = plan::ReplayedTouch;
using Trace = std::vector<Touch>;
using Counts = plan::ReplayCounts;

Counts run(const Trace& trace, std::uint64_t pages, std::uint64_t memory, PolicyKind policy) {
  return plan::replay(trace, pages, memory, {.policy = policy, .probation_percent = 10});
}

// First touches read nothing.
plan::Uses uses_of(const Trace& trace, std::uint64_t pages) {
  plan::Uses uses;
  uses.pages = static_cast<std::uint32_t>(pages);
  std::vector<bool> known(pages);
  for (const Touch& touch : trace) {
    uses.uses.push_back({touch.page, !known[touch.page], touch.write});
    known[touch.page] = true;
  }
  return uses;
}

// ---- traces

constexpr std::uint32_t kPages = 16384;

Trace fill() {
  Trace trace;
  for (std::uint32_t page = 0; page < kPages; ++page) trace.push_back({page, true});
  return trace;
}

Trace sweep() {
  Trace trace = fill();
  for (int round = 0; round < 8; ++round) {
    for (std::uint32_t page = 0; page < kPages; ++page) trace.push_back({page, true});
  }
  return trace;
}

// Reads one half while it writes the other, then the other way round (lattice-Boltzmann with two grids).
Trace two_grids() {
  Trace trace = fill();
  for (int step = 0; step < 8; ++step) {
    for (std::uint32_t page = 0; page < kPages / 2; ++page) {
      trace.push_back({page + (step % 2) * (kPages / 2), false});
      trace.push_back({page + (1 - step % 2) * (kPages / 2), true});
    }
  }
  return trace;
}

Trace uniform() {
  Trace trace = fill();
  std::mt19937 random(1);
  for (int i = 0; i < 120000; ++i) trace.push_back({static_cast<std::uint32_t>(random() % kPages), false});
  return trace;
}

Trace skewed(bool moves) {
  Trace trace = fill();
  std::mt19937 random(2);
  std::vector<std::uint32_t> order(kPages);
  for (std::uint32_t i = 0; i < kPages; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  std::uniform_real_distribution<> unit;
  for (int i = 0; i < 400000; ++i) {
    auto rank = static_cast<std::uint32_t>(kPages * std::pow(unit(random), 4.0));
    if (moves && i >= 200000) rank = (rank + kPages / 2) % kPages;
    trace.push_back({order[std::min(rank, kPages - 1)], random() % 4 == 0});
  }
  return trace;
}

// A hot tenth at random, with a sweep over everything now and then.
Trace hot_and_scan() {
  Trace trace = fill();
  std::mt19937 random(3);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 30000; ++i) trace.push_back({static_cast<std::uint32_t>(random() % (kPages / 4)), true});
    for (std::uint32_t page = kPages / 4; page < kPages; ++page) trace.push_back({page, false});
  }
  return trace;
}

// One half is swept again and again, of the other nobody asks any more.
Trace hot_and_cold() {
  Trace trace = fill();
  for (int round = 0; round < 30; ++round) {
    for (std::uint32_t page = 0; page < kPages / 2; ++page) trace.push_back({page, false});
  }
  return trace;
}

const std::map<std::string, PolicyKind> kPolicies = {
    {"clock", PolicyKind::kClock}, {"period", PolicyKind::kPeriod}, {"s3fifo", PolicyKind::kS3Fifo}};

// ---- recorded traces

struct Recorded {
  Trace trace;
  std::uint32_t pages = 0;
};

// A page was written if it left so; which of its uses wrote is known only as far as that.
Recorded recorded(const PageTrace& file) {
  Recorded result;
  std::vector<std::size_t> last_use;
  for (const PageTraceEntry& entry : file.entries) {
    const auto page = static_cast<std::uint32_t>(entry.page);
    if (page >= last_use.size()) last_use.resize(page + 1);
    result.pages = std::max(result.pages, page + 1);
    switch (entry.event) {
      case PageEvent::kCame:
      case PageEvent::kCameFresh:
        last_use[page] = result.trace.size();
        result.trace.push_back({.page = page});
        break;
      case PageEvent::kLeftWritten: result.trace[last_use[page]].write = true; break;
      case PageEvent::kDropped: result.trace.push_back({.page = page, .drop = true}); break;
      default: break;
    }
  }
  return result;
}

// What the traffic costs on a disk like the one of docs/benchmarks/paging.md, if nothing overlaps: rough, but it tells
// many small requests from few large ones.
double seconds_on_a_disk(const Counts& counts) {
  constexpr double kFault = 10e-6, kRead = 45e-6, kReadAhead = 30e-6, kWrite = 10e-6;  // each
  constexpr double kReadBytes = 1.1e9, kWriteBytes = 1.8e9;                            // a second
  const double bytes = static_cast<double>(counts.pages_read) * kPageBytes / kReadBytes +
                       static_cast<double>(counts.pages_written) * kPageBytes / kWriteBytes;
  return bytes + static_cast<double>(counts.reads) * (kFault + kRead) +
         static_cast<double>(counts.reads_ahead) * kReadAhead + static_cast<double>(counts.writes) * kWrite +
         static_cast<double>(counts.soft_faults) * kFault;
}

int replay(std::uint64_t budget_bytes, std::span<char*> files) {
  fmt::print("{:<20} {:<7} {:>8} {:>9} {:>8} {:>8} {:>11} {:>7} {:>8} {:>7}\n", "trace", "policy", "MiB read",
             "/optimum", "reads", "ahead", "MiB written", "writes", "soft", "model s");
  for (const char* path : files) {
    const auto file = bench::read_trace_file(path);
    if (!file) {
      fmt::print(stderr, "policy_sim: {}: {}\n", path, file.error().message());
      return 1;
    }
    const std::uint64_t memory = budget_bytes / kPageBytes;
    const plan::Uses uses = plan::uses_of(file->entries);
    const double best = static_cast<double>(plan::optimum(uses, memory).pages_read);
    const std::uint64_t lru = plan::lru_reads(uses, memory);
    const std::string_view name = std::string_view(path).substr(std::string_view(path).rfind('/') + 1);
    fmt::print("{:<20} {:<7} {:>8} {:>8.2f}x\n", name, "(LRU)", lru / 256,
               static_cast<double>(lru) / std::max(best, 1.0));
    const Recorded what = recorded(*file);
    for (const auto& [policy, kind] : kPolicies) {
      const Counts counts = run(what.trace, what.pages, memory, kind);
      fmt::print("{:<20} {:<7} {:>8} {:>8.2f}x {:>8} {:>8} {:>11} {:>7} {:>8} {:>7.2f}\n", name, policy,
                 counts.pages_read / 256, static_cast<double>(counts.pages_read) / std::max(best, 1.0), counts.reads,
                 counts.reads_ahead, counts.pages_written / 256, counts.writes, counts.soft_faults,
                 seconds_on_a_disk(counts));
    }
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 3 && std::string_view(arguments[1]) == "--trace") {
    return replay(std::strtoull(arguments[2], nullptr, 10), {arguments + 3, static_cast<std::size_t>(count) - 3});
  }
  const std::map<std::string, std::function<Trace()>> traces = {{"sweep", sweep},
                                                                {"two_grids", two_grids},
                                                                {"uniform", uniform},
                                                                {"skewed", [] { return skewed(false); }},
                                                                {"moving_hot", [] { return skewed(true); }},
                                                                {"hot_and_scan", hot_and_scan},
                                                                {"hot_and_cold", hot_and_cold}};
  std::string json;
  fmt::print("{:<13} {:>4}  {:<7} {:>12} {:>10} {:>9} {:>9} {:>9}\n", "trace", "mem", "policy", "pages read",
             "/optimum", "requests", "written", "soft");
  for (const auto& [name, make] : traces) {
    const Trace trace = make();
    const plan::Uses uses = uses_of(trace, kPages);
    for (const std::uint64_t percent : {90, 70, 50}) {
      const std::uint64_t memory = kPages * percent / 100;
      const double best = static_cast<double>(std::max<std::uint64_t>(plan::optimum(uses, memory).pages_read, 1));
      // It knows every touch: what the kernel strives for with its access bits, which a user-space pager does not see.
      const std::uint64_t lru = plan::lru_reads(uses, memory);
      fmt::print("{:<13} {:>3}%  {:<7} {:>12} {:>9.2f}x\n", name, percent, "(LRU)", lru,
                 static_cast<double>(lru) / best);
      for (const auto& [policy, kind] : kPolicies) {
        const Counts counts = run(trace, kPages, memory, kind);
        const double ratio = static_cast<double>(counts.pages_read) / best;
        fmt::print("{:<13} {:>3}%  {:<7} {:>12} {:>9.2f}x {:>9} {:>9} {:>9}\n", name, percent, policy,
                   counts.pages_read, ratio, counts.reads + counts.reads_ahead, counts.pages_written,
                   counts.soft_faults);
        json += fmt::format(
            R"({}{{"name":"{}_{}","metric":"read_over_optimum_{}","value":{:.4f},"unit":"","min":{:.4f},"max":{:.4f}}})",
            json.empty() ? "" : ",", name, policy, percent, ratio, ratio, ratio);
      }
    }
  }
  if (count == 3 && std::string(arguments[1]) == "--json") {
    if (FILE* file = std::fopen(arguments[2], "w")) {
      fmt::print(file,
                 R"({{"format":1,"bench":"policy","results":[{}]}})"
                 "\n",
                 json);
      std::fclose(file);
    }
  }
  return 0;
}
