// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/kept_backing.hpp"

#include "base/log.hpp"
#include "base/units.hpp"
#include "pager/contents.hpp"

namespace farheap::segment {

void KeptBacking::forget(pager::PageRun run) {
  if (snapshot_ != nullptr) return;
  std::lock_guard lock(mutex_);
  if (holding_) return forgotten_.push_back(run);
  forget_now(run);
}

// The page reads as zeros from now on, whatever the store keeps of it: that is space lost, and no data.
void KeptBacking::forget_now(pager::PageRun run) {
  if (Status status = versions_.forget(run.first, run.count); !status) {
    base::log(base::LogLevel::kWarn, "space is lost: {}", status.error().message());
  }
}

void KeptBacking::hold() {
  std::lock_guard lock(mutex_);
  holding_ = true;
}

void KeptBacking::go_on() {
  std::lock_guard lock(mutex_);
  for (const pager::PageRun run : forgotten_) forget_now(run);
  forgotten_.clear();
  holding_ = false;
}

// Pages of zeros are not kept.
Status KeptBacking::take(pager::PageRun run, const std::byte* bytes) {
  std::vector<Write> writes;
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const std::byte* const page = bytes + i * base::kPageBytes;
    if (pager::is_zero_page(page)) {
      if (Status status = versions_.forget(run.first + i, 1); !status) return status;
    } else if (!writes.empty() && writes.back().run.first + writes.back().run.count == run.first + i) {
      ++writes.back().run.count;
    } else {
      writes.push_back({{run.first + i, 1}, page});
    }
  }
  return writes.empty() ? Status{} : versions_.write(writes);
}

}  // namespace farheap::segment
