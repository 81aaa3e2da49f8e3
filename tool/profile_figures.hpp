// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A profile in figures that people read: which lines of the source waited for pages, which sites allocated them. All
// processes of the run are added up.
//
// Thread-safety: pure functions, but for CodeNames.
#pragma once

#include <string>
#include <vector>

#include "code_names.hpp"
#include "profile/profile.hpp"

namespace farheap::tool {

struct Waits {
  double faults = 0, seconds = 0;
  std::uint64_t bytes_read = 0;
  Waits& operator+=(const Waits& other);
};

// Where memory was allocated. The stack's outermost frame comes first; what belongs to the allocation itself (operator
// new, this runtime) is left out of it.
struct SiteFigures {
  std::string site;                                                   // its line: the innermost frame
  std::vector<std::string> stack;                                     // names of functions with their lines
  double objects = 0;                                                 // made
  std::uint64_t allocated_bytes = 0, live_bytes = 0, peak_bytes = 0;  // live: at the end
  double touched = 0;                                                 // the share of all touches that were seen
  Waits waits;
};

// Where threads waited.
struct LineFigures {
  std::string line;
  Waits waits;
  std::string most_for;  // the site whose pages it waited for longest
  double most_for_share = 0;
  std::vector<std::string> most_for_stack;  // of the site, the one that was waited for longest
};

// What the process that used its pages most used when (plan/use_phases.hpp).
struct PhaseFigures {
  struct Phase {
    std::uint32_t visits = 0;
    std::uint64_t uses = 0;
    std::vector<std::uint64_t> of_site;  // of them; as many as sites
  };
  int process = 0;
  std::uint64_t pages_for_one = 0;   // that a sampled page stands for
  std::vector<std::string> sites;    // of large objects, the most used first; the last: kOtherMemory
  std::vector<Phase> phases;         // in the order in which they came first; none: too little is known
  std::vector<std::uint32_t> order;  // numbers of phases, as they came
};
inline constexpr char kOtherMemory[] = "other memory";

struct ProfileFigures {
  Waits all;                 // exact
  Waits in_sample;           // what the lines and sites add up to: an estimate of the same
  double without_place = 0;  // share of what was looked at whose line the kernel did not tell
  std::size_t processes = 0;
  bool is_attached = false;        // of one at least: what was allocated before is in no figures
  std::uint64_t peak_bytes = 0;    // of all processes, added up
  std::vector<LineFigures> lines;  // longest first
  std::vector<SiteFigures> sites;  // by waiting, then by peak
  PhaseFigures phases;
  std::vector<std::string> notes;  // what is missing, and why
};
[[nodiscard]] ProfileFigures figures_of(const profile::Profile& profile, CodeNames& names);

inline constexpr char kNoSite[] = "memory of no known site";

}  // namespace farheap::tool
