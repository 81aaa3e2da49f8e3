// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two runs beside each other: did the second one become worse? For people, and for tests that run again and again.
//
// Thread-safety: pure functions, but for the files that they read.
#pragma once

#include <farheap/result.hpp>
#include <map>
#include <string>
#include <vector>

namespace farheap::tool {

struct ComparedRun {
  std::string file;
  double seconds = 0, stall_seconds = 0;
  double faults = 0, bytes_read = 0, bytes_written = 0, peak_bytes = 0;
  struct Site {
    double peak_bytes = 0, stall_seconds = 0;
  };
  std::map<std::string, Site> sites;  // by line; only profiles have them
};

// Of a profile, the parts of one, a trace, or what `farheap run --stats=json` printed.
[[nodiscard]] Result<ComparedRun> compared_run(const std::string& file);

struct ComparedFigure {
  std::string name, unit;
  double before = 0, after = 0;
  double change = 0;      // of the first; 0: as much
  bool is_worse = false;  // by more than the tolerance, and by enough to matter
};
// What counts: seconds, waiting, bytes read and written, the peak. `tolerance`: 0.1 is a tenth. Less than 50 ms or 1
// MiB does not matter.
[[nodiscard]] std::vector<ComparedFigure> compare(const ComparedRun& before, const ComparedRun& after,
                                                  double tolerance);
// How much more the second run had of what was allocated there.
struct ComparedSite {
  std::string site;
  double stall_seconds = 0, peak_bytes = 0;
};
// Those that changed by enough to matter, most first: by waiting, then by peak. None where a run has no sites.
[[nodiscard]] std::vector<ComparedSite> compare_sites(const ComparedRun& before, const ComparedRun& after);

struct Comparison {
  std::string before, after;  // files
  bool is_worse = false;
  std::vector<ComparedFigure> figures;
  std::vector<ComparedSite> sites;
};

}  // namespace farheap::tool
