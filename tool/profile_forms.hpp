// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The forms in which a profile is shown and handed to other tools.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "memory_advice.hpp"
#include "profile_figures.hpp"

namespace farheap::tool {

// "Threads waited 2.10 s for 1091 pages. 3 lines cost 91 % of that."
[[nodiscard]] std::string waits_summary(const ProfileFigures& figures);
// "Its heap held about 136.1 MiB at the most."
[[nodiscard]] std::string heap_summary(const ProfileFigures& figures);
[[nodiscard]] std::string profile_text(const ProfileFigures& figures);
[[nodiscard]] nlohmann::ordered_json profile_json(const ProfileFigures& figures);

[[nodiscard]] std::string advice_text(const MemoryAdvice& advice);
// The plan in words under a heading; nothing where none is made.
[[nodiscard]] std::string plan_text(const MemoryAdvice& advice);
[[nodiscard]] nlohmann::ordered_json advice_json(const MemoryAdvice& advice);

// Of sites' stacks: what a tool for flame graphs is to draw.
enum class Weight { kWaits, kPeak, kAllocated };
// "outermost;...;innermost NUMBER" a line: microseconds of waiting, or bytes.
[[nodiscard]] std::string profile_folded(const ProfileFigures& figures, Weight weight);
// For speedscope (https://www.speedscope.app/file-format-schema.json): a profile for each weight.
[[nodiscard]] std::string profile_speedscope(const ProfileFigures& figures, const std::string& name);

}  // namespace farheap::tool
