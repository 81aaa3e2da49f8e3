// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One file: what was said of the run as plain HTML, the report's JSON, and the scripts of page/ that show it. Others
// chose the names in a profile: they are escaped here, and the scripts put them into the page as text only.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "html_text.hpp"
#include "page_assets.hpp"
#include "page_data.hpp"
#include "profile_forms.hpp"
#include "report_forms.hpp"
#include "stack_tree.hpp"
#include "verbs.hpp"

namespace farheap::tool {
namespace {

using nlohmann::ordered_json;

struct Page {
  std::string title;
  std::vector<std::string> lead, more, notes;  // what was found, first of all; what else was said
  ordered_json data;
};

std::string paragraphs(const std::vector<std::string>& lines, std::string_view kind) {
  std::string text;
  for (const std::string& line : lines) text += fmt::format("<p class=\"{}\">{}</p>\n", kind, escaped(line));
  return text;
}

// "</script>" in a name would end the data.
std::string script_json(const ordered_json& data) {
  std::string text;
  for (const char c : json_text(data)) text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

// The policy: nothing may be fetched from anywhere.
std::string page_text(const Page& page) {
  std::string text =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'\">\n";
  text += fmt::format("<title>{}</title>\n<style>\n{}</style></head><body>\n", escaped(page.title), kPageStyle);
  text += fmt::format("<header><h1>{}</h1>\n{}{}<dl id=\"facts\"></dl>\n", escaped(page.title),
                      paragraphs(page.lead, "lead"), paragraphs(page.notes, "note"));
  if (!page.more.empty()) {
    text +=
        fmt::format("<details><summary>More about the run</summary>\n{}</details>\n", paragraphs(page.more, "said"));
  }
  text += "</header>\n";
  text += "<main id=\"views\"></main>\n<noscript><p>Tables and charts need JavaScript.</p></noscript>\n";
  text += fmt::format(
      "<footer><details><summary>Libraries in this page, and their licences</summary><pre tabindex=\"0\">{}</pre>"
      "</details></footer>\n",
      escaped(kPageLicences));
  text += "<script type=\"application/json\" id=\"data\">" + script_json(page.data) + "</script>\n";
  return text + fmt::format("<script>\n{}</script>\n</body></html>\n", kPageScript);
}

std::string command_text(const Trace& trace) {
  std::string command;
  for (const auto& word : trace.command) command += (command.empty() ? "" : " ") + word;
  return command;
}

void add_trace(const Trace& trace, Page& page) {
  page.title = command_text(trace);
  const RunSummary summary = summary_of(trace);
  // The first line says how it ended. Where there is little to say, all of it matters.
  constexpr std::size_t kFew = 2;
  const std::vector<std::string> lines = report_lines(summary);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    (i == 0 || lines.size() <= kFew || !summary.doubt.empty() ? page.lead : page.more).push_back(lines[i]);
  }
  if (!trace.end) page.notes.push_back(cut_off_note(trace));
  if (!summary.doubt.empty()) return;
  page.data["timeline"] = timeline_json(trace);
  page.data["processes"] = processes_json(trace);
}

// The profile's text before its tables comes first.
void add_profile(const ProfileFigures& figures, Page& page) {
  page.lead.insert(page.lead.begin(), waits_summary(figures) + " " + heap_summary(figures));
  for (const std::string& note : figures.notes) page.notes.push_back(note);
}

}  // namespace

std::string trace_page(const Trace& trace) {
  Page page;
  page.data["report"] = trace_json(trace);
  add_trace(trace, page);
  return page_text(page);
}

std::string profile_page(const Trace* trace, ProfileFigures figures, const MemoryAdvice& advice,
                         const std::string& name, const ordered_json& contexts) {
  Page page;
  page.title = name;
  if (trace != nullptr) add_trace(*trace, page);
  add_profile(figures, page);
  page.data["stacks"] = stack_tree_json(stack_tree(figures.sites));
  page.data["left_out"] = leave_largest(figures);
  page.data["report"] = profile_report_json(trace, figures, advice);
  if (!contexts.is_null()) page.data["contexts"] = contexts;
  return page_text(page);
}

std::string contexts_page(const std::string& name, const std::string& lead, const ordered_json& contexts) {
  Page page;
  page.title = name;
  page.lead.push_back(lead);
  page.data["report"] = ordered_json{{"format", kJsonFormat}};
  page.data["contexts"] = contexts;
  return page_text(page);
}

std::string compared_page(const Comparison& comparison) {
  Page page;
  page.title = fmt::format("{} and {}", comparison.before, comparison.after);
  page.lead.emplace_back(comparison.is_worse ? "The second run is worse." : "The second run is not worse.");
  Comparison shown = comparison;
  if (shown.sites.size() > kMostRows) shown.sites.resize(kMostRows);
  page.data["comparison"] = compared_json(shown);
  return page_text(page);
}

}  // namespace farheap::tool
