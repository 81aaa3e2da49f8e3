// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/options.hpp"
#include "base/run_page.hpp"
#include "base/units.hpp"
#include "store/uri.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace farheap::tool {
namespace {

using base::format_size;

// Above this share of the time waiting for pages, the store decides how long a run takes.
constexpr double kStoreBound = 0.30;
// So far above the budget no moment brings a program: memory that cannot leave does.
constexpr double kOverBudget = 1.25;
constexpr double kNearBudget = 0.75;
// Above this share it mostly waits: the budget thrashes.
constexpr double kThrashes = 0.50;
// Below it there is room for a smaller budget.
constexpr double kHardlyNoticed = 0.05;

// In JSON: what the processes of a run say, and the tool does not know by itself.
constexpr const char* kFiguresOfProcesses[] = {"peak_bytes",
                                               "processes",
                                               "failed_starts",
                                               "paging_processes",
                                               "faults",
                                               "faults_fresh",
                                               "faults_probation",
                                               "faults_store",
                                               "faults_waited",
                                               "guard_fetches",
                                               "bytes_read",
                                               "bytes_written",
                                               "bytes_read_ahead",
                                               "pages_dropped_clean",
                                               "stall_seconds",
                                               "stall_no_room_seconds",
                                               "store_full_waits",
                                               "used_again_bytes",
                                               "faults_packed",
                                               "touches_expected",
                                               "touches_unexpected",
                                               "orders_given_up",
                                               "orders_too_dear",
                                               "plans_met",
                                               "region_bytes",
                                               "region_spare_bytes",
                                               "order_bytes_read",
                                               "order_bytes_expected"};

// What to do where a store was full. Where it is another program's, df shows nothing of it.
std::string room_in(const std::string& store) {
  const auto parts = store::split_uri(store);
  const std::string pages = parts ? parts->pages : store;
  const std::string_view kind = std::string_view(pages).substr(0, pages.find(':'));
  const std::string_view engine = kind.substr(kind.rfind('+') + 1);  // npos + 1 is 0
  if (engine == "file" || engine == "lmdb" || engine == "rocksdb") {
    return fmt::format("df -h, and a larger place with --store file:DIR; {} is too small", store);
  }
  const char* how = "the quota of its server";
  if (kind.find("redis") != kind.npos) how = "`redis-cli INFO memory`, and more with its CONFIG SET maxmemory";
  if (engine == "etcd") how = "`etcdctl endpoint status`, and more with its --quota-backend-bytes";
  if (engine == "mem") how = "a larger size=";
  return fmt::format("{}, or another place with --store; {} is too small", how, store);
}

std::string counted(std::uint64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", number, number == 1 ? one : many);
}

std::string with_memory(const RunSummary& summary, double bytes) {
  const auto least = static_cast<double>(base::kLeastBudgetBytes);
  const auto mebibytes = static_cast<std::uint64_t>(std::max(bytes, least)) / base::kMiB;
  std::string line = fmt::format("farheap run --memory {}M --", mebibytes);
  for (const auto& word : summary.command) line += " " + shell_word(word);
  return line;
}

// With several handlers the waits of threads add up to more than the time that passed.
double stalled_share(const RunSummary& summary) {
  return summary.seconds > 0 ? std::min(1.0, summary.stall_seconds / summary.seconds) : 0;
}

// Nothing left it. A recorded run pages from its beginning, whatever its budget: only what moves tells.
bool is_all_in_memory(const RunSummary& summary) {
  return summary.paging_processes == 0 ||
         (summary.bytes_read == 0 && summary.bytes_written == 0 && summary.faults_packed == 0);
}

bool thrashes(const RunSummary& summary) { return stalled_share(summary) > kThrashes; }

// What is used again, and what the program and the runtime have beside the heap. 0: more memory is not known to help.
double enough_bytes(const RunSummary& summary) {
  const double bytes = static_cast<double>(summary.used_again_bytes) * 17 / 16;
  return bytes > static_cast<double>(summary.budget_bytes) ? std::ceil(bytes / base::kMiB) * base::kMiB : 0;
}

std::string how_it_waited(const RunSummary& summary) {
  constexpr double kShort = 3;
  std::string waited = fmt::format("{:.{}f} of {:.{}f} s waiting for pages", stalled_share(summary) * summary.seconds,
                                   summary.seconds < kShort ? 1 : 0, summary.seconds, summary.seconds < kShort ? 1 : 0);
  const double enough = enough_bytes(summary);
  if (enough == 0) return waited;
  return fmt::format("{}: {:.0f} MiB would do (it used {} of its heap again and again)", waited, enough / base::kMiB,
                     format_size(summary.used_again_bytes));
}

std::string how_it_ended(const RunSummary& summary) {
  if (!summary.ended) return "was still running";
  if (summary.signal != 0) return fmt::format("was ended by signal {} ({})", summary.signal, strsignal(summary.signal));
  if (summary.exit_status != 0) return fmt::format("ended with status {}", summary.exit_status);
  return "ended well";
}

}  // namespace

void add_counters(RunSummary& summary, const CounterValues& counters) {
  constexpr double kNanoseconds = 1e-9;
  summary.peak_bytes = counters.peak_bytes;
  summary.processes = counters.processes;
  summary.failed_starts = counters.failed_starts;
  summary.paging_processes = counters.paging_processes;
  summary.faults = counters.faults;
  summary.faults_fresh = counters.faults_fresh;
  summary.faults_probation = counters.faults_probation;
  summary.faults_store = counters.faults_store;
  summary.faults_waited = counters.faults_waited;
  summary.guard_fetches = counters.guard_fetches;
  summary.faults_packed = counters.faults_packed;
  summary.touches_expected = counters.touches_expected;
  summary.touches_unexpected = counters.touches_unexpected;
  summary.orders_given_up = counters.orders_given_up;
  summary.orders_too_dear = counters.orders_too_dear;
  summary.plans_met = counters.plans_met;
  summary.region_bytes = counters.region_bytes;
  summary.region_spare_bytes = counters.region_spare_bytes;
  summary.order_bytes_read = counters.order_bytes_read;
  summary.order_bytes_expected = counters.order_bytes_expected;
  summary.bytes_read = counters.bytes_read;
  summary.bytes_written = counters.bytes_written;
  summary.bytes_read_ahead = counters.bytes_read_ahead;
  summary.pages_dropped_clean = counters.pages_dropped_clean;
  summary.stall_seconds = static_cast<double>(counters.stall_ns) * kNanoseconds;
  summary.stall_no_room_seconds = static_cast<double>(counters.stall_no_room_ns) * kNanoseconds;
  summary.store_full_waits = counters.store_full_waits;
}

std::uint64_t used_again(const Sample& whole, std::uint64_t budget_bytes) {
  if (whole.counters.paging_processes != 1) return 0;
  const auto is_wide = [&](const RangeSample& range) { return range.bytes > budget_bytes / 4; };
  if (std::ranges::any_of(whole.ranges, is_wide)) return 0;
  const auto uses = [](const RangeSample& range) {
    return range.counts[base::Heat::kProbation] + range.counts[base::Heat::kBytesRead] / base::kPageBytes;
  };
  std::vector<RangeSample> ranges = whole.ranges;
  std::ranges::sort(ranges, std::greater<>(), uses);
  std::uint64_t all = 0;
  for (const auto& range : ranges) all += uses(range);
  std::uint64_t bytes = 0, seen = 0;
  for (const auto& range : ranges) {
    if (seen >= all - all / 100) break;
    seen += uses(range);
    bytes += range.bytes;
  }
  return bytes;
}

Machine Machine::here() {
  Machine machine;
  struct sysinfo facts{};
  if (sysinfo(&facts) == 0) machine.memory_bytes = (facts.totalram + facts.totalswap) * facts.mem_unit;
  machine.processors = static_cast<std::uint64_t>(std::max(sysconf(_SC_NPROCESSORS_CONF), 1L));
  return machine;
}

std::string doubt_of(const RunSummary& summary, const Machine& machine) {
  // Of each processor, in a second, and far more than any does.
  constexpr double kMostBytes = 1e12, kMostFaults = 1e9, kMostProcesses = 1e5;
  constexpr double kMostThreads = 1 << 22;  // the kernel numbers no more
  const double seconds = std::max(summary.seconds, 1.0);
  const double work = seconds * static_cast<double>(machine.processors);
  const auto beyond = [](std::uint64_t figure, double most) { return static_cast<double>(figure) > most; };
  if (summary.peak_bytes > machine.memory_bytes) {
    return fmt::format("a peak of {}, and the machine has {}", format_size(summary.peak_bytes),
                       format_size(machine.memory_bytes));
  }
  for (const auto& [bytes, what] : {std::pair{summary.bytes_read, "read"},
                                    {summary.bytes_written, "written"},
                                    {summary.bytes_read_ahead, "read ahead"},
                                    {summary.order_bytes_read, "read by an order"},
                                    {summary.region_bytes, "in regions"},
                                    {summary.region_spare_bytes, "free in regions"},
                                    {summary.order_bytes_expected, "expected to be read"}}) {
    if (beyond(bytes, kMostBytes * work)) return fmt::format("{} {} in {:.1f} s", format_size(bytes), what, seconds);
  }
  for (const std::uint64_t faults :
       {summary.faults, summary.faults_fresh, summary.faults_probation, summary.faults_store, summary.faults_waited,
        summary.guard_fetches, summary.faults_packed, summary.touches_expected, summary.touches_unexpected,
        summary.pages_dropped_clean, summary.store_full_waits}) {
    if (beyond(faults, kMostFaults * work)) return fmt::format("{} faults in {:.1f} s", faults, seconds);
  }
  for (const std::uint64_t processes : {summary.processes, summary.paging_processes, summary.failed_starts,
                                        summary.orders_given_up, summary.orders_too_dear, summary.plans_met}) {
    if (beyond(processes, kMostProcesses * work)) return fmt::format("{} processes in {:.1f} s", processes, seconds);
  }
  for (const double stall : {summary.stall_seconds, summary.stall_no_room_seconds}) {
    if (stall > kMostThreads * seconds) return fmt::format("{:.0f} s of waiting in {:.1f} s", stall, seconds);
  }
  return {};
}

namespace {

// The loader's status for what it cannot find; it has said what.
bool did_not_load(const RunSummary& summary) {
  constexpr int kStatusOfLoader = 127;
  return summary.processes == 0 && summary.exit_status == kStatusOfLoader && summary.signal == 0;
}

std::vector<std::string> not_loaded_lines(const RunSummary& summary) {
  if (!summary.loaded.empty()) {
    return {fmt::format("{} DID NOT RUN: the loader {} could not find it, or a library that it needs.", summary.loaded,
                        summary.command.front()),
            summary.loaded.find('/') == std::string::npos
                ? "next: name the program with its path; without a slash the loader looks for it among the libraries"
                : fmt::format("next: `ldd {}`; it shows whether it is there, and which library is not",
                              shell_word(summary.loaded))};
  }
  return {
      fmt::format("WARNING: {} ended with status 127. If the loader wrote above what it could not find, it DID NOT "
                  "RUN; otherwise it RAN WITHOUT FARHEAP: nothing was paged and no budget was kept.",
                  summary.command.front())};
}

// Says why orders were given up that a plan, a recording or the program itself had told.
std::vector<std::string> given_up_lines(const RunSummary& summary) {
  std::vector<std::string> lines;
  const std::uint64_t dear = std::min(summary.orders_too_dear, summary.orders_given_up);
  const auto add = [&](std::uint64_t orders, std::string_view why) {
    if (orders == 0) return;
    lines.push_back(fmt::format("{} given up: {}", counted(orders, "order was", "orders were"), why));
  };
  add(dear, "much more was read than it let expect");
  add(summary.orders_given_up - dear, "memory was used in another order");
  return lines;
}

// What the tool knows by itself.
std::vector<std::string> doubtful_lines(const RunSummary& summary) {
  return {fmt::format("{} {} after {:.1f} s with a budget of {}", summary.command.front(), how_it_ended(summary),
                      summary.seconds, format_size(summary.budget_bytes)),
          fmt::format("its figures cannot be right ({}), so none is shown: a process of the run has written over them",
                      summary.doubt),
          "next: " + next_step(summary)};
}

std::string how_many_paged(const RunSummary& summary) {
  if (summary.processes == 1) return summary.paging_processes == 0 ? "not paged" : "paged";
  return summary.paging_processes == 0 ? "none of them paged"
                                       : fmt::format("{} of them paged", summary.paging_processes);
}

}  // namespace

bool did_not_start(const RunSummary& summary) { return summary.failed_starts != 0 && summary.processes == 0; }

std::vector<std::string> report_lines(const RunSummary& summary) {
  if (!summary.doubt.empty()) return doubtful_lines(summary);
  if (did_not_start(summary)) {
    return {
        fmt::format("{} DID NOT RUN: Farheap could not come up in it, for the reason above.", summary.command.front()),
        "next: " + next_step(summary)};
  }
  if (did_not_load(summary)) return not_loaded_lines(summary);
  if (summary.processes == 0) {
    return {fmt::format("WARNING: {} RAN WITHOUT FARHEAP: nothing was paged and no budget was kept.",
                        summary.command.front()),
            "The runtime never came up in it; the program, or one that started it, dropped LD_PRELOAD."};
  }
  std::vector<std::string> lines;
  // Nobody looks at a process that does not page and ends by a signal.
  const std::string peak = summary.peak_bytes == 0 ? "peak not seen, budget " + format_size(summary.budget_bytes)
                                                   : fmt::format("peak {} of {}", format_size(summary.peak_bytes),
                                                                 format_size(summary.budget_bytes));
  lines.push_back(fmt::format("{} {} after {:.1f} s; {}; {}, {}", summary.command.front(), how_it_ended(summary),
                              summary.seconds, peak, counted(summary.processes, "process", "processes"),
                              how_many_paged(summary)));
  if (summary.paging_processes != 0) {
    const std::string packed =
        summary.faults_packed == 0 ? "" : fmt::format(" ({} of them compressed)", summary.faults_packed);
    lines.push_back(
        fmt::format("{}: {} first touches, {} still in memory{}, {} from the store, {} already on their way",
                    counted(summary.faults, "fault", "faults"), summary.faults_fresh, summary.faults_probation, packed,
                    summary.faults_store, summary.faults_waited));
    if (summary.guard_fetches != 0) {
      lines.push_back(fmt::format("guards found {} of the faults, and fetched in the program's own threads",
                                  summary.guard_fetches));
    }
    if (const std::uint64_t touches = summary.touches_expected + summary.touches_unexpected; touches != 0) {
      lines.push_back(
          fmt::format("of {} that could be foreseen {:.0f} % came as expected", counted(touches, "touch", "touches"),
                      100.0 * static_cast<double>(summary.touches_expected) / static_cast<double>(touches)));
    }
    if (summary.order_bytes_expected != 0) {
      lines.push_back(fmt::format("{} of what is planned were read; followed exactly it would have been {}",
                                  format_size(summary.order_bytes_read), format_size(summary.order_bytes_expected)));
    }
    std::ranges::move(given_up_lines(summary), std::back_inserter(lines));
    if (summary.region_bytes != 0) {
      lines.push_back(fmt::format("small objects that the plan lays together had up to {}, up to {} of it free",
                                  format_size(summary.region_bytes), format_size(summary.region_spare_bytes)));
    }
    lines.push_back(fmt::format(
        "{} read ({} of it ahead), {} written; stalled {:.1f} s ({:.0f} % of the time), {:.1f} s "
        "of it for want of room",
        format_size(summary.bytes_read), format_size(summary.bytes_read_ahead), format_size(summary.bytes_written),
        summary.stall_seconds, 100 * stalled_share(summary), summary.stall_no_room_seconds));
  }
  if (thrashes(summary)) lines.push_back(how_it_waited(summary));
  if (summary.store_full_waits != 0) {
    lines.push_back(fmt::format("the store {} was full and paused the program {}", summary.store,
                                counted(summary.store_full_waits, "time", "times")));
  }
  if (summary.failed_starts != 0) {
    lines.push_back(fmt::format("{} did not run: Farheap could not come up in {}, for the reason above",
                                counted(summary.failed_starts, "process", "processes"),
                                summary.failed_starts == 1 ? "it" : "them"));
  }
  lines.push_back("next: " + next_step(summary));
  return lines;
}

std::string next_step(const RunSummary& summary) {
  if (!summary.doubt.empty()) {
    return "look for the process that wrote there: one of another user, or one with a fault of its own "
           "(docs/security.md)";
  }
  if (summary.failed_starts != 0) return "`farheap doctor`; it shows what a run needs and what is missing";
  if (summary.processes == 0) return {};
  const auto peak = static_cast<double>(summary.peak_bytes);
  const auto budget = static_cast<double>(summary.budget_bytes);
  if (summary.store_full_waits != 0) {
    return room_in(summary.store);
  }
  if (summary.exit_status == base::kStatusNotKept) {
    return fmt::format(
        "mend what Farheap complained of above; {} is its status for a program that it cannot keep going",
        base::kStatusNotKept);
  }
  if (peak > kOverBudget * budget) {
    return fmt::format("`{}`; more of its memory cannot leave than the budget allows (docs/limits.md)",
                       with_memory(summary, peak));
  }
  if (is_all_in_memory(summary)) {
    if (summary.peak_bytes == 0) return "nothing is known of its memory: it ended before anybody looked at it";
    if (peak <= static_cast<double>(base::kLeastBudgetBytes)) {
      return "nothing; its heap is smaller than the least budget, " + format_size(base::kLeastBudgetBytes);
    }
    if (peak > budget * kNearBudget) return "nothing; all of it fitted, and it pages with less";
    return fmt::format("`{}`; it needed no more than this, and pages with less", with_memory(summary, peak * 1.1));
  }
  const double share = stalled_share(summary);
  if (thrashes(summary) && enough_bytes(summary) != 0) {
    return fmt::format("`{}`; it waited for most of its time", with_memory(summary, enough_bytes(summary)));
  }
  if (share > kStoreBound && summary.stall_no_room_seconds > summary.stall_seconds / 2) {
    return fmt::format("`{}`; writing out is what it waits for, more memory or a faster store helps",
                       with_memory(summary, budget * 1.5));
  }
  if (share > kStoreBound) {
    return fmt::format("`farheap store bench {}`; it shows what the store can do at best", shell_word(summary.store));
  }
  if (share < kHardlyNoticed) {
    if (summary.budget_bytes <= base::kLeastBudgetBytes) return "nothing; it hardly waited, with the least budget";
    return fmt::format("`{}`; it hardly waited, so less may do", with_memory(summary, budget * 0.75));
  }
  return "`farheap options`; read_ahead, block_max and policy change how it pages";
}

std::string report_json(const RunSummary& summary) {
  nlohmann::ordered_json report = {
      {"format", kJsonFormat},
      {"command", summary.command},
      {"store", summary.store},
      {"exit_status", summary.exit_status},
      {"signal", summary.signal},
      {"seconds", summary.seconds},
      {"budget_bytes", summary.budget_bytes},
      {"peak_bytes", summary.peak_bytes},
      {"processes", summary.processes},
      {"failed_starts", summary.failed_starts},
      {"paging_processes", summary.paging_processes},
      {"faults", summary.faults},
      {"faults_fresh", summary.faults_fresh},
      {"faults_probation", summary.faults_probation},
      {"faults_store", summary.faults_store},
      {"faults_waited", summary.faults_waited},
      {"guard_fetches", summary.guard_fetches},
      {"faults_packed", summary.faults_packed},
      {"touches_expected", summary.touches_expected},
      {"touches_unexpected", summary.touches_unexpected},
      {"orders_given_up", summary.orders_given_up},
      {"orders_too_dear", summary.orders_too_dear},
      {"plans_met", summary.plans_met},
      {"region_bytes", summary.region_bytes},
      {"region_spare_bytes", summary.region_spare_bytes},
      {"order_bytes_read", summary.order_bytes_read},
      {"order_bytes_expected", summary.order_bytes_expected},
      {"bytes_read", summary.bytes_read},
      {"bytes_written", summary.bytes_written},
      {"bytes_read_ahead", summary.bytes_read_ahead},
      {"pages_dropped_clean", summary.pages_dropped_clean},
      {"stall_seconds", summary.stall_seconds},
      {"stall_no_room_seconds", summary.stall_no_room_seconds},
      {"store_full_waits", summary.store_full_waits},
      {"used_again_bytes", summary.used_again_bytes},
      {"next", next_step(summary)},
  };
  if (!summary.doubt.empty()) {
    for (const char* const figure : kFiguresOfProcesses) report[figure] = nullptr;
    report["doubt"] = summary.doubt;
  }
  // Arguments need not be UTF-8.
  return report.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace farheap::tool
