// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "context_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace farheap::tool {

std::vector<WholeContext> whole_contexts(const profile::Contexts& contexts) {
  std::vector<WholeContext> whole(contexts.contexts.size());
  for (std::size_t i = whole.size(); i-- > 0;) {
    const profile::CountedContext& one = contexts.contexts[i];
    whole[i].ns += one.own_ns;
    whole[i].reads += one.reads;
    whole[i].writes += one.writes;
    if (i == 0) continue;
    WholeContext& above = whole[contexts.parent(static_cast<std::uint32_t>(i))];
    above.ns += whole[i].ns;
    above.reads += whole[i].reads;
    above.writes += whole[i].writes;
  }
  return whole;
}

std::string context_text(const profile::Contexts& contexts, std::uint32_t context) {
  if (context == 0) return "the program";
  const profile::ContextPlace& place = contexts.places[contexts.contexts[context].place];
  const std::string source = place.source.substr(place.source.rfind('/') + 1);
  const std::string where = place.line == 0  ? std::string()
                            : source.empty() ? std::string()
                                             : fmt::format(" ({}:{})", source, place.line);
  return (place.is_loop ? "loop of " : "") + place.function + where;
}

std::string counted_site_text(const profile::CountedSite& site, CodeNames& names) {
  const std::vector<CodeName> frames = names.call({site.file, site.offset});
  return frames.empty() ? std::string("?") : frames.back().text();
}

std::vector<SiteAccesses> accesses_by_site(const profile::Contexts& contexts) {
  std::vector<SiteAccesses> rows(contexts.sites.size());
  for (std::uint32_t i = 0; i < rows.size(); ++i) rows[i].site = i;
  for (const profile::ContextAccesses& one : contexts.accesses) {
    SiteAccesses& row = rows[one.site];
    row.reads += one.reads;
    row.writes += one.writes;
    if (one.reads + one.writes > row.most) row.most = one.reads + one.writes, row.most_by = one.context;
  }
  if (!rows.empty()) rows.erase(rows.begin());  // unused
  std::ranges::stable_sort(rows, std::greater{}, [](const SiteAccesses& row) { return row.reads + row.writes; });
  return rows;
}

}  // namespace farheap::tool
