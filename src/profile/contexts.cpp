// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/contexts.hpp"

#include <algorithm>
#include <numeric>

#include "base/clock.hpp"
#include "base/fields.hpp"

namespace farheap::profile {

namespace {

using base::FieldReader;
using base::FieldWriter;

template <class... Numbers>
void put(FieldWriter& out, Numbers... numbers) {
  (out.number(static_cast<std::uint64_t>(numbers)), ...);
}

template <class... Numbers>
void take(FieldReader& in, Numbers&... numbers) {
  ((numbers = static_cast<Numbers>(in.number())), ...);
}

// Whether contexts are in preorder, and all numbers name something.
bool are_sound(const Contexts& one, std::size_t files) {
  const auto contexts = static_cast<std::uint32_t>(one.contexts.size());
  if (contexts == 0 || one.sites.empty()) return false;  // there is a root, and the site that is unused
  for (std::uint32_t i = 0; i < contexts; ++i) {
    const CountedContext& context = one.contexts[i];
    if (i == 0) {
      if (context.local_id != 0) return false;
      continue;
    }
    if (context.local_id == 0 || context.local_id > i || context.place >= one.places.size()) return false;
    // Its parent is the context before it, or one on the path to that.
    std::uint32_t above = i - 1;
    while (above != one.parent(i) && above != 0) above = one.parent(above);
    if (above != one.parent(i)) return false;
  }
  return std::ranges::all_of(one.sites,
                             [&](const CountedSite& site) { return site.context < contexts && site.file < files; }) &&
         std::ranges::all_of(one.accesses, [&](const ContextAccesses& accesses) {
           return accesses.context < contexts && accesses.site < one.sites.size();
         });
}

}  // namespace

ContextTree tree_of(const Contexts& contexts) {
  std::vector<std::vector<SiteCount>> counts(std::max<std::size_t>(contexts.contexts.size(), 1));
  for (const ContextAccesses& one : contexts.accesses)
    counts[one.context].push_back({one.site, one.reads + one.writes});
  const auto context = [&](std::uint32_t index) {
    const CountedContext& one = contexts.contexts[index];
    return Context{contexts.parent(index), one.entries, static_cast<double>(one.own_ns) / base::kNsPerSecond,
                   AccessCounts(std::move(counts[index]))};
  };
  if (contexts.contexts.empty()) return ContextTree();
  ContextTree tree(context(0));
  for (std::uint32_t i = 1; i < contexts.contexts.size(); ++i) (void)tree.add(context(i));
  return tree;
}

ContextCollector::ContextCollector() {
  contexts_.push_back({.parent = kTop, .place = 0, .entries = 1, .children = {}});
  sites_.emplace_back();
}

std::uint32_t ContextCollector::child(std::uint32_t parent, const ContextPlace& place) {
  const auto [number, is_new_place] = place_numbers_.try_emplace(place, static_cast<std::uint32_t>(places_.size()));
  if (is_new_place) places_.push_back(place);
  const auto [known, is_new] =
      children_.try_emplace({parent, number->second}, static_cast<std::uint32_t>(contexts_.size()));
  if (is_new) {
    contexts_[parent].children.push_back(known->second);
    contexts_.push_back({.parent = parent, .place = number->second, .children = {}});
  }
  return known->second;
}

void ContextCollector::add(std::uint32_t context, std::uint64_t entries, std::int64_t own_ns, std::uint64_t reads,
                           std::uint64_t writes) {
  Collected& one = contexts_[context];
  one.entries += entries;
  one.own_ns += own_ns;
  one.reads += reads;
  one.writes += writes;
}

void ContextCollector::add_folded(std::uint32_t context, std::uint64_t contexts, std::uint64_t entries) {
  contexts_[context].folded += contexts;
  contexts_[context].folded_entries += entries;
}

std::uint32_t ContextCollector::site(const CountedSite& one) {
  const auto [known, is_new] =
      site_numbers_.try_emplace({one.context, {one.file, one.offset}}, static_cast<std::uint32_t>(sites_.size()));
  if (is_new) sites_.push_back({.context = one.context, .file = one.file, .offset = one.offset});
  CountedSite& sum = sites_[known->second];
  sum.objects += one.objects;
  sum.allocated_bytes += one.allocated_bytes;
  sum.live_bytes += one.live_bytes;
  sum.peak_bytes += one.peak_bytes;
  return known->second;
}

void ContextCollector::add(const ContextAccesses& more) {
  ContextAccesses& sum = accesses_[{more.context, more.site}];
  sum.context = more.context;
  sum.site = more.site;
  sum.reads += more.reads;
  sum.writes += more.writes;
}

// Parents were made before their children.
std::vector<std::uint64_t> ContextCollector::whole_ns() const {
  std::vector<std::uint64_t> whole(contexts_.size());
  for (std::size_t i = contexts_.size(); i-- > 0;) {
    whole[i] += static_cast<std::uint64_t>(std::max<std::int64_t>(contexts_[i].own_ns, 0));
    if (i != kTop) whole[contexts_[i].parent] += whole[i];
  }
  return whole;
}

// What is above a context takes no less time, and was made before it: so it stays, too.
std::vector<bool> ContextCollector::kept(const std::vector<std::uint64_t>& whole, std::size_t most) const {
  std::vector<bool> stays(contexts_.size(), contexts_.size() <= most);
  if (contexts_.size() <= most) return stays;
  std::vector<std::uint32_t> order(contexts_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](std::uint32_t context) { return whole[context]; });
  stays[kTop] = true;
  for (std::size_t i = 0; i < std::max<std::size_t>(most, 1); ++i) stays[order[i]] = true;
  return stays;
}

Contexts ContextCollector::finish(std::size_t most) const {
  const std::vector<std::uint64_t> whole = whole_ns();
  const std::vector<bool> stays = kept(whole, most);
  Contexts result;
  result.places = places_;
  std::vector<std::uint32_t> numbers(contexts_.size());  // of what stays; of others that of what is above them
  struct Step {
    std::uint32_t context, parent;  // as they were; as the parent is numbered now
  };
  std::vector<Step> left{{kTop, 0}};
  while (!left.empty()) {
    const auto [context, parent] = left.back();
    left.pop_back();
    const Collected& one = contexts_[context];
    const auto own_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(one.own_ns, 0));
    if (stays[context]) {
      const auto number = static_cast<std::uint32_t>(result.contexts.size());
      result.contexts.push_back(
          {number - parent, one.place, one.entries, own_ns, one.reads, one.writes, one.folded, one.folded_entries});
      result.folded += one.folded;
      numbers[context] = number;
    } else {
      CountedContext& above = result.contexts[parent];
      above.own_ns += own_ns;
      above.reads += one.reads;
      above.writes += one.writes;
      above.folded += 1 + one.folded;
      above.folded_entries += one.entries + one.folded_entries;
      numbers[context] = parent;
      result.folded += 1 + one.folded;
    }
    std::vector<std::uint32_t> children = one.children;
    std::ranges::stable_sort(children, {}, [&](std::uint32_t child) { return whole[child]; });
    for (const std::uint32_t child : children) left.push_back({child, numbers[context]});
  }
  result.sites = sites_;
  for (std::size_t i = 1; i < result.sites.size(); ++i) result.sites[i].context = numbers[result.sites[i].context];
  std::map<std::pair<std::uint32_t, std::uint32_t>, ContextAccesses> sums;
  for (const auto& [key, one] : accesses_) {
    ContextAccesses& sum = sums[{numbers[one.context], one.site}];
    sum = {numbers[one.context], one.site, sum.reads + one.reads, sum.writes + one.writes};
  }
  for (const auto& [key, one] : sums) result.accesses.push_back(one);
  return result;
}

std::string encode_contexts(const Contexts& contexts) {
  FieldWriter out;
  out.number(contexts.folded);
  out.number(contexts.places.size());
  for (const ContextPlace& place : contexts.places) {
    out.text(place.function);
    out.text(place.source);
    put(out, place.line, place.is_loop);
  }
  out.number(contexts.contexts.size());
  for (const CountedContext& one : contexts.contexts) {
    put(out, one.local_id, one.place, one.entries, one.own_ns, one.reads, one.writes);
  }
  out.number(contexts.sites.size());
  for (const CountedSite& one : contexts.sites) {
    put(out, one.context, one.file, one.offset, one.objects, one.allocated_bytes, one.live_bytes, one.peak_bytes);
  }
  out.number(contexts.accesses.size());
  for (const ContextAccesses& one : contexts.accesses) put(out, one.context, one.site, one.reads, one.writes);
  return out.bytes();
}

std::string encode_folded(const Contexts& contexts) {
  const auto count = std::ranges::count_if(contexts.contexts, [](const auto& one) { return one.folded != 0; });
  if (count == 0) return {};
  FieldWriter out;
  out.number(static_cast<std::uint64_t>(count));
  for (std::uint32_t i = 0; i < contexts.contexts.size(); ++i) {
    const CountedContext& one = contexts.contexts[i];
    if (one.folded != 0) put(out, i, one.folded, one.folded_entries);
  }
  return out.bytes();
}

bool take_folded(std::string_view bytes, Contexts& into) {
  struct Row {
    std::uint64_t context, folded, entries;
  };
  FieldReader in(bytes);
  std::vector<Row> rows;
  const bool is_read = in.list(rows, [&] {
    Row one{};
    take(in, one.context, one.folded, one.entries);
    return one;
  });
  if (!is_read || !in.is_whole()) return false;
  const auto is_one = [&](const Row& one) { return one.context < into.contexts.size() && one.folded != 0; };
  if (!std::ranges::all_of(rows, is_one)) return false;
  for (const Row& one : rows) {
    into.contexts[one.context].folded = one.folded;
    into.contexts[one.context].folded_entries = one.entries;
  }
  return true;
}

bool take_contexts(std::string_view bytes, std::size_t files, Contexts& into) {
  FieldReader in(bytes);
  Contexts result;
  result.folded = in.number();
  const bool is_read = in.list(result.places, [&] {
    ContextPlace place;
    place.function = in.text();
    place.source = in.text();
    take(in, place.line, place.is_loop);
    return place;
  }) && in.list(result.contexts, [&] {
    CountedContext one;
    take(in, one.local_id, one.place, one.entries, one.own_ns, one.reads, one.writes);
    return one;
  }) && in.list(result.sites, [&] {
    CountedSite one;
    take(in, one.context, one.file, one.offset, one.objects, one.allocated_bytes, one.live_bytes, one.peak_bytes);
    return one;
  }) && in.list(result.accesses, [&] {
    ContextAccesses one;
    take(in, one.context, one.site, one.reads, one.writes);
    return one;
  });
  if (!is_read || !in.is_whole() || !are_sound(result, files)) return false;
  into = std::move(result);
  return true;
}

}  // namespace farheap::profile
