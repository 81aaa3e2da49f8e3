// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap report FILE: what a recorded run did over time, and, of a profile, where.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/environment.hpp"
#include "base/units.hpp"
#include "context_forms.hpp"
#include "context_page.hpp"
#include "output_file.hpp"
#include "pprof_form.hpp"
#include "profile_forms.hpp"
#include "recording_folder.hpp"
#include "report_compare.hpp"
#include "report_forms.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace farheap::tool {
namespace {

// As the C library decides it: the first of the three that is set.
bool terminal_is_utf8() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = base::environment(name);
    if (value == nullptr || *value == '\0') continue;
    std::string text(value);
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

// Nothing for no page.
Status write_page_of(const ReportArguments& arguments, const std::function<std::string()>& page) {
  if (arguments.html.empty()) return {};
  if (Status written = write_output(arguments.html, page(), "cannot write the page"); !written) return written;
  say(fmt::format("the page is in {}; any browser opens it", arguments.html));
  return {};
}

// Does nothing where none is asked for.
Status write_pprof_of(const ReportArguments& arguments, const std::function<std::string()>& pprof) {
  if (arguments.pprof.empty()) return {};
  if (Status written = write_output(arguments.pprof, pprof(), "cannot write the profile for pprof"); !written) {
    return written;
  }
  say(fmt::format("`go tool pprof -http : {}` shows it, or any other pprof", shell_word(arguments.pprof)));
  return {};
}

int report_trace(const Trace& trace, const ReportArguments& arguments) {
  if (const auto written = write_page_of(arguments, [&] { return trace_page(trace); }); !written) {
    complain(written.error());
    return kFailed;
  }
  if (arguments.json) {
    print_out("{}\n", json_text(trace_json(trace)));
  } else if (arguments.html.empty()) {
    print_out("{}", report_text(trace, terminal_is_utf8()));
  }
  return kDone;
}

Result<Weight> weight_of(const std::string& word) {
  if (word.empty() || word == "waits") return Weight::kWaits;
  if (word == "peak") return Weight::kPeak;
  if (word == "allocated") return Weight::kAllocated;
  return fail(ErrorCode::kInvalidArgument, "unknown weight", word, "", "there are waits, peak and allocated");
}

// The user asks for something that is made of stacks.
bool has_stacks(const ReportArguments& arguments) {
  return arguments.folded || arguments.speedscope || !arguments.pprof.empty() || !arguments.weight.empty();
}

// Of a program that counted for itself: nothing else is known, no stacks either.
int report_contexts(const profile::Profile& profile, CodeNames& names, const ReportArguments& arguments) {
  if (has_stacks(arguments)) {
    return wrong_usage(
        Error{ErrorCode::kInvalidArgument, "the profile has contexts alone", arguments.file, "",
              "text, --html and --json show them; `farheap record` makes a profile that has stacks and a trace"});
  }
  const auto page = [&] {
    return contexts_page(arguments.file, contexts_summary(profile), contexts_page_json(profile, names));
  };
  if (const auto written = write_page_of(arguments, page); !written) {
    complain(written.error());
    return kFailed;
  }
  if (arguments.json) {
    print_out("{}\n", json_text({{"format", kJsonFormat}, {"contexts", contexts_json(profile, names)}}));
  } else if (arguments.html.empty()) {
    print_out("{}", contexts_text(profile, names));
  }
  return kDone;
}

// The trace inside is that of the same run; a recording that was killed at once may have none.
int report_profile(const ReportArguments& arguments) {
  const auto weight = weight_of(arguments.weight);
  if (!weight) return wrong_usage(weight.error());
  const auto profile = load_profile(arguments.file);
  if (!profile) {
    complain(profile.error());
    return kFailed;
  }
  CodeNames names(profile->files);
  if (has_only_contexts(*profile)) return report_contexts(*profile, names, arguments);
  const ProfileFigures figures = figures_of(*profile, names);
  if (arguments.folded) return print_out("{}", profile_folded(figures, *weight)), kDone;
  if (arguments.speedscope) return print_out("{}", profile_speedscope(figures, arguments.file)), kDone;
  const auto trace = parse_trace(profile->trace, arguments.file);
  const Trace* const run = trace ? &*trace : nullptr;
  const double seconds = run != nullptr ? run->last().seconds : 0;
  const MemoryAdvice advice = memory_advice(*profile, seconds);
  Status written = write_page_of(arguments, [&] {
    return profile_page(run, figures, advice, arguments.file, contexts_page_json(*profile, names));
  });
  if (written) {
    written = write_pprof_of(arguments, [&] { return profile_pprof(*profile, names, figures, seconds); });
  }
  if (!written) {
    complain(written.error());
    return kFailed;
  }
  if (arguments.json) {
    auto report = profile_report_json(run, figures, advice);
    if (has_contexts(*profile)) report["contexts"] = contexts_json(*profile, names);
    print_out("{}\n", json_text(report));
  } else if (arguments.html.empty() && arguments.pprof.empty()) {
    if (run != nullptr) print_out("{}\n", report_text(*run, terminal_is_utf8()));
    print_out("{}{}{}{}", profile_text(figures), advice_text(advice), plan_text(advice),
              contexts_text(*profile, names));
  }
  return kDone;
}

std::string figure_text(const ComparedFigure& figure, double value) {
  if (figure.unit == "bytes") return base::format_size(static_cast<std::uint64_t>(value));
  return figure.unit == "accesses" ? fmt::format("{:.0f}", value) : fmt::format("{:.2f} s", value);
}

std::string signed_size(double bytes) {
  return (bytes < 0 ? "-" : "+") + base::format_size(static_cast<std::uint64_t>(std::abs(bytes)));
}

std::string compared_text(const Comparison& comparison) {
  std::vector<std::vector<std::string>> rows{{"", "before", "after", "change", ""}};
  for (const ComparedFigure& one : comparison.figures) {
    rows.push_back({one.name, figure_text(one, one.before), figure_text(one, one.after),
                    std::isinf(one.change) ? "new" : fmt::format("{:+.0f} %", one.change * 100),
                    one.is_worse ? "WORSE" : ""});
  }
  constexpr std::size_t kSitesShown = 10;
  std::vector<std::vector<std::string>> sites{
      {comparison.is_counted ? "accesses" : "waited", "peak", "what was allocated at"}};
  for (const ComparedSite& one : comparison.sites) {
    if (sites.size() > kSitesShown) break;
    sites.push_back(
        {comparison.is_counted ? fmt::format("{:+.0f}", one.accesses) : fmt::format("{:+.2f} s", one.stall_seconds),
         signed_size(one.peak_bytes), printable(one.site)});
  }
  return aligned(rows) + (sites.size() == 1 ? "" : "\n" + aligned(sites));
}

// For machines that ask whether it became worse: the status says it.
int report_compared(const ReportArguments& arguments) {
  const auto before = compared_run(arguments.file), after = compared_run(arguments.other);
  for (const auto* run : {&before, &after}) {
    if (*run) continue;
    complain(run->error());
    return kUsage;  // kFailed says that it became worse
  }
  if (Status alike = check_of_a_kind(*before, *after); !alike) {
    complain(alike.error());
    return kUsage;
  }
  Comparison comparison{.before = arguments.file, .after = arguments.other, .is_counted = before->is_counted};
  comparison.figures = compare(*before, *after, arguments.tolerance / 100);
  comparison.is_worse = std::ranges::any_of(comparison.figures, &ComparedFigure::is_worse);
  comparison.sites = compare_sites(*before, *after);
  if (const auto written = write_page_of(arguments, [&] { return compared_page(comparison); }); !written) {
    complain(written.error());
    return kUsage;
  }
  if (arguments.json) {
    print_out("{}\n", json_text(compared_json(comparison)));
  } else if (arguments.html.empty()) {
    print_out("{}", compared_text(comparison));
  }
  return comparison.is_worse ? kFailed : kDone;
}

Status check_words(const ReportArguments& arguments) {
  const int forms = arguments.json + arguments.folded + arguments.speedscope;
  const bool is_wrong = forms > 1 || (!arguments.weight.empty() && !arguments.folded) ||
                        (!arguments.pprof.empty() && (arguments.folded || arguments.speedscope)) ||
                        (arguments.compare && has_stacks(arguments)) || !(arguments.tolerance >= 0);
  if (is_wrong) {
    return fail(ErrorCode::kInvalidArgument, "words that do not go together", "farheap report", "",
                "`farheap report --help` says what does");
  }
  if (arguments.compare != arguments.other.empty()) return {};
  return fail(ErrorCode::kInvalidArgument, arguments.compare ? "nothing to compare with" : "one file too many",
              arguments.compare ? arguments.file : arguments.other, "",
              "farheap report --compare BEFORE AFTER compares two runs");
}

}  // namespace

int report(const ReportArguments& arguments) {
  if (const auto words = check_words(arguments); !words) return wrong_usage(words.error());
  if (arguments.compare) return report_compared(arguments);
  if (is_profile(arguments.file)) return report_profile(arguments);
  if (const Status is_none = check_no_plan(arguments.file); !is_none) {
    complain(is_none.error());
    return kFailed;
  }
  if (has_stacks(arguments)) {
    return wrong_usage(Error{ErrorCode::kInvalidArgument, "a trace has no stacks", arguments.file, "",
                             "`farheap record -o FILE -- PROGRAM` makes a profile, which has"});
  }
  if (access(arguments.file.c_str(), F_OK) != 0) {
    complain(errno_error(errno, "cannot read a profile or a trace", arguments.file,
                         "`farheap record -o FILE -- PROGRAM` makes a profile, `farheap run --trace FILE` a trace"));
    return kFailed;
  }
  const auto trace = read_trace(arguments.file);
  if (!trace) {
    complain(trace.error());
    return kFailed;
  }
  return report_trace(*trace, arguments);
}

}  // namespace farheap::tool
