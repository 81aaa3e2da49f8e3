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
  // Of a program that counted for itself (farcc -ffar=record): seconds, these, and sites are all that is known.
  bool is_counted = false;
  double reads = 0, writes = 0;
  struct Site {
    double peak_bytes = 0, stall_seconds = 0, accesses = 0;
  };
  std::map<std::string, Site> sites;  // by line; only profiles have them
};

// Of a profile, the parts of one, a trace, or what `farheap run --stats=json` printed.
[[nodiscard]] Result<ComparedRun> compared_run(const std::string& file);
// A run that was counted has no figure that one of another kind has, and took longer because it counted.
[[nodiscard]] Status check_of_a_kind(const ComparedRun& before, const ComparedRun& after);

struct ComparedFigure {
  std::string name, unit;
  double before = 0, after = 0;
  double change = 0;      // of the first; 0: as much
  bool is_worse = false;  // by more than the tolerance, and by enough to matter
};
// What counts: seconds, waiting, bytes read and written, the peak; of counted runs seconds, reads and writes.
// `tolerance`: 0.1 is a tenth. Less than 50 ms or 1 MiB does not matter. Requires: check_of_a_kind() is content.
[[nodiscard]] std::vector<ComparedFigure> compare(const ComparedRun& before, const ComparedRun& after,
                                                  double tolerance);
// How much more the second run had of what was allocated there.
struct ComparedSite {
  std::string site;
  double stall_seconds = 0, accesses = 0, peak_bytes = 0;  // stall_seconds or accesses, as the runs are
};
// Those that changed by enough to matter, most first: by waiting or accesses, then by peak. None where a run has no
// sites.
[[nodiscard]] std::vector<ComparedSite> compare_sites(const ComparedRun& before, const ComparedRun& after);

struct Comparison {
  std::string before, after;  // files
  bool is_worse = false;
  bool is_counted = false;  // both
  std::vector<ComparedFigure> figures;
  std::vector<ComparedSite> sites;
};

}  // namespace farheap::tool
