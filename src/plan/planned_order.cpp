// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/planned_order.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/units.hpp"
#include "plan/strides.hpp"

namespace farheap::plan {

namespace {

using base::kPageBytes;
using pager::PageOrder;

constexpr std::uint64_t kBlockBytes = PageOrder::kBlockPages * kPageBytes;
constexpr double kMostOfTime = 0.125;  // a block is not passed in one go that takes a larger part of all

// A block is used from here to there; times of the phase.
struct Passing {
  double from = 0, to = 0;
  double longer = 0;  // pages that are used meanwhile, half of them before and half behind
  std::uint32_t block = 0;
  std::uint32_t first_page = 0;
  std::uint32_t pages = 0;
  bool is_strided = false;  // it goes on while others do that began at the same time
};

class Passings {
 public:
  explicit Passings(const PlannedPhase& phase) : phase_(phase), times_(phase.times()) {}

  void add(const LiveObject& live) {
    known_.clear();
    const PlannedObject& object = phase_.objects[live.object];
    for (std::size_t i = 0; i < object.parts.size(); ++i) {
      std::vector<Use> uses;
      for (const PlannedUse& use : object.parts[i])
        uses.push_back({static_cast<double>(use.time), static_cast<double>(use.pages)});
      known_.push_back({(static_cast<double>(i) + 0.5) / static_cast<double>(object.parts.size()), std::move(uses)});
    }
    const std::uint64_t end = live.first + live.bytes;
    for (std::uint64_t block = live.first / kBlockBytes; block * kBlockBytes < end; ++block) {
      const std::uint64_t from = std::max(live.first, block * kBlockBytes),
                          to = std::min(end, (block + 1) * kBlockBytes);
      add_block(static_cast<std::uint32_t>(block), from, to, live);
      for (const PlannedStride& stride : object.strides)
        add_strided(static_cast<std::uint32_t>(block), from, to, live, stride);
    }
  }

  // By their begins; what follows itself within `window` is one.
  [[nodiscard]] std::vector<Passing> sorted(double window) const {
    std::vector<Passing> all = all_;
    std::ranges::sort(all, [](const Passing& one, const Passing& other) {
      return std::pair(one.from, one.block) < std::pair(other.from, other.block);
    });
    std::vector<Passing> joined;
    std::unordered_map<std::uint32_t, std::size_t> latest;
    for (const Passing& one : all) {
      const auto [found, is_new] = latest.try_emplace(one.block, joined.size());
      const bool crosses =
          times_.round != 0 && !is_new && joined[found->second].from < times_.once && one.from >= times_.once;
      if (!is_new && !crosses && one.from <= joined[found->second].to + window) {
        joined[found->second].to = std::max(joined[found->second].to, one.to);
        joined[found->second].longer = std::max(joined[found->second].longer, one.longer);
        joined[found->second].is_strided |= one.is_strided;
        continue;
      }
      found->second = joined.size();
      joined.push_back(one);
    }
    return joined;
  }

 private:
  void add_block(std::uint32_t block, std::uint64_t from, std::uint64_t to, const LiveObject& live) {
    const auto place = [&](std::uint64_t byte) {
      return static_cast<double>(byte - live.first) / static_cast<double>(live.bytes);
    };
    const std::vector<Use> begins = uses_at(known_, place(from), times_), ends = uses_at(known_, place(to), times_);
    const auto page = static_cast<std::uint32_t>(from / kPageBytes % PageOrder::kBlockPages);
    const auto last_page = static_cast<std::uint32_t>((to - 1) / kPageBytes % PageOrder::kBlockPages);
    Passing one{.block = block, .pages = last_page - page + 1};
    for (std::size_t i = 0; i < begins.size(); ++i) {
      const double begin = begins[i].time, end = ends.size() == begins.size() ? ends[i].time : begin;
      const bool in_one_go =
          std::abs(end - begin) <= kMostOfTime * times_.end() && (begin < times_.once) == (end < times_.once);
      one.longer = begins[i].pages;
      one.first_page = begin <= end ? page : last_page;
      one.from = in_one_go ? std::min(begin, end) : begin;
      one.to = in_one_go ? std::max(begin, end) : begin;
      all_.push_back(one);
    }
  }

  // A block may lie in two pieces, at the end of one and at the begin of the next, or reach over whole ones.
  void add_strided(std::uint32_t block, std::uint64_t from, std::uint64_t to, const LiveObject& live,
                   const PlannedStride& stride) {
    const double piece = static_cast<double>(live.bytes) / stride.repeats;
    const double begin = std::fmod(static_cast<double>(from - live.first), piece);
    const double end = begin + static_cast<double>(to - from);
    const double begins = stride_time(stride, begin / piece), ends = stride_time(stride, end / piece);
    const double first = stride_time(stride, 0), last = stride_time(stride, 1);
    if (end - begin >= piece) {
      add_passing(block, from, to, first, last);
    } else if (end <= piece) {
      add_passing(block, from, to, begins, ends);
    } else {
      add_passing(block, from, to, begins, last);
      add_passing(block, from, to, first, stride_time(stride, (end - piece) / piece));
    }
  }

  void add_passing(std::uint32_t block, std::uint64_t from, std::uint64_t to, double begin, double end) {
    const auto page = static_cast<std::uint32_t>(from / kPageBytes % PageOrder::kBlockPages);
    const auto last_page = static_cast<std::uint32_t>((to - 1) / kPageBytes % PageOrder::kBlockPages);
    all_.push_back({.from = std::min(begin, end),
                    .to = std::max(begin, end),
                    .longer = 0,
                    .block = block,
                    .first_page = begin <= end ? page : last_page,
                    .pages = last_page - page + 1,
                    .is_strided = true});
  }

  [[nodiscard]] double stride_time(const PlannedStride& stride, double place) const {
    return std::clamp(time_at(stride.times, place), 0.0, times_.end());
  }

  const PlannedPhase& phase_;
  const PlanTimes times_;
  std::vector<KnownUses> known_;
  std::vector<Passing> all_;
};

}  // namespace

std::uint64_t most_visits(const PlannedPhase& phase, std::span<const LiveObject> objects) {
  std::uint64_t sum = 0;
  for (const LiveObject& live : objects) {
    std::size_t most = 0;
    for (const auto& uses : phase.objects[live.object].parts) most = std::max(most, uses.size());
    most += 2 * phase.objects[live.object].strides.size();  // a block may lie in two pieces
    sum += (live.bytes / kBlockBytes + 2) * most;
  }
  return sum;
}

// A pass across an object has a block of each piece in use at once; no more than all blocks.
static std::uint64_t side_by_side(const PlannedPhase& phase, std::span<const LiveObject> objects) {
  std::uint64_t pages = 0;
  for (const LiveObject& live : objects) {
    std::uint64_t pieces = 0;
    for (const PlannedStride& stride : phase.objects[live.object].strides) {
      pieces = std::max<std::uint64_t>(pieces, stride.repeats);
    }
    pages += std::min(pieces * PageOrder::kBlockPages, base::pages_for(live.bytes));
  }
  return pages;
}

// A moment is a page that is passed: the times of a phase only say what comes before what.
PageOrder order_of(const PlannedPhase& phase, std::span<const LiveObject> objects) {
  const PlanTimes times = phase.times();
  Passings passings(phase);
  for (const LiveObject& object : objects) passings.add(object);
  const std::vector<Passing> all = passings.sorted(phase.window);
  std::vector<PageOrder::Moment> begins;  // moments
  PageOrder::Moment now = 0;
  for (const Passing& one : all) {
    begins.push_back(now);
    now += one.pages;
  }
  const auto moment_at = [&](double time) {
    const auto behind = std::ranges::upper_bound(all, time, {}, &Passing::from) - all.begin();
    return behind == std::ssize(all) ? now : begins[static_cast<std::size_t>(behind)];
  };
  const auto begin_at = [&](const Passing& one) {
    const auto same = std::ranges::lower_bound(all, one.from, {}, &Passing::from) - all.begin();
    return begins[static_cast<std::size_t>(same)];
  };
  const auto behind_once = std::ranges::lower_bound(all, times.once, {}, &Passing::from) - all.begin();
  const std::size_t first_of_round = times.round != 0 ? static_cast<std::size_t>(behind_once) : all.size();
  const bool has_round = first_of_round < all.size();
  const PageOrder::Moment round_begins = has_round ? begins[first_of_round] : now;
  std::vector<PageOrder::Visit> visits;
  const auto add = [&](const Passing& one, PageOrder::Moment begins_at, PageOrder::Moment least,
                       PageOrder::Moment most) {
    const auto half = static_cast<PageOrder::Moment>(one.longer / 2);
    const PageOrder::Moment ends_at = std::max(begins_at + one.pages, moment_at(one.to)) + half;
    visits.push_back({.block = one.block,
                      .first = std::max(begins_at - std::min(begins_at, half), least),
                      .last = std::min(ends_at, most) - 1,
                      .first_page = one.first_page});
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool in_round = i >= first_of_round;
    add(all[i], all[i].is_strided ? begin_at(all[i]) : begins[i], in_round ? round_begins : 0,
        in_round ? now : round_begins);
  }
  const auto round_at = visits.begin() + static_cast<std::ptrdiff_t>(first_of_round);
  std::stable_sort(visits.begin(), round_at,
                   [](const auto& one, const auto& other) { return one.first < other.first; });
  std::stable_sort(round_at, visits.end(), [](const auto& one, const auto& other) { return one.first < other.first; });
  const double moments_a_time = times.end() > 0 ? static_cast<double>(now) / times.end() : 0;
  PageOrder order(
      std::max<PageOrder::Moment>(phase.window_pages, static_cast<PageOrder::Moment>(phase.unsure * moments_a_time)));
  for (const PageOrder::Visit& visit : visits) order.add_visit(visit);
  order.finish(has_round ? first_of_round : PageOrder::kNone, now - round_begins);
  order.set_side_by_side(side_by_side(phase, objects));
  return order;
}

}  // namespace farheap::plan
