// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "context_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "context_figures.hpp"
#include "terminal.hpp"

namespace farheap::tool {

namespace {

using profile::Contexts;
using profile::CountedContext;

constexpr std::size_t kContextsShown = 40, kSitesShown = 12;
constexpr double kLeastShare = 0.001;  // of the program's time or accesses: below that a context is not shown

std::string ms_text(std::uint64_t ns) {
  const double ms = static_cast<double>(ns) / 1e6;
  return ms < 10'000 ? fmt::format("{:.1f} ms", ms) : fmt::format("{:.1f} s", ms / 1000);
}

bool is_shown(const WholeContext& one, const WholeContext& all) {
  const auto share = [](std::uint64_t part, std::uint64_t whole) {
    return static_cast<double>(part) >= kLeastShare * static_cast<double>(std::max<std::uint64_t>(whole, 1));
  };
  return (one.ns > 0 && share(one.ns, all.ns)) || (one.accesses() > 0 && share(one.accesses(), all.accesses()));
}

std::string tree_table(const Contexts& contexts) {
  const std::vector<WholeContext> whole = whole_contexts(contexts);
  std::vector<std::vector<std::string>> rows{{"with all below", "own", "entries", "reads", "writes", "context"}};
  std::vector<unsigned> depths(contexts.contexts.size(), 0);
  std::size_t left_out = 0;
  for (std::uint32_t i = 1; i < contexts.contexts.size(); ++i) {
    depths[i] = contexts.parent(i) == 0 ? 0 : depths[contexts.parent(i)] + 1;
    if (rows.size() > kContextsShown || !is_shown(whole[i], whole[0])) {
      ++left_out;
      continue;
    }
    const CountedContext& one = contexts.contexts[i];
    rows.push_back(
        {ms_text(whole[i].ns), ms_text(one.own_ns), std::to_string(one.entries), std::to_string(one.reads),
         std::to_string(one.writes),
         std::string(std::size_t{2} * depths[i], ' ') + shortened(printable(context_text(contexts, i)), kTextWidth)});
  }
  std::string text = aligned(rows);
  if (left_out > 0) text += fmt::format("({} contexts are not shown; --json has all)\n", left_out);
  if (contexts.folded > 0) {
    text += fmt::format("({} contexts took so little time that they were made part of those above them)\n",
                        contexts.folded);
  }
  return text;
}

std::string sites_table(const Contexts& contexts, CodeNames& names) {
  std::vector<std::vector<std::string>> rows{
      {"reads", "writes", "peak", "objects", "allocated at", "in", "most accesses by"}};
  for (const SiteAccesses& row : accesses_by_site(contexts)) {
    if (rows.size() > kSitesShown || row.reads + row.writes == 0) break;
    const profile::CountedSite& site = contexts.sites[row.site];
    rows.push_back({std::to_string(row.reads), std::to_string(row.writes), base::format_size(site.peak_bytes),
                    std::to_string(site.objects), shortened(printable(counted_site_text(site, names)), kTextWidth),
                    shortened(printable(context_text(contexts, site.context)), kTextWidth),
                    shortened(printable(context_text(contexts, row.most_by)), kTextWidth)});
  }
  return rows.size() == 1 ? std::string() : "\nWhat they access, by where it was allocated\n" + aligned(rows);
}

nlohmann::ordered_json context_json(const Contexts& contexts, std::uint32_t context) {
  const CountedContext& one = contexts.contexts[context];
  nlohmann::ordered_json json = {{"id", context}, {"parent", contexts.parent(context)}, {"local_id", one.local_id}};
  if (context != 0) {
    const profile::ContextPlace& place = contexts.places[one.place];
    json["kind"] = place.is_loop ? "loop" : "function";
    json["function"] = place.function;
    json["source"] = place.source;
    json["line"] = place.line;
  } else {
    json["kind"] = "program";
  }
  json["entries"] = one.entries;
  json["own_seconds"] = static_cast<double>(one.own_ns) / base::kNsPerSecond;
  json["reads"] = one.reads;
  json["writes"] = one.writes;
  if (one.folded != 0) {
    json["folded"] = one.folded;
    json["folded_entries"] = one.folded_entries;
  }
  return json;
}

nlohmann::ordered_json process_json(const profile::ProcessProfile& process, CodeNames& names) {
  const Contexts& contexts = process.contexts;
  auto tree = nlohmann::ordered_json::array(), sites = nlohmann::ordered_json::array(),
       accesses = nlohmann::ordered_json::array();
  for (std::uint32_t i = 0; i < contexts.contexts.size(); ++i) tree.push_back(context_json(contexts, i));
  for (std::uint32_t i = 1; i < contexts.sites.size(); ++i) {
    const profile::CountedSite& one = contexts.sites[i];
    sites.push_back({{"id", i},
                     {"context", one.context},
                     {"site", counted_site_text(one, names)},
                     {"objects", one.objects},
                     {"allocated_bytes", one.allocated_bytes},
                     {"live_bytes", one.live_bytes},
                     {"peak_bytes", one.peak_bytes}});
  }
  for (const profile::ContextAccesses& one : contexts.accesses) {
    accesses.push_back({{"context", one.context}, {"site", one.site}, {"reads", one.reads}, {"writes", one.writes}});
  }
  return {{"process", process.process}, {"name", process.name},      {"folded", contexts.folded},
          {"tree", std::move(tree)},    {"sites", std::move(sites)}, {"accesses", std::move(accesses)}};
}

}  // namespace

bool has_contexts(const profile::Profile& profile) {
  return std::ranges::any_of(profile.processes, [](const auto& one) { return !one.contexts.contexts.empty(); });
}

bool has_only_contexts(const profile::Profile& profile) {
  return has_contexts(profile) && profile.trace.empty() &&
         std::ranges::all_of(profile.processes, [](const auto& one) { return one.frames.empty(); });
}

std::string contexts_summary(const profile::Profile& profile) {
  WholeContext all;
  std::size_t count = 0, processes = 0;
  for (const profile::ProcessProfile& process : profile.processes) {
    if (process.contexts.contexts.empty()) continue;
    const WholeContext whole = whole_contexts(process.contexts).front();
    all.ns += whole.ns;
    all.reads += whole.reads;
    all.writes += whole.writes;
    count += process.contexts.contexts.size() - 1;
    ++processes;
  }
  return fmt::format("{} {} contexts took {}, and made {} reads and {} writes: all were counted.",
                     processes > 1 ? fmt::format("The {} processes'", processes) : "Its", count, ms_text(all.ns),
                     all.reads, all.writes);
}

std::string contexts_text(const profile::Profile& profile, CodeNames& names) {
  std::string text;
  for (const profile::ProcessProfile& process : profile.processes) {
    if (process.contexts.contexts.empty()) continue;
    text += fmt::format("{}Where {} (process {}) spent its time, and what it accessed\n{}{}", text.empty() ? "" : "\n",
                        printable(process.name), process.process, tree_table(process.contexts),
                        sites_table(process.contexts, names));
  }
  return text;
}

nlohmann::ordered_json contexts_json(const profile::Profile& profile, CodeNames& names) {
  auto all = nlohmann::ordered_json::array();
  for (const profile::ProcessProfile& process : profile.processes) {
    if (!process.contexts.contexts.empty()) all.push_back(process_json(process, names));
  }
  return all;
}

}  // namespace farheap::tool
