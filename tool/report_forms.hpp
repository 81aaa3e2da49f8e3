// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The forms of a report on a trace: text for a terminal, and one page of HTML that needs nothing from elsewhere.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "run_report.hpp"
#include "trace_series.hpp"

namespace farheap::tool {

// What the report at the end of the run said, as far as the trace goes.
[[nodiscard]] RunSummary summary_of(const Trace& trace);
// Whether the recording is whole; nothing if it is.
[[nodiscard]] std::string cut_off_note(const Trace& trace);

// `unicode`: blocks for the plots, otherwise ASCII.
[[nodiscard]] std::string report_text(const Trace& trace, bool unicode);
[[nodiscard]] std::string report_html(const Trace& trace);

}  // namespace farheap::tool
