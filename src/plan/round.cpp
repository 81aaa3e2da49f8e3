// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/round.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace farheap::plan {

namespace {

constexpr std::size_t kUsesBack = 8;       // a page is used at most so often in a round that is found
constexpr std::size_t kCandidates = 16;    // lengths that are looked at closely
constexpr double kComesAgain = 0.6;        // so many of a round's uses come again in the next one
constexpr double kAsGood = 0.95;           // a shorter round is the one, if it is so nearly as good as the best
constexpr std::uint32_t kPieces = 4;       // of a round: in each of them the uses have to come again
constexpr std::uint32_t kLeastRounds = 3;  // fewer could be chance

using Times = std::unordered_map<std::uint32_t, std::vector<std::uint32_t>>;

Times times_of_pages(std::span<const TimedUse> uses) {
  Times times;
  for (const TimedUse& use : uses) times[use.page].push_back(use.time);
  return times;
}

// Lengths after which many pages are used again, the most frequent first. Nothing shorter than memory's turnover is a
// round: what is used again at once is in memory anyway.
std::vector<std::uint32_t> candidates(const Times& times, std::uint32_t end, std::uint32_t near) {
  const std::uint32_t step = std::max<std::uint32_t>(near / 2, 1);
  std::vector<std::uint32_t> votes(end / step + 1);
  for (const auto& [page, all] : times) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t k = 1; k <= kUsesBack && k <= i; ++k) ++votes[(all[i] - all[i - k]) / step];
    }
  }
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 2; i < votes.size() && i * step <= end / kLeastRounds; ++i) {
    if (votes[i] != 0) found.push_back(i);
  }
  std::ranges::sort(found, std::greater{}, [&](std::uint32_t i) { return votes[i]; });
  if (found.size() > kCandidates) found.resize(kCandidates);
  for (std::uint32_t& one : found) one = one * step + step / 2;
  return found;
}

// The mean of the distances that are near to it: what the candidates' steps are too coarse for.
std::uint32_t refined(const Times& times, std::uint32_t length, std::uint32_t near) {
  double sum = 0;
  std::uint64_t count = 0;
  for (const auto& [page, all] : times) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t k = 1; k <= kUsesBack && k <= i; ++k) {
        const std::uint32_t distance = all[i] - all[i - k];
        if (distance + near < length || distance > length + near) continue;
        sum += distance;
        ++count;
      }
    }
  }
  return count == 0 ? length : static_cast<std::uint32_t>(std::lround(sum / static_cast<double>(count)));
}

struct Zone {
  std::uint32_t first = 0, end = 0;  // pieces in which uses are repeated
  double share = 0;                  // of all uses, repeated in it
};

// The stretch of pieces in which most uses are repeated that has most of them. (Not the longest one: while none of
// these pages is used, all of none are repeated.)
Zone zone_of(std::span<const TimedUse> uses, const std::vector<bool>& again, std::uint32_t end, std::uint32_t piece) {
  std::vector<std::uint32_t> all(end / piece + 1), good(end / piece + 1);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    ++all[uses[i].time / piece];
    good[uses[i].time / piece] += again[i] ? 1 : 0;
  }
  Zone best, now;
  std::uint64_t most = 0, repeated = 0;
  const auto close = [&](std::uint32_t at) {
    now.end = at;
    if (repeated > most) {
      best = now;
      most = repeated;
    }
  };
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (good[i] >= kComesAgain * all[i]) {
      repeated += good[i];
      continue;
    }
    close(i);
    now.first = i + 1;
    repeated = 0;
  }
  close(static_cast<std::uint32_t>(all.size()));
  best.share = uses.empty() ? 0 : static_cast<double>(most) / static_cast<double>(uses.size());
  return best;
}

}  // namespace

std::vector<bool> repeated(std::span<const TimedUse> uses, std::uint32_t length, std::uint32_t near) {
  const Times times = times_of_pages(uses);
  std::vector<bool> again(uses.size());
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const auto& all = times.at(uses[i].page);
    const std::uint32_t wanted = uses[i].time - std::min(uses[i].time, length + near);
    const auto found = std::ranges::lower_bound(all, wanted);
    again[i] = uses[i].time + near >= length && found != all.end() && *found + length <= uses[i].time + near &&
               *found < uses[i].time;
  }
  return again;
}

Round find_round(std::span<const TimedUse> uses, std::uint32_t end, std::uint32_t near) {
  const Times times = times_of_pages(uses);
  struct Found {
    std::uint32_t length;
    Zone zone;
  };
  std::vector<Found> found;
  double best = 0;
  for (const std::uint32_t coarse : candidates(times, end, near)) {
    const std::uint32_t length = refined(times, coarse, near);
    if (length <= 2 * near) continue;
    const Zone zone = zone_of(uses, repeated(uses, length, near), end, std::max(length / kPieces, 1u));
    if ((zone.end - zone.first) < (kLeastRounds - 1) * kPieces) continue;
    found.push_back({length, zone});
    best = std::max(best, zone.share);
  }
  const auto shorter = [](const Found& one, const Found& other) { return one.length < other.length; };
  std::ranges::sort(found, shorter);
  for (const Found& one : found) {
    if (one.zone.share < kAsGood * best) continue;
    // Of the rounds that repeat another one the first: the very first one may still do what is done once.
    const std::uint32_t piece = std::max(one.length / kPieces, 1u);
    const std::uint32_t begin = one.zone.first * piece;
    return {begin, one.length, std::min(end, one.zone.end * piece)};
  }
  return {};
}

}  // namespace farheap::plan
