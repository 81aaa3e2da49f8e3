// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much of memory the compressed tier is worth. What it takes, pages in view lose, and one page of memory holds
// several compressed ones. So a larger tier saves reads of the store, and costs touches of pages that are only packed:
// both are counted at the edges, by the age of what is touched (how many pages left after it), for a window of time:
//
//   young   touches of what has just left: it would not have left if memory in view were a step larger
//   old     touches of what would leave the tier next: they would read the store if the tier were a step smaller
//   gone    reads of what has left the tier lately: they would not, if the tier were a step larger
//
// The tier grows where gone reads cost more than young touches. It shrinks where young touches cost more than old ones
// save, and where packing costs more than all touches save. What a read of the store takes, and what packing takes, is
// measured. Pages that never were in the tier, because they do not shrink or belong to a sweep, count nowhere.
//
// Thread-safety: none of its own; the tier's mutex guards it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace farheap::segment {

class TierShare {
 public:
  // A touch of a packed page takes so long, without packing: mostly the fault. docs/benchmarks/programs.md, A
  // compressed tier, tells of other values.
  static constexpr double kTouchUs = 20;

  // A stamp for a page that leaves memory now. Never 0; goes round after 2^31.
  [[nodiscard]] std::uint32_t stamp() {
    clock_ = clock_ == kMostStamp ? 1 : clock_ + 1;
    return clock_;
  }
  [[nodiscard]] std::uint32_t age_of(std::uint32_t stamp) const { return (clock_ - stamp) & kMostStamp; }

  // All the memory there is for pages, packed or not; `least` of it is never the tier's.
  void memory_is(std::uint64_t pages, std::uint64_t least) {
    memory_pages_ = pages;
    most_pages_ = std::min(pages / kMostPart, pages - std::min(pages, least + least / 4));
    if (pages != 0 && !began_) pages_ = step_pages(), filling_ = kFilling, began_ = true;
  }
  // So many pages of memory the tier may take now.
  [[nodiscard]] std::uint64_t pages() const { return std::min(pages_, most_pages_); }

  // It took so long to pack a page, or to find that it does not shrink.
  void packed(double us) {
    ++packed_;
    pack_us_ += (std::min(us, 8 * pack_us_) - pack_us_) / 16;  // the thread may have lost its processor meanwhile
  }
  // A page had to leave the tier, or found no room in it.
  void spilled() { has_spilled_ = true; }
  // A page in the tier was touched, or one that had left it, alone.
  void touched(std::uint32_t age) {
    ++touches_;
    if (age < young_before_) ++young_;
    if (age > old_after_) ++old_;
  }
  void missed(std::uint32_t age) {
    ++misses_;
    if (age <= gone_before_) ++gone_;
  }
  // What a read of one page takes that misses the tier.
  void read_took(double us) { read_us_ += (us - read_us_) / 16; }

  // Now and then: how many pages the tier has, how many pages of memory they take, and the age of the oldest.
  void look(std::uint64_t tier_pages, std::uint64_t memory_pages, std::uint32_t oldest_age) {
    const std::uint64_t step = step_pages();
    const std::uint64_t seen = std::max<std::uint64_t>(packed_ + touches_ + misses_, age_of(began_at_));
    if (seen < std::max<std::uint64_t>(kLeastWindow, memory_pages_ / 16)) return;
    if (most_pages_ == 0) return begin_window(tier_pages, memory_pages, oldest_age);
    const double saved = std::max(read_us_ - kUnpackUs, 0.0);
    // Each costs a fault, and a page leaves for it, which is packed.
    const double young = static_cast<double>(young_) * (kTouchUs + pack_us_);
    if (pages_ == 0) {
      if (++rested_ >= rest_) pages_ = 2 * step, filling_ = kFilling;
    } else if (filling_ != 0) {
      --filling_;
    } else if (static_cast<double>(touches_) * saved <= static_cast<double>(packed_) * pack_us_) {
      shrink(2 * step);
    } else if (has_spilled_ && static_cast<double>(gone_) * saved > kClearly * young) {
      pages_ = std::min(pages_ + step, most_pages_);
      if (pages_ > 4 * step) rest_ = 1;
    } else if (young > kClearly * static_cast<double>(old_) * saved) {
      shrink(step);
    }
    // It may take little more than it uses. If it might take more, no page would leave it and tell what old pages save.
    if (filling_ == 0 && !has_spilled_) pages_ = std::min(pages_, memory_pages + 2 * step);
    begin_window(tier_pages, memory_pages, oldest_age);
  }

 private:
  static constexpr std::uint32_t kMostStamp = (std::uint32_t{1} << 31) - 1;
  static constexpr std::uint64_t kMostPart = 2;  // at most a half
  static constexpr std::uint64_t kLeastWindow = 1024;
  static constexpr std::uint32_t kLongestRest = 32, kFilling = 2;  // windows
  static constexpr double kClearly = 1.25, kUnpackUs = 2;
  static constexpr double kUsualRatio = 2.5;

  // From nothing it is tried again, after a rest that is longer each time.
  void shrink(std::uint64_t by) {
    pages_ -= std::min(pages_, by);
    if (pages_ != 0) return;
    rested_ = 0;
    rest_ = std::min(2 * rest_, kLongestRest);
  }
  [[nodiscard]] std::uint64_t step_pages() const { return std::max<std::uint64_t>(memory_pages_ / 32, 64); }

  // Ages are counted in pages that left, many of which have come back: so that the tier's pages are `oldest_age` of
  // them, and a part of it as large a part of that.
  void begin_window(std::uint64_t tier_pages, std::uint64_t memory_pages, std::uint32_t oldest_age) {
    const auto step = static_cast<double>(step_pages());
    const double pages = std::max(static_cast<double>(tier_pages), step);
    const double age = std::max(static_cast<double>(oldest_age), step);
    const double ratio =
        memory_pages == 0 ? kUsualRatio : static_cast<double>(tier_pages) / static_cast<double>(memory_pages);
    const double edge = std::max(step * (ratio - 1), 0.0) * age / pages;  // what a step more holds in addition
    young_before_ = static_cast<std::uint32_t>(step * age / pages);
    old_after_ = static_cast<std::uint32_t>(std::max(age - edge, 0.0));
    gone_before_ = static_cast<std::uint32_t>(std::min(age + edge, static_cast<double>(kMostStamp)));
    began_at_ = clock_;
    packed_ = touches_ = misses_ = young_ = old_ = gone_ = 0;
    has_spilled_ = false;
  }

  std::uint32_t clock_ = 0;
  std::uint32_t began_at_ = 0;  // the window
  std::uint64_t memory_pages_ = 0, most_pages_ = 0;
  bool began_ = false;
  std::uint64_t pages_ = 0;
  std::uint32_t rest_ = 1, rested_ = 0, filling_ = kFilling;
  double read_us_ = 60, pack_us_ = 5;
  std::uint64_t packed_ = 0, touches_ = 0, misses_ = 0, young_ = 0, old_ = 0, gone_ = 0;
  bool has_spilled_ = false;  // in this window
  std::uint32_t young_before_ = 0, old_after_ = UINT32_MAX, gone_before_ = 0;
};

}  // namespace farheap::segment
