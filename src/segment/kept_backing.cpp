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
Status KeptBacking::take(std::span<const pager::PageRun> runs, const std::byte* bytes) {
  std::vector<Write> writes;
  for (const pager::PageRun& run : runs) {
    bool goes_on = false;
    for (std::uint32_t i = 0; i < run.count; ++i, bytes += base::kPageBytes) {
      const bool zero = pager::is_zero_page(bytes);
      if (zero) {
        if (Status status = versions_.forget(run.first + i, 1); !status) return status;
      } else if (goes_on) {
        ++writes.back().run.count;
      } else {
        writes.push_back({{run.first + i, 1}, bytes});
      }
      goes_on = !zero;
    }
  }
  return writes.empty() ? Status{} : versions_.write(writes, Versions::Writer::kKeeps);
}

}  // namespace farheap::segment
