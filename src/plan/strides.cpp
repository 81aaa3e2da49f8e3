// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/strides.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace farheap::plan {

namespace {

constexpr std::size_t kLeastUsesOfPass = 32;   // fewer tell by chance in how many pieces the object is
constexpr double kLeastOfPages = 0.5;          // of the object's that were seen: less is no pass through it
constexpr double kLeastTold = 0.75;            // of a pass's uses
constexpr double kMoreThanBeside = 0.15;       // ... and so much more than the pages beside them tell
constexpr double kSamePass = 4;                // times `near`: a page that is used again within it
constexpr double kFar = 4;                     // times `near`: errors are counted up to it
constexpr std::uint32_t kMostRepeats = 4096;   // that are tried
constexpr std::size_t kMostCompared = 512;     // uses, while they are tried
constexpr int kMostTries = 4;                  // passes of an object that are in no number of pieces: then no more
constexpr std::size_t kMostPartsOfPiece = 64;  // of which a piece has so many,
constexpr std::size_t kUsesOfPart = 8;         // or a part so many uses: one of them hardly moves their median
constexpr std::uint64_t kLeastPieceBytes = 8192;

struct SeenUse {
  std::uint64_t at;  // byte in the object
  std::uint32_t time;
};

struct Pass {
  std::vector<SeenUse> uses;  // the first one of each page
  std::uint32_t begin = 0, end = 0;
};

// A page that is used again much later is in another pass.
std::vector<Pass> passes_of(const ObjectLife& life, std::uint32_t near) {
  std::vector<SeenUse> uses;
  for (const auto& [byte, times] : life.uses) {
    for (const std::uint32_t time : times) uses.push_back({byte - life.first, time});
  }
  std::ranges::stable_sort(uses, {}, &SeenUse::time);
  std::vector<Pass> passes(1);
  std::unordered_map<std::uint64_t, std::uint32_t> used;  // in this pass, at last
  for (const SeenUse& use : uses) {
    const auto [found, is_new] = used.try_emplace(use.at, use.time);
    if (!is_new && use.time - found->second > kSamePass * near) {
      passes.push_back({{}, use.time, use.time});
      used.clear();
      used[use.at] = use.time;
    } else if (!is_new) {
      found->second = use.time;  // the same use still
      passes.back().end = use.time + 1;
      continue;
    }
    passes.back().uses.push_back(use);
    passes.back().end = use.time + 1;
  }
  return passes;
}

double place_of(const SeenUse& use, double piece) { return std::fmod(static_cast<double>(use.at), piece) / piece; }

// The times of a piece's parts: the medians of their uses. A part without any is used with the one before it.
std::vector<std::uint32_t> times_of_parts(std::span<const SeenUse> uses, double piece) {
  const std::size_t count = std::clamp(uses.size() / kUsesOfPart, std::size_t{1}, kMostPartsOfPiece);
  std::vector<std::vector<std::uint32_t>> parts(count);
  for (const SeenUse& use : uses) {
    const auto part = static_cast<std::size_t>(place_of(use, piece) * static_cast<double>(count));
    parts[std::min(part, count - 1)].push_back(use.time);
  }
  std::vector<std::uint32_t> times;
  for (auto& part : parts) {
    if (part.empty()) {
      times.push_back(times.empty() ? 0 : times.back());
      continue;
    }
    const auto median = part.begin() + std::ssize(part) / 2;
    std::ranges::nth_element(part, median);
    times.push_back(*median);
  }
  return times;
}

struct Told {
  std::size_t uses = 0;  // whose time is near to what is told
  double error = 0;      // of all, in the mean; what is not told by far is as wrong as what just is not
};

Told told_by(std::span<const std::uint32_t> times, std::span<const SeenUse> uses, double piece, double near) {
  Told told;
  for (const SeenUse& use : uses) {
    const double error = std::abs(time_at(times, place_of(use, piece)) - use.time);
    told.uses += error <= near ? 1 : 0;
    told.error += std::min(error, kFar * near) / static_cast<double>(uses.size());
  }
  return told;
}

// So many that all numbers of pieces can be tried. Every k-th would be of a few pieces only; so it is those of the
// lowest hashes.
std::vector<SeenUse> some_of(std::span<const SeenUse> uses) {
  std::vector<SeenUse> found(uses.begin(), uses.end());
  if (found.size() <= kMostCompared) return found;
  const auto hash = [](const SeenUse& use) {
    const std::uint64_t mixed = (use.at ^ use.at >> 32) * 0xd6e8feb86659fd93u;
    return (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93u;
  };
  std::ranges::nth_element(found, found.begin() + kMostCompared, {}, hash);
  found.resize(kMostCompared);
  return found;
}

// In how many pieces an object is gone through. Several numbers tell most uses (half as many pieces of twice the length
// do, too); the right one tells them best.
class Repeats {
 public:
  explicit Repeats(std::uint64_t bytes)
      : bytes_(static_cast<double>(bytes)),
        most_(static_cast<std::uint32_t>(std::min<std::uint64_t>(kMostRepeats, bytes / kLeastPieceBytes))) {}

  // 1: in one, or in no number that could be found.
  [[nodiscard]] std::uint32_t of(std::span<const SeenUse> uses, double near) {
    const std::vector<SeenUse> some = some_of(uses);
    const auto told = [&](std::uint32_t repeats) {
      const double piece = bytes_ / repeats;
      return told_by(times_of_parts(some, piece), some, piece, near);
    };
    const auto count = static_cast<double>(some.size());
    const double least = std::max(kLeastTold * count, static_cast<double>(told(1).uses) + kMoreThanBeside * count);
    if (least > count) return 1;  // the pages beside each tell nearly all
    const auto is_told = [&](const Told& one) { return static_cast<double>(one.uses) >= least; };
    if (before_ != 1 && is_told(told(before_))) return before_;
    if (tries_ == kMostTries) return 1;
    std::uint32_t best = 1;
    double best_error = 0;
    for (std::uint32_t repeats = 2; repeats <= most_; ++repeats) {
      const Told one = told(repeats);
      if (!is_told(one) || (best != 1 && one.error >= best_error)) continue;
      best = repeats;
      best_error = one.error;
    }
    if (best != 1) before_ = best;
    tries_ += best == 1 ? 1 : 0;
    return best;
  }

 private:
  const double bytes_;
  const std::uint32_t most_;
  std::uint32_t before_ = 1;  // found last
  int tries_ = 0;             // that found none
};

}  // namespace

double time_at(std::span<const std::uint32_t> times, double place) {
  const auto count = static_cast<double>(times.size());
  const auto last_pair = static_cast<double>(std::max<std::size_t>(times.size(), 2) - 2);
  const double at = place * count - 0.5;
  const auto part = static_cast<std::size_t>(std::clamp(std::floor(at), 0.0, last_pair));
  const double one = times[part], other = times[std::min(part + 1, times.size() - 1)];
  return one + (at - static_cast<double>(part)) * (other - one);
}

std::vector<StridedPass> take_strided(ObjectLife& life, std::uint32_t near) {
  std::vector<StridedPass> found;
  Repeats all_repeats(life.bytes);
  for (const auto& [uses, begin, end] : passes_of(life, near)) {
    const auto count = static_cast<double>(uses.size());
    if (uses.size() < kLeastUsesOfPass || count < kLeastOfPages * static_cast<double>(life.uses.size())) continue;
    const std::uint32_t repeats = all_repeats.of(uses, near);
    if (repeats == 1) continue;
    const double piece = static_cast<double>(life.bytes) / repeats;
    StridedPass pass{
        .repeats = repeats, .times = times_of_parts(uses, piece), .begin = begin, .end = end, .foreseen = {}};
    const auto told = static_cast<double>(told_by(pass.times, uses, piece, near).uses);
    pass.foreseen = {.uses = count, .told = told, .by_chance = count * std::min(2.0 * near / (end - begin), 1.0)};
    for (auto& [byte, times] : life.uses) {
      std::erase_if(times, [&](std::uint32_t time) { return begin <= time && time < end; });
    }
    found.push_back(std::move(pass));
  }
  return found;
}

}  // namespace farheap::plan
