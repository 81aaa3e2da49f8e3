// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In which order small objects were touched, by site: which of them are hot at the same time. Each touch has a weight.
// A full table is halved: of two neighbours one is kept by chance, in proportion to their weights, and gets the weight
// of both. From then on touches are joined in the same way before they are noted, until they weigh as much as those
// that were kept. So the table speaks of the whole run, of each part of it alike, and sums of weights are right in the
// mean.
//
// The table has two halves. What stays is written into the other half, which then is the one that counts: so a
// recording that was killed meanwhile is whole.
//
// Thread-safety: any thread writes; a reader may read meanwhile.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/mutex.hpp"
#include "profile/profile.hpp"

namespace farheap::profile {

// In the recording (recording.hpp); all zeros at first.
struct TouchTable {
  std::atomic<std::uint32_t>& noted;  // touches; the upper bit: they are in the second half
  std::span<std::atomic<std::uint64_t>> words;
};

class TouchOrder {
 public:
  // Never waits: a touch that comes while another one is noted is not seen. Requires: the same table, until it begins
  // anew.
  void note(TouchTable to, SiteId site, std::uint32_t weight);
  void begin_anew();

 private:
  void make_room(TouchTable to) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] SiteTouch joined(SiteTouch one, SiteTouch other) FARHEAP_REQUIRES(mutex_);

  base::Mutex mutex_;
  SiteTouch next_ FARHEAP_GUARDED_BY(mutex_);  // is noted when it weighs enough
  std::uint64_t least_weight_ FARHEAP_GUARDED_BY(mutex_) = 0;
  std::uint64_t random_ FARHEAP_GUARDED_BY(mutex_) = 1;
};

// Reads any table, also a broken one.
[[nodiscard]] std::vector<SiteTouch> touches_in(std::uint32_t noted, std::span<const std::atomic<std::uint64_t>> words);

}  // namespace farheap::profile
