// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan that is wrong, made of one that may be right:
//
//   wrong_plan shuffled|reversed PLAN FILE
//
// shuffled: each part of an object is used when another one was, chance says which. reversed: what is used last is used
// first, of what happens once, and of the round.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>
#include <string_view>

#include "plan/plan.hpp"

namespace {

using namespace farheap;

void shuffle(plan::PlannedPhase& phase) {
  std::mt19937_64 random(1);
  std::vector<std::vector<plan::PlannedUse>*> parts;
  for (auto& object : phase.objects) {
    for (auto& part : object.parts) parts.push_back(&part);
  }
  for (std::size_t i = parts.size(); i > 1; --i) std::swap(*parts[i - 1], *parts[random() % i]);
}

void reverse(plan::PlannedPhase& phase) {
  for (auto& object : phase.objects) {
    for (auto& part : object.parts) {
      for (plan::PlannedUse& use : part) {
        use.time = use.time < phase.once ? phase.once - 1 - use.time : 2 * phase.once + phase.round - use.time;
      }
      std::ranges::sort(part, {}, &plan::PlannedUse::time);
    }
  }
}

int fail(std::string_view why) {
  fmt::print(stderr, "wrong_plan: {}\n", why);
  return 1;
}

}  // namespace

int main(int count, char** words) {
  const std::string_view how = count == 4 ? words[1] : "";
  if (how != "shuffled" && how != "reversed") return fail("say: wrong_plan shuffled|reversed PLAN FILE");
  const auto bytes = plan::plan_bytes(words[2]);
  if (!bytes) return fail(bytes.error().message());
  auto plan = plan::read_plan(*bytes, words[2]);
  if (!plan) return fail(plan.error().message());
  for (plan::PlannedPhase& phase : plan->phases) how == "shuffled" ? shuffle(phase) : reverse(phase);
  std::ofstream file(words[3], std::ios::binary | std::ios::trunc);
  file << plan::encode(*plan);
  file.close();
  return file ? 0 : fail(fmt::format("cannot write {}", words[3]));
}
