// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The forms of a report: text for a terminal, JSON for machines, and one page of HTML that needs nothing from
// elsewhere. The page shows the numbers of the JSON, which it has inside.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "memory_advice.hpp"
#include "profile_figures.hpp"
#include "report_compare.hpp"
#include "run_report.hpp"
#include "trace_series.hpp"

namespace farheap::tool {

// What the report at the end of the run said, as far as the trace goes.
[[nodiscard]] RunSummary summary_of(const Trace& trace);
// Whether the recording is whole; nothing if it is.
[[nodiscard]] std::string cut_off_note(const Trace& trace);

// `unicode`: blocks for the plots, otherwise ASCII.
[[nodiscard]] std::string report_text(const Trace& trace, bool unicode);

[[nodiscard]] nlohmann::ordered_json trace_json(const Trace& trace);
// `trace`: of the same run; null where a recording was killed at once.
[[nodiscard]] nlohmann::ordered_json profile_report_json(const Trace* trace, const ProfileFigures& figures,
                                                         const MemoryAdvice& advice);
[[nodiscard]] nlohmann::ordered_json compared_json(const Comparison& comparison);
// Replaces bytes that are not UTF-8.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& json);

[[nodiscard]] std::string trace_page(const Trace& trace);
// `name`: of the file. `contexts`: contexts_page_json(); null where none were counted.
[[nodiscard]] std::string profile_page(const Trace* trace, ProfileFigures figures, const MemoryAdvice& advice,
                                       const std::string& name, const nlohmann::ordered_json& contexts);
// The page of a program that counted for itself. `lead`: contexts_summary().
[[nodiscard]] std::string contexts_page(const std::string& name, const std::string& lead,
                                        const nlohmann::ordered_json& contexts);
[[nodiscard]] std::string compared_page(const Comparison& comparison);

}  // namespace farheap::tool
