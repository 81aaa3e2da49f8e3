// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A profile for pprof (https://github.com/google/pprof, proto/profile.proto) and all that reads its files. A sample has
// one of two stacks:
//
//   where a thread waited    `faults`, `read` (bytes), `stall` (nanoseconds): the instruction, and the call that led to
//                            it from another file; the label `allocated_at` names the site whose pages it waited for
//   what called for memory   `alloc_objects`, `alloc_space`, `inuse_space` (at the end), `peak_space`, and
//   `site_stall`,
//                            how long threads waited for what was allocated there
//
// The numbers are those of profile_json(): waiting is told in proportion to the exact sum.
//
// Thread-safety: pure functions, but for CodeNames.
#pragma once

#include <string>

#include "code_names.hpp"
#include "profile/profile.hpp"
#include "profile_figures.hpp"

namespace farheap::tool {

// The bytes of a file, gzipped where the build can. `figures`: of the same profile. `seconds`: how long the run took;
// 0: not known.
[[nodiscard]] std::string profile_pprof(const profile::Profile& profile, CodeNames& names,
                                        const ProfileFigures& figures, double seconds);

}  // namespace farheap::tool
