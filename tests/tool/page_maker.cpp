// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// page_maker huge|hostile FILE: writes the page of a profile that no test can record: of a million stacks, or of names
// that were chosen to break out of the page. page_maker counted FILE: writes a profile of two processes that counted
// their contexts: few, some with such names, and more than a page shows. page_maker extreme FILE: one with the largest
// numbers and oddest names that a profile can have.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "profile/contexts.hpp"
#include "profile/profile.hpp"
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

namespace profile = farheap::profile;

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::size_t kMostContexts = 50'000;

profile::Contexts few_contexts() {
  profile::ContextCollector all;
  const auto main = all.child(profile::ContextCollector::kTop, {"main", "/src/app.c", 3, false});
  const auto step = all.child(main, {"step", "/src/app.c", 10, false});
  const auto outer = all.child(step, {"step", "/src/app.c", 12, true});
  const auto inner = all.child(outer, {"step", "/src/app.c", 13, true});
  const auto hostile = all.child(main, {"</script><script>window.broken = 1</script>", "", 0, false});
  const auto again = all.child(hostile, {"__proto__", "/src/\xff.c", 7, false});
  all.add(main, 1, 2 * kMs, 10, 5);
  all.add(step, 4, 30 * kMs, 100, 0);
  all.add(outer, 40, 200 * kMs, 1'000'000, 20);
  all.add(inner, 4000, 900 * kMs, 3'000'000, 5'000'000);
  all.add(hostile, 2, 50 * kMs, 7, 900'000);
  all.add(again, 3, 0, 0, 1);
  const auto large = all.site({main, 1, 0x1010, 1, 64 << 20, 0, 64 << 20});
  const auto small = all.site({hostile, 1, 0x2020, 5000, 5000 * 64, 640, 320'000});
  (void)all.site({main, 1, 0x3030, 1, 100, 100, 100});  // which nobody accesses
  all.add({inner, large, 2'500'000, 5'000'000});
  all.add({outer, large, 900'000, 0});
  all.add({hostile, small, 7, 800'000});
  return all.finish(kMostContexts);
}

profile::Contexts many_contexts() {
  constexpr std::uint32_t kCount = 2500;
  profile::ContextCollector all;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const std::string name = fmt::format("f{}", i);
    const auto function = all.child(profile::ContextCollector::kTop, {name, "/src/many.c", i + 1, false});
    const auto loop = all.child(function, {name, "/src/many.c", i + 2, true});
    all.add(function, 1, static_cast<std::int64_t>(i), i, 0);
    all.add(loop, 1, static_cast<std::int64_t>(i) * kMs, 2 * i, i);
    const auto site = all.site({function, 1, 0x10000 + i, 1, 8, 0, 8});
    all.add({loop, site, i, i});
  }
  return all.finish(kMostContexts);
}

profile::Profile counted() {
  profile::Profile counted;
  (void)counted.file({"/no/such/app", ""});
  for (const auto& [number, name] : {std::pair(11, "app"), std::pair(12, "<b>many</b>")}) {
    profile::ProcessProfile process;
    process.process = number;
    process.parent = 1;
    process.name = name;
    process.frames.clear();
    process.contexts = number == 11 ? few_contexts() : many_contexts();
    counted.processes.push_back(std::move(process));
  }
  return counted;
}

profile::Profile extreme() {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  profile::Profile extreme;
  const auto odd = extreme.file({"/\xff\xfe", "00"});
  profile::ProcessProfile process;
  process.process = process.parent = 1;
  process.name = "\xff";
  process.faults = process.stalled_ns = process.pages_read = kMost;
  process.frames = {{}, {0, {odd, kMost}}, {1, {odd, 0}}, {2, {0, kMost}}};
  process.sites = {{3, std::numeric_limits<double>::infinity(), kMost, kMost, kMost},
                   {2, std::numeric_limits<double>::quiet_NaN(), 1, 2, 3},
                   {0, -1, kMost, 0, kMost}};
  process.places = {{}, {{odd, kMost}, true, {odd, 0}}, {{0, kMost}, false, {}}};
  process.stalls = {{1, 3, kMost, kMost, kMost}, {2, 0, 1, 1, 1}, {0, 2, kMost, 1, 0}};
  extreme.processes = {process};
  return extreme;
}

void write(const std::string& path, const std::string& content) { std::ofstream(path, std::ios::binary) << content; }

}  // namespace

int main(int count, char** words) {
  const std::string kind = count == 3 ? words[1] : "";
  if (kind == "counted" || kind == "extreme") {
    write(words[2], profile::encode(kind == "counted" ? counted() : extreme()));
    return 0;
  }
  if (kind != "huge" && kind != "hostile") {
    std::cerr << "page_maker huge|hostile|counted|extreme FILE\n";
    return 2;
  }
  MemoryAdvice advice;
  advice.missing = "nothing was recorded";
  if (kind == "hostile") advice.plan_words = "object  allocated at\n64 MiB  </pre><b>\n        \u202e: backwards\n";
  write(words[2], profile_page(nullptr, kind == "huge" ? huge() : hostile(), advice, "</title><script>", nullptr));
  return 0;
}
