// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap heap stats: what a kept heap takes, and what each of its snapshots takes alone.
#include "base/units.hpp"
#include "base/without_secrets.hpp"
#include "heap_text.hpp"
#include "heap_verbs.hpp"
#include "terminal.hpp"

namespace farheap::tool {
namespace {

void print_json(const HeapArguments& arguments, const HeapUsage& usage) {
  Json snapshots = Json::array();
  for (const SnapshotUsage& one : usage.snapshots) {
    Json row = json_of(one.version);
    row["own_bytes"] = one.own_bytes;
    snapshots.push_back(std::move(row));
  }
  print_out("{}\n", text_of({{"format", kJsonFormat},
                             {"heap", base::without_secrets(arguments.uri)},
                             {"version", json_of(usage.version)},
                             {"allocated_bytes", usage.allocated_bytes},
                             {"page_bytes", usage.page_bytes},
                             {"all_bytes", usage.all_bytes},
                             {"store_bytes", usage.store_bytes},
                             {"snapshots", std::move(snapshots)}}));
}

}  // namespace

int heap_stats(const HeapArguments& arguments) {
  const auto usage = Heap::usage(arguments.uri);
  if (!usage) return failed(usage.error());
  if (arguments.json) {
    print_json(arguments, *usage);
    return kDone;
  }
  print_out("{}", aligned({{"allocated", base::format_size(usage->allocated_bytes)},
                           {"its pages", base::format_size(usage->page_bytes)},
                           {"all versions", base::format_size(usage->all_bytes)},
                           {"in the store", base::format_size(usage->store_bytes)}}));
  if (usage->snapshots.empty()) return kDone;
  std::vector<std::vector<std::string>> rows{{"SNAPSHOT", "WHEN", "BYTES", "ALONE"}};
  for (const SnapshotUsage& one : usage->snapshots) {
    rows.push_back({cell_of(one.version, arguments), time_of(one.version.time_ns),
                    base::format_size(one.version.pages * base::kPageBytes), base::format_size(one.own_bytes)});
  }
  print_out("\n{}", arguments.long_names ? aligned(rows) : fitted(rows, {0}));
  return kDone;
}

}  // namespace farheap::tool
