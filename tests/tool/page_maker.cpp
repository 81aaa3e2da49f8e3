// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// page_maker huge|hostile FILE: writes the page of a profile that no test can record: of a million stacks, or of names
// that were chosen to break out of the page.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <string>

#include "tool/report_forms.hpp"

namespace {

using namespace farheap::tool;

constexpr std::size_t kStacks = 1'000'000, kFanOut = 10, kDepth = 6;

SiteFigures site_of(std::vector<std::string> stack, double weight) {
  SiteFigures site;
  site.stack = std::move(stack);
  site.site = site.stack.back();
  site.objects = 1;
  site.allocated_bytes = static_cast<std::uint64_t>(weight * 4096);
  site.peak_bytes = site.allocated_bytes;
  site.live_bytes = site.allocated_bytes / 2;
  site.waits = {1, weight * 1e-6, 4096};
  return site;
}

void add(ProfileFigures& figures, SiteFigures site) {
  figures.all += site.waits;
  figures.peak_bytes += site.peak_bytes;
  figures.lines.push_back({site.site, site.waits, site.site, 1});
  figures.sites.push_back(std::move(site));
}

// A few stacks have most of it, as in programs; the rest is many crumbs.
ProfileFigures huge() {
  ProfileFigures figures;
  figures.processes = 1;
  for (std::size_t number = 0; number < kStacks; ++number) {
    std::vector<std::string> stack{"main (a.c:1)"};
    std::size_t rest = number;
    for (std::size_t level = 0; level < kDepth; ++level, rest /= kFanOut) {
      stack.push_back(fmt::format("f{}_{} (a.c:{})", level, rest % kFanOut, rest));
    }
    add(figures, site_of(std::move(stack), 1 + 1e6 / static_cast<double>(number + 1)));
  }
  return figures;
}

ProfileFigures hostile() {
  ProfileFigures figures;
  figures.processes = 1;
  double weight = 1e6;
  for (const char* const name :
       {"</script><script>window.broken = 1</script>", "<img src=x onerror='window.broken = 1'>", "<!--<script>",
        "\xff\xfe not UTF-8", "constructor", "__proto__", "\"'`${window.broken = 1}", "]]>", "\u202egnp.c"}) {
    add(figures, site_of({"main (a.c:1)", name}, weight));
    weight *= 0.8;
  }
  figures.notes.emplace_back("<b onmouseover='window.broken = 1'>a note</b>");
  return figures;
}

}  // namespace

int main(int count, char** words) {
  const std::string kind = count == 3 ? words[1] : "";
  if (kind != "huge" && kind != "hostile") {
    std::cerr << "page_maker huge|hostile FILE\n";
    return 2;
  }
  MemoryAdvice advice;
  advice.missing = "nothing was recorded";
  std::ofstream(words[2]) << profile_page(nullptr, kind == "huge" ? huge() : hostile(), advice, "</title><script>");
  return 0;
}
