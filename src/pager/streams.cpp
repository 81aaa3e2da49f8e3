// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/streams.hpp"

#include <algorithm>

namespace farheap::pager {

bool Streams::continues(Stream& stream, PageNumber page) const {
  if (stream.pages == 0) return false;
  if (stream.direction >= 0 && page >= stream.next && page <= stream.next + kSlackPages) {
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

Streams::Advice Streams::touched(PageNumber page) {
  ++clock_;
  Stream* oldest = &streams_[0];
  for (Stream& stream : streams_) {
    if (continues(stream, page)) {
      stream.pages = std::min(std::max(stream.pages * 2, kFirstPages), largest_pages_);
      stream.last = page;
      stream.used = clock_;
      matched_ = &stream;
      return {true, stream.direction < 0, stream.pages};
    }
    if (stream.used < oldest->used) oldest = &stream;
  }
  *oldest = Stream{.next = page + 1, .last = page, .pages = 1, .direction = 0, .used = clock_};
  matched_ = oldest;
  return {};
}

std::uint32_t Streams::active() const {
  constexpr std::uint64_t kRecent = 256;  // touches
  std::uint32_t count = 0;
  for (const Stream& stream : streams_) count += stream.pages > kFirstPages && clock_ - stream.used < kRecent;
  return count;
}

void Streams::continues_at(PageNumber page) {
  if (matched_ != nullptr) matched_->next = page;
}

}  // namespace farheap::pager
