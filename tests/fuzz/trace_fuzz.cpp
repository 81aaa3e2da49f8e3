// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes as a trace: refused with a line and a remedy, or shown in every form.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tool/report_forms.hpp"
#include "tool/trace_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace farheap::tool;
  const auto trace = parse_trace({reinterpret_cast<const char*>(data), size}, "bytes");
  if (!trace) {
    if (trace.error().remedy.empty() || trace.error().subject.find("bytes") == std::string::npos) std::abort();
    return 0;
  }
  const std::string page = report_html(*trace);
  if (report_text(*trace, true).empty() || page.find("<script") != std::string::npos) std::abort();
  if (page.find("=\"nan") != std::string::npos || page.find("=\"inf") != std::string::npos) std::abort();
  return 0;
}
