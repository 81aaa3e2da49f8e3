// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: a page of the sample that is in view is in the window, or its turn to leave has come.
#include "profile/page_sampler.hpp"

#include <algorithm>
#include <new>

#include "os/drop_memory.hpp"

namespace farheap::profile {

using pager::PageRun;

namespace {

// A use that is seen costs 20 to 50 us: so many are a twentieth of the time. Where pages leave memory, blocks that
// are broken for the sake of the sample cost more.
constexpr std::uint32_t kMostInPeriod = 150;
constexpr std::uint32_t kCredit = 6000;
constexpr std::uint32_t kMostWhereTheyLeave = 60;
constexpr std::chrono::milliseconds kPeriod{100};
constexpr std::size_t kMostProbes = 4096;

}  // namespace

Result<std::unique_ptr<PageSampler>> PageSampler::make(std::uint64_t capacity_pages) {
  auto pages =
      os::ReservedArray<std::atomic<std::uint8_t>>::make(std::min<std::uint64_t>(capacity_pages, kTraceablePages));
  if (!pages) return fail(std::move(pages.error()));
  return std::unique_ptr<PageSampler>(new PageSampler(std::move(*pages)));
}

Status PageSampler::begin(const std::string& path) {
  auto file = os::SharedFile::create(path, sizeof(SampledTraceHeader) + kRoomWords * sizeof(std::uint32_t));
  if (!file) return fail(std::move(file.error()));
  base::LockGuard lock(mutex_);
  if (known_.exchange(0) != 0) {  // it has recorded before
    (void)os::drop_though_locked(reinterpret_cast<std::byte*>(&pages_[0]), pages_.capacity());
    window_.clear();
    probes_.clear();
    one_in_log2_ = probe_log2_ = kFirstOneInLog2;
  }
  file_ = std::move(*file);
  header().room = kRoomWords;
  header().window = kWindow;
  header().one_in_log2 = one_in_log2_.load();
  header().magic = SampledTraceHeader::kMagic;
  credit_ = kCredit;
  is_on_ = true;
  return {};
}

void PageSampler::end() {
  base::LockGuard lock(mutex_);
  is_on_ = false;
  file_ = {};
}

// Another thread of the parent may have been in the middle of changing what stands here.
void PageSampler::stop_in_child() FARHEAP_NO_THREAD_SAFETY_ANALYSIS {
  new (&mutex_) base::Mutex;
  new (&window_) std::deque<PageNumber>;
  new (&probes_) std::deque<PageNumber>;
  is_on_ = false;
  file_ = {};
}

void PageSampler::came(PageRun run) {
  if (!is_on_.load(std::memory_order_relaxed)) return;
  if (run.first + run.count > pages_.capacity()) return;
  const std::uint32_t probe_log2 = probe_log2_.load(std::memory_order_relaxed);
  for (PageNumber page = run.first; page < run.first + run.count; ++page) {
    if (!is_sampled(page, probe_log2)) continue;
    base::LockGuard lock(mutex_);
    if (!is_on_) continue;
    if (is_sampled(page, one_in_log2_.load(std::memory_order_relaxed))) {
      came_in_sample(page);
    } else {
      add_probe(page);
    }
  }
  note_known(run);
}

void PageSampler::note_known(PageRun run) {
  std::uint64_t fresh = 0;
  for (PageNumber page = run.first; page < run.first + run.count; ++page) {
    if ((pages_[page].load(std::memory_order_relaxed) & kCounted) != 0) continue;
    pages_[page].fetch_or(kCounted, std::memory_order_relaxed);
    ++fresh;
  }
  if (fresh == 0) return;
  known_.fetch_add(fresh, std::memory_order_relaxed);
  base::LockGuard lock(mutex_);
  if (is_on_) header().pages.store(known_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void PageSampler::came_in_sample(PageNumber page) {
  const bool is_known = (pages_[page] & kKnown) != 0;
  pages_[page] = static_cast<std::uint8_t>((pages_[page] & kCounted) | kKnown | kInView);
  write({page, is_known ? PageEvent::kCame : PageEvent::kCameFresh});
  window_.push_back(page);
  look_at_clock();
  if (!is_known) return;
  if (credit_ != 0) {
    --credit_;
  } else if (++in_period_ > most_in_period_) {
    in_period_ = 0;
    take_fewer();
  }
}

void PageSampler::look_at_clock() {
  const auto now = base::Clock::now();
  if (now - period_ <= kPeriod) return;
  period_ = now;
  in_period_ = probed_in_period_ = 0;
  most_in_period_ = kMostInPeriod;
}

void PageSampler::add_probe(PageNumber page) {
  pages_[page] |= kInView;
  if ((pages_[page] & kProbe) != 0) return;  // it waits for its turn already
  if (probes_.size() >= kMostProbes) take_fewer_probes();
  if (!is_sampled(page, probe_log2_.load(std::memory_order_relaxed))) return;
  pages_[page] |= kProbe;
  probes_.push_back(page);
}

void PageSampler::take_fewer_probes() {
  const std::uint32_t log2 = std::min(probe_log2_.load(std::memory_order_relaxed) + 1, kMostOneInLog2);
  probe_log2_.store(log2, std::memory_order_relaxed);
  std::erase_if(probes_, [&](PageNumber page) {
    if (is_sampled(page, log2)) return false;
    pages_[page] &= static_cast<std::uint8_t>(~kProbe);
    return true;
  });
}

// They cost half as much as the uses that are traced.
std::optional<PageNumber> PageSampler::next_probe() {
  while (probes_.size() > kWindow && probed_in_period_ < most_in_period_ / 2) {
    const PageNumber page = probes_.front();
    probes_.pop_front();
    pages_[page] &= static_cast<std::uint8_t>(~kProbe);
    if ((pages_[page] & kInView) == 0 || !is_sampled(page, probe_log2_.load(std::memory_order_relaxed))) continue;
    ++probed_in_period_;
    return page;
  }
  return std::nullopt;
}

void PageSampler::left(PageNumber page) {
  if (!is_on_.load(std::memory_order_relaxed) || page >= pages_.capacity()) return;
  if (!is_sampled(page, probe_log2_.load(std::memory_order_relaxed))) return;
  base::LockGuard lock(mutex_);
  if (!is_on_ || (pages_[page] & kInView) == 0) return;
  if (!is_sampled(page, one_in_log2_.load(std::memory_order_relaxed))) {
    pages_[page] &= static_cast<std::uint8_t>(~kInView);
    return;
  }
  if ((pages_[page] & kDue) == 0) most_in_period_ = kMostWhereTheyLeave;
  pages_[page] = kCounted | kKnown;
  write({page, PageEvent::kLeft});
}

void PageSampler::dropped(PageNumber first, std::uint64_t count) {
  if (!is_on_.load(std::memory_order_relaxed)) return;
  const std::uint32_t one_in_log2 = one_in_log2_.load(std::memory_order_relaxed);
  const PageNumber end = std::min<std::uint64_t>(first + count, pages_.capacity());
  for (PageNumber page = first; page < end; ++page) {
    if (pages_[page].load(std::memory_order_relaxed) == 0) continue;
    if (!is_sampled(page, one_in_log2)) {
      pages_[page].fetch_and(kProbe);  // as long as it waits for its turn
      continue;
    }
    base::LockGuard lock(mutex_);
    if (!is_on_) return;
    pages_[page] = 0;
    write({page, PageEvent::kDropped});
  }
}

void PageSampler::write(PageTraceEntry entry) {
  const std::uint32_t used = header().words.load(std::memory_order_relaxed);
  if (used == kRoomWords) {
    take_fewer();
    if (!is_on_ || !is_sampled(entry.page, one_in_log2_.load(std::memory_order_relaxed))) return;
    return write(entry);
  }
  words()[used] = pack(entry);
  header().words.store(used + 1, std::memory_order_release);
}

// Half of the sample stays; of what was recorded, all that was before there was too much for the first time. What is in
// no sample any more becomes a probe.
void PageSampler::take_fewer() {
  const std::uint32_t log2 = one_in_log2_.load(std::memory_order_relaxed);
  if (log2 == kMostOneInLog2) {
    is_on_ = false;  // one page in a million is still too much: nothing can be told
    return;
  }
  one_in_log2_.store(log2 + 1, std::memory_order_relaxed);
  SampledTraceHeader& head = header();
  head.is_sorting.store(1, std::memory_order_release);
  if (head.detailed.load(std::memory_order_relaxed) == 0) {
    const std::uint32_t most = kRoomWords / 4;
    head.detailed.store(std::min(head.words.load(std::memory_order_relaxed), most), std::memory_order_relaxed);
  }
  const auto all = words().first(head.words.load(std::memory_order_relaxed)).subspan(head.detailed.load());
  const auto gone =
      std::ranges::remove_if(all, [log2](std::uint32_t word) { return !is_sampled(word >> 4, log2 + 1); });
  head.words.store(head.detailed.load() + static_cast<std::uint32_t>(gone.begin() - all.begin()),
                   std::memory_order_relaxed);
  head.one_in_log2.store(log2 + 1, std::memory_order_relaxed);
  head.is_sorting.store(0, std::memory_order_release);
}

// In turns: what cannot be taken out just now is not in the way of probes.
std::optional<PageNumber> PageSampler::next_due() {
  base::LockGuard lock(mutex_);
  if (!is_on_) return std::nullopt;
  look_at_clock();
  is_turn_of_probes_ = !is_turn_of_probes_;
  if (is_turn_of_probes_) {
    if (const auto probe = next_probe()) return probe;
  }
  const std::uint32_t one_in_log2 = one_in_log2_.load(std::memory_order_relaxed);
  while (window_.size() > kWindow) {
    const PageNumber page = window_.front();
    window_.pop_front();
    if ((pages_[page] & kInView) == 0) continue;
    if (!is_sampled(page, one_in_log2)) {
      add_probe(page);
      continue;
    }
    pages_[page] |= kDue;
    return page;
  }
  return next_probe();
}

void PageSampler::not_now(PageNumber page) {
  base::LockGuard lock(mutex_);
  if ((pages_[page] & kInView) == 0) return;
  if (is_sampled(page, one_in_log2_.load(std::memory_order_relaxed))) {
    window_.push_back(page);
  } else {
    add_probe(page);
  }
}

void SampledView::take_out(PageRun run, std::span<Taken> answers) {
  view_.take_out(run, answers);
  for (std::uint32_t i = 0; i < run.count; ++i) {
    if (answers[i] == Taken::kTaken) sampler_.left(run.first + i);
    if (answers[i] == Taken::kGone) sampler_.dropped(run.first + i, 1);
  }
}

// Noted before the program goes on: its next use comes after this one in the trace.
void SampledView::put_back(PageRun run) {
  sampler_.came(run);
  view_.put_back(run);
}

void SampledView::copy_back(PageRun run, Guard guard) {
  sampler_.came(run);
  view_.copy_back(run, guard);
}

void SampledView::put_in(PageRun run, const std::byte* bytes, Guard guard) {
  sampler_.came(run);
  view_.put_in(run, bytes, guard);
}

std::uint32_t SampledView::put_in_huge(PageNumber first) {
  const std::uint32_t there = view_.put_in_huge(first);
  sampler_.came({first, there});
  return there;
}

void SampledView::drop_view(PageRun run) {
  view_.drop_view(run);
  sampler_.dropped(run.first, run.count);
}

Result<std::unique_ptr<pager::UseSampling>> sample_pages(std::uint64_t pages, pager::View& view) {
  auto sampler = PageSampler::make(pages);
  if (!sampler) return fail(std::move(sampler.error()));
  return std::make_unique<PageSampling>(std::move(*sampler), view);
}

}  // namespace farheap::profile
