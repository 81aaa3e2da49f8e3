// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Records the order in which a program uses a sample of its pages, while it runs as usual. Pages are chosen by a hash
// of their number; of these the last few that came are in view, and the others are taken out of it again, so that their
// next use is seen. With one page in R, memory of M pages behaves for the sample as M / R does: so what a policy would
// have missed can be told for any M. (SHARDS: Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015.)
// R doubles when there is more to record than a recording may cost or hold. What was recorded before that stays: for
// some thousand uses from the beginning on nothing is too much, so that these are seen in detail.
//
// A recording has to see throughout how often objects are touched (recorder.hpp), also when few pages are left in the
// sample. So some of those that were in it are *probes*: they are taken out of view again in turns, as often as the
// cost allows, and are not in the trace.
//
// What it writes is a page trace (page_trace.hpp) of the sampled pages. Uses that follow each other within the window,
// and those between a page's coming and its going, are not in it.
//
// Thread-safety: any thread of the runtime; threads of the program only while nothing leaves the view (Pager's Still):
// a handler may wait for the lock. It touches nothing that is paged.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "os/mapping.hpp"
#include "os/shared_file.hpp"
#include "pager/use_recording.hpp"
#include "pager/view.hpp"
#include "pager/view_around.hpp"
#include "profile/page_trace.hpp"

namespace farheap::profile {

// Whether one page in 2^one_in_log2 is this one. A page of a smaller sample is in every larger one.
[[nodiscard]] constexpr bool is_sampled(PageNumber page, std::uint32_t one_in_log2) {
  std::uint64_t value = (page ^ (page >> 32)) * 0xd6e8feb86659fd93u;
  value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93u;
  return one_in_log2 == 0 || (value ^ (value >> 32)) << (64 - one_in_log2) == 0;
}

// What is in the file (os/shared_file.hpp), before the words of the trace. Of one build, as the recordings of profiles.
struct SampledTraceHeader {
  static constexpr std::uint64_t kMagic = 0x31454c504d415346;  // "FSAMPLE1"
  std::uint64_t magic;
  std::uint32_t room;                      // words
  std::uint32_t window;                    // sampled pages that are in view at once
  std::atomic<std::uint32_t> words;        // written
  std::atomic<std::uint32_t> one_in_log2;  // entries of pages that are not in this sample are to be left out
  std::atomic<std::uint32_t> is_sorting;   // the words are being made fewer: they say nothing now
  std::atomic<std::uint32_t> detailed;     // so many words from the first on are of the first sample; 0: all are
  std::atomic<std::uint64_t>
      pages;  // that were used, in the sample or not; once each, and again after they were dropped
};

class PageSampler {
 public:
  static constexpr std::uint32_t kRoomWords = 1u << 18;
  static constexpr std::uint32_t kWindow = 8;
  static constexpr std::uint32_t kFirstOneInLog2 = 6, kMostOneInLog2 = 20;

  // kNoSpace without addresses.
  [[nodiscard]] static Result<std::unique_ptr<PageSampler>> make(std::uint64_t capacity_pages);
  // From now on it records, into a new file, as if no page had been used before.
  [[nodiscard]] Status begin(const std::string& path);
  // From now on it does not, until it begins anew.
  void end();
  // A forked child is not sampled: what it has from its parent was not seen to come.
  void stop_in_child();

  void came(pager::PageRun run);
  void left(PageNumber page);
  void dropped(PageNumber first, std::uint64_t count);

  // The next page whose turn it is to be taken out of view.
  [[nodiscard]] std::optional<PageNumber> next_due();
  // It could not be taken out just now.
  void not_now(PageNumber page);

 private:
  enum : std::uint8_t { kKnown = 1, kInView = 2, kDue = 4, kCounted = 8, kProbe = 16 };
  explicit PageSampler(os::ReservedArray<std::atomic<std::uint8_t>> pages) : pages_(std::move(pages)) {}
  void note_known(pager::PageRun run);
  void came_in_sample(PageNumber page) FARHEAP_REQUIRES(mutex_);
  void add_probe(PageNumber page) FARHEAP_REQUIRES(mutex_);
  void take_fewer_probes() FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] std::optional<PageNumber> next_probe() FARHEAP_REQUIRES(mutex_);
  void look_at_clock() FARHEAP_REQUIRES(mutex_);
  void write(PageTraceEntry entry) FARHEAP_REQUIRES(mutex_);
  void take_fewer() FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] SampledTraceHeader& header() FARHEAP_REQUIRES(mutex_) {
    return *reinterpret_cast<SampledTraceHeader*>(file_.data());
  }
  [[nodiscard]] std::span<std::uint32_t> words() FARHEAP_REQUIRES(mutex_) {
    return {reinterpret_cast<std::uint32_t*>(file_.data() + sizeof(SampledTraceHeader)), kRoomWords};
  }

  std::atomic<std::uint32_t> one_in_log2_{kFirstOneInLog2};
  std::atomic<std::uint32_t> probe_log2_{kFirstOneInLog2};  // one page in 2^this is a probe, or in the sample
  std::atomic<bool> is_on_{false};
  base::Mutex mutex_;
  os::SharedFile file_ FARHEAP_GUARDED_BY(mutex_);
  // With mutex_, and those that are not in the sample by who moves them.
  os::ReservedArray<std::atomic<std::uint8_t>> pages_;
  std::atomic<std::uint64_t> known_{0};
  std::deque<PageNumber> window_ FARHEAP_GUARDED_BY(mutex_);
  std::deque<PageNumber> probes_ FARHEAP_GUARDED_BY(mutex_);  // that wait for their turn
  base::Clock::time_point period_ FARHEAP_GUARDED_BY(mutex_);
  std::uint32_t credit_ FARHEAP_GUARDED_BY(mutex_) = 0;  // uses that may be too many
  std::uint32_t in_period_ FARHEAP_GUARDED_BY(mutex_) = 0, most_in_period_ FARHEAP_GUARDED_BY(mutex_) = 0;
  std::uint32_t probed_in_period_ FARHEAP_GUARDED_BY(mutex_) = 0;
  bool is_turn_of_probes_ FARHEAP_GUARDED_BY(mutex_) = false;
};

// A view whose pages are sampled; it does all that the one inside does.
class SampledView final : public pager::ViewAround {
 public:
  SampledView(pager::View& view, PageSampler& sampler) : ViewAround(view), sampler_(sampler) {}
  void take_out(pager::PageRun run, std::span<Taken> answers) override;
  void put_back(pager::PageRun run) override;
  void copy_back(pager::PageRun run, Guard guard) override;
  void put_in(pager::PageRun run, const std::byte* bytes, Guard guard) override;
  [[nodiscard]] std::uint32_t put_in_huge(PageNumber first) override;
  [[nodiscard]] bool tells_every_write() const override { return view_.tells_every_write(); }
  [[nodiscard]] bool take_written(PageNumber first, Written& written) override {
    return view_.take_written(first, written);
  }
  void drop_view(pager::PageRun run) override;
  void adopted(pager::PageRun run) override { sampler_.came(run); }
  void forgotten(pager::PageRun run) override { sampler_.dropped(run.first, run.count); }

 private:
  PageSampler& sampler_;
};

// Both.
class PageSampling final : public pager::UseSampling {
 public:
  PageSampling(std::unique_ptr<PageSampler> sampler, pager::View& view)
      : sampler_(std::move(sampler)), view_(view, *sampler_) {}
  [[nodiscard]] pager::View& view() override { return view_; }
  [[nodiscard]] Status begin(const std::string& path) override { return sampler_->begin(path); }
  void end() override { sampler_->end(); }
  void stop_in_child() override { sampler_->stop_in_child(); }
  [[nodiscard]] std::optional<PageNumber> next_due() override { return sampler_->next_due(); }
  void not_now(PageNumber page) override { sampler_->not_now(page); }

 private:
  std::unique_ptr<PageSampler> sampler_;
  SampledView view_;
};

// A pager::MakeUseSampling.
[[nodiscard]] Result<std::unique_ptr<pager::UseSampling>> sample_pages(std::uint64_t pages, pager::View& view);

}  // namespace farheap::profile
