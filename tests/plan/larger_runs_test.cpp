// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that are made up are seen as the sampler would see them, and planned. What the plan says of a larger run is
// held beside what that run does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "plan/planned_order.hpp"
#include "plan/planner.hpp"
#include "seen_program.hpp"

namespace farheap::plan {
namespace {

using pager::PageOrder;

// Prepares its objects once, and goes through phases then: sweeps over some of them, side by side.
struct Program {
  struct Phase {
    std::vector<std::size_t> objects;
    bool forwards = true;
  };
  std::vector<std::uint64_t> sizes;  // in pages, of the small run
  std::vector<Phase> phases;

  explicit Program(std::mt19937& random) {
    for (unsigned i = 2 + random() % 3; i > 0; --i) sizes.push_back(2000 + random() % 4000);
    for (std::size_t i = 0; i < sizes.size() || phases.size() < 2; ++i) {
      Phase phase{{i % sizes.size()}, random() % 2 == 0};
      if (random() % 2 == 0) phase.objects.push_back((i + 1) % sizes.size());
      phases.push_back(phase);
    }
    // Two phases that are alike would be two rounds.
    if (sizes.size() == 2 && phases[0].objects.size() == phases[1].objects.size())
      phases[1].forwards = !phases[0].forwards;
  }
  [[nodiscard]] std::vector<Object> objects(std::uint64_t scale) const {
    std::vector<Object> all;
    std::uint64_t at = 64 * scale;
    for (const std::uint64_t size : sizes) {
      all.push_back({at, size * scale});
      at += (size * scale / 64 + 2) * 64;
    }
    return all;
  }
  static void prepare(const std::vector<Object>& all, const UsePage& use) {
    for (const Object& object : all) forwards(object, use);
  }
  void round(const std::vector<Object>& all, const UsePage& use) const {
    for (const Phase& phase : phases) {
      std::uint64_t steps = 0;
      for (const std::size_t one : phase.objects) steps = std::max(steps, all[one].pages);
      for (std::uint64_t i = 0; i < steps; ++i) {
        const double place =
            (static_cast<double>(phase.forwards ? i : steps - 1 - i) + 0.5) / static_cast<double>(steps);
        for (const std::size_t one : phase.objects) use(all[one].at(place));
      }
    }
  }
};

// When in the whole, from 0 to 1, each block comes to be used.
using Moments = std::map<std::uint32_t, std::vector<double>>;

Moments moments_of(const std::function<void(const UsePage&)>& run) {
  constexpr std::uint64_t kSame = 4 * PageOrder::kBlockPages;  // uses in between
  std::map<std::uint32_t, std::uint64_t> latest;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> begins;
  std::uint64_t now = 0;
  PageNumber before = ~PageNumber{0};
  run([&](PageNumber page) {
    if (page == before) return;
    before = page;
    const std::uint32_t block = PageOrder::block_of(page);
    const auto [found, is_new] = latest.try_emplace(block, now);
    if (is_new || now - found->second > kSame) begins.emplace_back(block, now);
    found->second = now++;
  });
  Moments all;
  for (const auto& [block, moment] : begins)
    all[block].push_back(static_cast<double>(moment) / static_cast<double>(now));
  return all;
}

Moments moments_in(const PageOrder& order, bool of_round) {
  Moments all;
  const auto visits = order.visits();
  const std::size_t round = order.has_round() ? order.round() : visits.size();
  const PageOrder::Moment first = of_round ? visits[round].first : 0;
  const PageOrder::Moment end = of_round            ? order.visit(visits.size()).first
                                : order.has_round() ? visits[round].first
                                                    : 0;
  for (std::size_t i = of_round ? round : 0; i < (of_round ? visits.size() : round); ++i) {
    all[visits[i].block].push_back(static_cast<double>(visits[i].first - first) / static_cast<double>(end - first));
  }
  return all;
}

// The share of what truly happens that is told within so much; the round may begin anywhere.
double share_right(const Moments& truth, const Moments& told, double within, double turned) {
  std::size_t right = 0, all = 0;
  for (const auto& [block, moments] : truth) {
    const auto found = told.find(block);
    for (const double moment : moments) {
      ++all;
      if (found == told.end()) continue;
      right += std::ranges::any_of(found->second, [&](double one) {
        const double off = one + turned - moment;
        return std::abs(off - std::round(off)) <= within;
      });
    }
  }
  return static_cast<double>(right) / static_cast<double>(all);
}

double share_right_anywhere(const Moments& truth, const Moments& told, double within) {
  double best = 0;
  for (double turned = 0; turned < 1; turned += 0.005) best = std::max(best, share_right(truth, told, within, turned));
  return best;
}

std::size_t count(const Moments& all) {
  std::size_t sum = 0;
  for (const auto& [block, moments] : all) sum += moments.size();
  return sum;
}

// Loops of programs that chance made up, one after the other: each phase's order is that of its loop.
TEST(LargerRuns, EachPhaseGoesAsItsLoopDoes) {
  std::mt19937 random(11);
  for (int i = 0; i < 8; ++i) {
    const Program programs[] = {Program(random), Program(random)};
    Seen seen(4);
    const UsePage use = [&](PageNumber page) { seen.use(page); };
    std::vector<std::vector<Object>> objects;
    std::uint64_t site = 0, shift = 0;
    for (const Program& program : programs) {
      objects.push_back(program.objects(1));
      for (Object& object : objects.back()) {
        object.first += shift;
        (void)seen.born(seen.site({++site}), object);
      }
      shift = objects.back().back().first + objects.back().back().pages + 64;
    }
    for (std::size_t k = 0; k < objects.size(); ++k) {
      std::uint64_t pages = 0;
      for (const Object& object : objects[k]) pages += object.pages;
      Program::prepare(objects[k], use);
      for (std::uint64_t used = 0; used < 200'000; used += pages) programs[k].round(objects[k], use);
    }
    const Plan plan = planned(seen);
    ASSERT_EQ(plan.phases.size(), 2u) << "program " << i;
    std::size_t first_site = 0;
    for (std::size_t k = 0; k < 2; ++k) {
      const PlannedPhase& phase = plan.phases[k];
      std::vector<LiveObject> live;
      for (std::uint32_t n = 0; n < phase.objects.size(); ++n) {
        const std::size_t one = plan.sites[phase.objects[n].site][0].offset - 1 - first_site;
        if (one >= objects[k].size()) continue;  // of the other loop, at its end or begin
        live.push_back({n, objects[k][one].first * kPage, objects[k][one].pages * kPage});
      }
      ASSERT_EQ(live.size(), objects[k].size()) << "program " << i;
      first_site += objects[k].size();
      const PageOrder order = order_of(phase, live);
      ASSERT_TRUE(order.has_round()) << "program " << i;
      const Moments truth = moments_of([&](const UsePage& each) { programs[k].round(objects[k], each); });
      EXPECT_GE(share_right_anywhere(truth, moments_in(order, true), 0.04), 0.85) << "program " << i << ", loop " << k;
    }
  }
}

TEST(LargerRuns, ALargerRunGoesAsThePlanOfASmallOneSays) {
  std::mt19937 random(7);
  for (int i = 0; i < 12; ++i) {
    const Program program(random);
    Seen seen(4);
    const std::vector<Object> small = program.objects(1);
    for (std::size_t k = 0; k < small.size(); ++k) (void)seen.born(seen.site({k + 1}), small[k]);
    const UsePage use = [&](PageNumber page) { seen.use(page); };
    Program::prepare(small, use);
    for (int round = 0; round < 6; ++round) program.round(small, use);
    const Plan plan = planned(seen);
    ASSERT_NE(plan.phases.at(0).round, 0u) << "program " << i;
    EXPECT_EQ(plan.phases.at(0).objects.size(), small.size());

    for (const std::uint64_t scale : {1, 4}) {
      const std::vector<Object> objects = program.objects(scale);
      std::vector<LiveObject> live;
      for (std::uint32_t k = 0; k < plan.phases.at(0).objects.size(); ++k) {
        const auto one = static_cast<std::size_t>(plan.sites[plan.phases.at(0).objects[k].site][0].offset - 1);
        live.push_back({k, objects[one].first * kPage, objects[one].pages * kPage});
      }
      const PageOrder order = order_of(plan.phases.at(0), live);
      ASSERT_TRUE(order.has_round()) << "program " << i;
      const Moments truth = moments_of([&](const UsePage& each) { program.round(objects, each); });
      const Moments told = moments_in(order, true);
      constexpr double kWithin = 0.03;  // of the round
      EXPECT_GE(share_right_anywhere(truth, told, kWithin), 0.9) << "program " << i << ", size " << scale;
      EXPECT_NEAR(static_cast<double>(count(told)), static_cast<double>(count(truth)),
                  0.2 * static_cast<double>(count(truth)))
          << "program " << i << ", size " << scale;
    }
  }
}

}  // namespace
}  // namespace farheap::plan
