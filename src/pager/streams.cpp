// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/streams.hpp"

#include <algorithm>

namespace farheap::pager {

namespace {
constexpr std::uint64_t kLongAgo = 64;  // touches
}

bool Streams::continues(Stream& stream, PageNumber page) const {
  if (stream.pages == 0) return false;
  if (stream.direction >= 0 && page >= stream.first && page <= stream.next + kSlackPages) {
    if (page < stream.next && clock_ - stream.used > kLongAgo) return false;
    stream.direction = 1;
    return true;
  }
  // Backward: the page before the last one, or before the window fetched below it.
  const PageNumber below = stream.direction < 0 ? stream.next : stream.last - 1;
  if (stream.direction <= 0 && stream.last > 0 && page <= below && page + kSlackPages >= below) {
    stream.direction = -1;
    return true;
  }
  return false;
}

void Streams::note(const Stream& stream) {
  const std::size_t at = static_cast<std::size_t>(&stream - streams_.data());
  const auto low = [](PageNumber page) { return static_cast<std::uint32_t>(page); };
  forward_[at] = stream.direction >= 0 ? low(stream.first) : kNowhere;
  reach_[at] = low(stream.next - stream.first) + kSlackPages;
  const PageNumber below = stream.direction < 0 ? stream.next : stream.last - 1;
  backward_[at] = stream.direction <= 0 && stream.last > 0 ? low(below) : kNowhere;
}

namespace {

// No way out of the loop, so that it becomes vector instructions.
template <std::size_t count>
[[gnu::always_inline]] inline bool is_near_any(const std::uint32_t* forward, const std::uint32_t* reach,
                                               const std::uint32_t* backward, std::uint32_t low) {
  std::uint32_t near = 0;
  for (std::size_t i = 0; i < count; ++i) {
    near |= static_cast<std::uint32_t>(low - forward[i] <= reach[i]);
    near |= static_cast<std::uint32_t>(backward[i] - low <= Streams::kSlackPages);
  }
  return near != 0;
}

#ifdef __x86_64__
// Unsigned numbers can be compared with AVX2 only; this is done at every miss (0.3 us without).
template <std::size_t count>
[[gnu::target("avx2"), gnu::noinline]] bool is_near_any_by_avx2(const std::uint32_t* forward,
                                                                const std::uint32_t* reach,
                                                                const std::uint32_t* backward, std::uint32_t low) {
  return is_near_any<count>(forward, reach, backward, low);
}
#endif

template <std::size_t count>
bool is_near(const std::uint32_t* forward, const std::uint32_t* reach, const std::uint32_t* backward,
             std::uint32_t low) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) return is_near_any_by_avx2<count>(forward, reach, backward, low);
#endif
  return is_near_any<count>(forward, reach, backward, low);
}

}  // namespace

Streams::Stream* Streams::find(PageNumber page) {
  const auto low = static_cast<std::uint32_t>(page);
  for (std::size_t from = 0; from < kStreams; from += kLookedAtTogether) {
    if (!is_near<kLookedAtTogether>(&forward_[from], &reach_[from], &backward_[from], low)) continue;
    for (std::size_t i = from; i < from + kLookedAtTogether; ++i) {
      if (continues(streams_[i], page)) return &streams_[i];
    }
  }
  return nullptr;
}

// Of the next few in turn, the one that was not used for longest.
Streams::Stream& Streams::least_used() {
  constexpr std::size_t kCandidates = 8;
  Stream* least = &streams_[hand_];
  for (std::size_t i = 1; i < kCandidates; ++i) {
    Stream& stream = streams_[(hand_ + i) % kStreams];
    if (stream.used < least->used) least = &stream;
  }
  hand_ = (hand_ + kCandidates) % kStreams;
  return *least;
}

Streams::Advice Streams::touched(PageNumber page) {
  ++clock_;
  matched_ = find(page);
  if (matched_ == nullptr) {
    matched_ = &least_used();
    *matched_ = Stream{.first = page + 1, .next = page + 1, .last = page, .pages = 1, .direction = 0, .used = clock_};
    note(*matched_);
    return {};
  }
  // Among so many, one that began long ago is met by chance, too: it has to be met twice.
  const bool doubtful = matched_->pages == 1 && clock_ - matched_->used > kLongAgo;
  if (doubtful) {
    *matched_ = Stream{.first = page + 1,
                       .next = page + 1,
                       .last = page,
                       .pages = 2,
                       .direction = matched_->direction,
                       .used = clock_};
    note(*matched_);
    return {};
  }
  matched_->pages = std::min(std::max(matched_->pages * 2, kFirstPages), largest_pages_);
  matched_->last = page;
  matched_->used = clock_;
  note(*matched_);
  return {true, matched_->direction < 0, matched_->pages};
}

Streams::Advice Streams::presume(bool backward, std::uint32_t pages) {
  matched_->direction = backward ? -1 : 1;
  matched_->pages = std::min(pages, largest_pages_);
  note(*matched_);
  return {true, backward, matched_->pages};
}

void Streams::begin(PageNumber page, bool backward, std::uint32_t pages) {
  matched_ = find(page);  // it may have come from there
  if (matched_ == nullptr) matched_ = &least_used();
  *matched_ = Stream{.first = page,
                     .next = page,
                     .last = page,
                     .pages = std::min(pages, largest_pages_),
                     .direction = static_cast<std::int8_t>(backward ? -1 : 1),
                     .used = clock_};
  note(*matched_);
}

std::uint32_t Streams::active() const {
  constexpr std::uint64_t kRecent = 64;  // touches
  std::uint32_t count = 0;
  for (const Stream& stream : streams_) count += stream.pages > kFirstPages && clock_ - stream.used < kRecent;
  return count;
}

void Streams::continues_between(PageNumber first, PageNumber page) {
  if (matched_ == nullptr) return;
  matched_->first = first;
  matched_->next = page;
  note(*matched_);
}

}  // namespace farheap::pager
