// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stands for the runtime in tests of the command: reports in, with figures that the report at the end must show.
#include <cstdlib>

#include "base/run_page.hpp"

__attribute__((constructor)) static void report_in() {
  farheap::base::RunPage* const page = farheap::base::find_run_page(std::getenv(farheap::base::kRunPageVariable));
  if (page == nullptr) return;
  auto& counters = page->counters;
  counters.processes += 1;
  counters.paging_processes += 1;
  counters.faults += 1000;
  counters.faults_store += 600;
  counters.bytes_read += 3 << 20;
  counters.peak_bytes = page->budget_bytes.load() / 2;
}
