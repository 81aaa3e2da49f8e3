// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "context_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "context_figures.hpp"
#include "stack_tree.hpp"

namespace farheap::tool {

namespace {

using nlohmann::ordered_json;
using profile::Contexts;
using profile::CountedContext;

double seconds_of(std::uint64_t ns) { return static_cast<double>(ns) / base::kNsPerSecond; }

// Texts that are said by their numbers, because many rows have the same.
class Names {
 public:
  std::size_t number(const std::string& text) {
    const auto [found, is_new] = numbers_.try_emplace(text, texts_.size());
    if (is_new) texts_.push_back(text);
    return found->second;
  }
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

// Contexts are in preorder, as frames are.
StackTree tree_of_process(const profile::ProcessProfile& process, const std::vector<WholeContext>& whole) {
  const Contexts& contexts = process.contexts;
  Names names;
  StackTree tree;
  for (std::uint32_t i = 0; i < whole.size(); ++i) {
    const std::string name =
        i == 0 ? fmt::format("{} (process {})", process.name, process.process) : context_text(contexts, i);
    tree.frames.push_back(
        {contexts.parent(i),
         names.number(name),
         {seconds_of(whole[i].ns), static_cast<double>(whole[i].reads), static_cast<double>(whole[i].writes)}});
  }
  tree.names = names.texts();
  tree.seen = tree.frames.size();
  return folded_tree(std::move(tree));
}

// The contexts with the largest share of the program's own time, reads or writes, in their order; the root is none.
std::vector<std::uint32_t> largest(const Contexts& contexts, const WholeContext& all, std::size_t most) {
  const auto share = [](std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  const auto largest_share = [&](std::uint32_t context) {
    const CountedContext& one = contexts.contexts[context];
    return std::max({share(one.own_ns, all.ns), share(one.reads, all.reads), share(one.writes, all.writes)});
  };
  std::vector<std::uint32_t> order(contexts.contexts.size() - 1);
  std::iota(order.begin(), order.end(), 1);
  if (order.size() <= most) return order;
  std::ranges::stable_sort(order, std::greater{}, largest_share);
  order.resize(most);
  std::ranges::sort(order);
  return order;
}

ordered_json path_json(const Contexts& contexts, std::uint32_t context, Names& names) {
  std::vector<std::size_t> path;
  for (; context != 0; context = contexts.parent(context))
    path.push_back(names.number(context_text(contexts, context)));
  std::ranges::reverse(path);
  return path;
}

void add_contexts(const Contexts& contexts, const std::vector<WholeContext>& whole, std::size_t most, Names& names,
                  ordered_json& into) {
  auto rows = ordered_json::array();
  CountedContext rest;
  for (std::uint32_t i = 1; i < whole.size(); ++i) {
    rest.own_ns += contexts.contexts[i].own_ns;
    rest.reads += contexts.contexts[i].reads;
    rest.writes += contexts.contexts[i].writes;
  }
  for (const std::uint32_t i : largest(contexts, whole[0], most)) {
    const CountedContext& one = contexts.contexts[i];
    rows.push_back({path_json(contexts, i, names), one.entries, seconds_of(one.own_ns), seconds_of(whole[i].ns),
                    one.reads, one.writes});
    rest.own_ns -= one.own_ns;
    rest.reads -= one.reads;
    rest.writes -= one.writes;
  }
  into["contexts_left_out"] = {{"contexts", whole.size() - 1 - rows.size()},
                               {"own_seconds", seconds_of(rest.own_ns)},
                               {"reads", rest.reads},
                               {"writes", rest.writes}};
  into["contexts"] = std::move(rows);
}

void add_sites(const Contexts& contexts, std::size_t most, CodeNames& code, Names& names, ordered_json& into) {
  auto rows = ordered_json::array();
  std::uint64_t count = 0, reads = 0, writes = 0;
  for (const SiteAccesses& one : accesses_by_site(contexts)) {
    if (rows.size() == most) {
      ++count;
      reads += one.reads;
      writes += one.writes;
      continue;
    }
    const profile::CountedSite& site = contexts.sites[one.site];
    rows.push_back({{"site", counted_site_text(site, code)},
                    {"in", names.number(context_text(contexts, site.context))},
                    {"most_by", names.number(one.most == 0 ? "" : context_text(contexts, one.most_by))},
                    {"reads", one.reads},
                    {"writes", one.writes},
                    {"objects", site.objects},
                    {"allocated_bytes", site.allocated_bytes},
                    {"live_bytes", site.live_bytes},
                    {"peak_bytes", site.peak_bytes}});
  }
  into["sites"] = std::move(rows);
  into["sites_left_out"] = {{"sites", count}, {"reads", reads}, {"writes", writes}};
}

ordered_json process_json(const profile::ProcessProfile& process, CodeNames& code, std::size_t most) {
  const Contexts& contexts = process.contexts;
  const std::vector<WholeContext> whole = whole_contexts(contexts);
  ordered_json json = {{"process", process.process}, {"name", process.name}, {"folded", contexts.folded}};
  json["stacks"] = stack_tree_json(tree_of_process(process, whole));
  Names names;
  add_contexts(contexts, whole, most, names, json);
  add_sites(contexts, most, code, names, json);
  json["names"] = names.texts();
  return json;
}

}  // namespace

ordered_json contexts_page_json(const profile::Profile& profile, CodeNames& names, std::size_t most) {
  ordered_json all;
  for (const profile::ProcessProfile& process : profile.processes) {
    if (!process.contexts.contexts.empty()) all.push_back(process_json(process, names, most));
  }
  return all;
}

}  // namespace farheap::tool
