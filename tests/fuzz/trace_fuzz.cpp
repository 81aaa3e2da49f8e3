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
  if (report_text(*trace, true).empty()) std::abort();
  // Two scripts, the data and the program, and what they stand between: nothing that the trace says is markup.
  const std::string page = trace_page(*trace);
  const std::size_t begin = page.find("<script type=\"application/json\" id=\"data\">");
  const std::size_t program = page.find("</script>\n<script>");
  if (begin == std::string::npos || program == std::string::npos || page.find("<script") != begin) std::abort();
  if (page.find('<', begin + 1) != program) std::abort();
  return 0;
}
