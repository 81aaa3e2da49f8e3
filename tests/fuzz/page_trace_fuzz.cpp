// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes as a page trace: refused, or entries that mean the same when they are written again.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "profile/page_trace.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace farheap::profile;
  const auto trace = read_page_trace({reinterpret_cast<const std::byte*>(data), size});
  if (!trace) {
    if (trace.error().message().empty()) std::abort();
    return 0;
  }
  const auto header = trace->header.words();
  std::vector<std::uint32_t> words(header.begin(), header.end());
  for (const PageTraceEntry& entry : trace->entries) words.push_back(pack(entry));
  const auto again = read_page_trace(std::as_bytes(std::span(words)));
  if (!again || again->entries != trace->entries) std::abort();
  return 0;
}
