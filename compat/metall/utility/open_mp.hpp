// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// OpenMP where the compiler has it, one thread where not.
#pragma once

#include <string>
#include <utility>

#ifdef _OPENMP
#include <omp.h>
#endif

#define OPEN_MP_PRAGMA_OPERATOR(x) _Pragma(#x)
#ifdef _OPENMP
#define OMP_DIRECTIVE(directive) OPEN_MP_PRAGMA_OPERATOR(omp directive)
#else
#define OMP_DIRECTIVE(directive)
#endif

namespace metall::utility::omp {

#ifdef _OPENMP
using omp_sched_type = omp_sched_t;
#else
using omp_sched_type = int;
#endif

inline std::string schedule_kind_name([[maybe_unused]] omp_sched_type kind) {
#ifdef _OPENMP
  const auto plain = static_cast<unsigned>(kind) & 0x7fffffffU;  // the topmost bit: monotonic
  const std::string suffix = plain != static_cast<unsigned>(kind) ? " with omp_sched_monotonic" : "";
  switch (plain) {
    case omp_sched_static: return "omp_sched_static" + suffix;
    case omp_sched_dynamic: return "omp_sched_dynamic" + suffix;
    case omp_sched_guided: return "omp_sched_guided" + suffix;
    case omp_sched_auto: return "omp_sched_auto" + suffix;
    default: return "Unknown kind (" + std::to_string(plain) + ")" + suffix;
  }
#else
  return "OpenMP is not supported";
#endif
}

// The kind, and the size of a chunk.
inline std::pair<omp_sched_type, int> get_schedule() {
  std::pair<omp_sched_type, int> found{};
#ifdef _OPENMP
  ::omp_get_schedule(&found.first, &found.second);
#endif
  return found;
}

inline int get_num_threads() noexcept {
#ifdef _OPENMP
  return ::omp_get_num_threads();
#else
  return 1;
#endif
}

inline int get_thread_num() noexcept {
#ifdef _OPENMP
  return ::omp_get_thread_num();
#else
  return 0;
#endif
}

inline void set_num_threads([[maybe_unused]] int count) noexcept {
#ifdef _OPENMP
  ::omp_set_num_threads(count);
#endif
}

}  // namespace metall::utility::omp
