// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/touch_order.hpp"

#include <algorithm>

namespace farheap::profile {

namespace {

constexpr std::uint32_t kSecondHalf = 1u << 31;

// The weight above, the site below.
constexpr std::uint64_t packed(SiteTouch touch) { return std::uint64_t{touch.weight} << 32 | touch.site; }
constexpr SiteTouch unpacked(std::uint64_t word) {
  return {static_cast<SiteId>(word), static_cast<std::uint32_t>(word >> 32)};
}

template <class Word>
std::span<Word> half_of(std::span<Word> words, std::uint32_t noted) {
  const std::size_t room = words.size() / 2;
  return words.subspan((noted & kSecondHalf) != 0 ? room : 0, room);
}

}  // namespace

void TouchOrder::note(TouchTable to, SiteId site, std::uint32_t weight) {
  if (to.words.size() < 4 || !mutex_.try_lock()) return;
  base::LockGuard lock(mutex_, std::adopt_lock);
  next_ = joined(next_, {site, weight});
  if (next_.weight < least_weight_) return;
  if ((to.noted & ~kSecondHalf) == to.words.size() / 2) make_room(to);
  const std::uint32_t noted = to.noted.load(std::memory_order_relaxed);
  half_of(to.words, noted)[noted & ~kSecondHalf].store(packed(next_), std::memory_order_relaxed);
  to.noted.store(noted + 1, std::memory_order_release);
  next_ = {};
}

void TouchOrder::begin_anew() {
  const base::LockGuard lock(mutex_);
  next_ = {};
  least_weight_ = 0;
}

SiteTouch TouchOrder::joined(SiteTouch one, SiteTouch other) {
  const std::uint64_t both = std::uint64_t{one.weight} + other.weight;
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's, MMIX
  const bool is_one = (random_ >> 33) % std::max<std::uint64_t>(both, 1) < one.weight;
  return {is_one ? one.site : other.site, static_cast<std::uint32_t>(std::min<std::uint64_t>(both, ~std::uint32_t{0}))};
}

void TouchOrder::make_room(TouchTable to) {
  const std::uint32_t noted = to.noted.load(std::memory_order_relaxed);
  const auto from = half_of(to.words, noted), into = half_of(to.words, noted ^ kSecondHalf);
  std::uint32_t kept = 0;
  std::uint64_t weight = 0;
  for (std::size_t i = 0; i + 1 < from.size(); i += 2) {
    const SiteTouch stays = joined(unpacked(from[i]), unpacked(from[i + 1]));
    into[kept++].store(packed(stays), std::memory_order_relaxed);
    weight += stays.weight;
  }
  least_weight_ = weight / kept;
  to.noted.store(kept | ((noted ^ kSecondHalf) & kSecondHalf), std::memory_order_release);
}

std::vector<SiteTouch> touches_in(std::uint32_t noted, std::span<const std::atomic<std::uint64_t>> words) {
  const auto half = half_of(words, noted);
  std::vector<SiteTouch> touches;
  for (const auto& word : half.first(std::min<std::size_t>(noted & ~kSecondHalf, half.size()))) {
    touches.push_back(unpacked(word));
  }
  return touches;
}

}  // namespace farheap::profile
