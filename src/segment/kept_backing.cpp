// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/kept_backing.hpp"

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/units.hpp"
#include "pager/contents.hpp"

namespace farheap::segment {
namespace {

constexpr std::uint64_t kExtent = 512;  // pages: those written together are often neighbours

}  // namespace

void KeptBacking::forget(pager::PageRun run) {
  if (snapshot_ != nullptr) return;
  base::LockGuard lock(mutex_);
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
  base::LockGuard lock(mutex_);
  holding_ = true;
}

// By the pager, between commits.
Status KeptBacking::write(std::span<const Write> runs) {
  {
    base::LockGuard lock(mutex_);
    for (const Write& one : runs) {
      const std::uint64_t last = one.run.first + one.run.count - 1;
      for (std::uint64_t i = one.run.first / kExtent; i <= last / kExtent; ++i) written_.insert(i);
    }
  }
  return versions_.write(runs);
}

void KeptBacking::keep_written(std::vector<pager::PageNumber>& pages) {
  base::LockGuard lock(mutex_);
  std::erase_if(pages,
                [&](pager::PageNumber page) FARHEAP_REQUIRES(mutex_) { return !written_.contains(page / kExtent); });
}

void KeptBacking::go_on(bool done) {
  base::LockGuard lock(mutex_);
  if (done) written_.clear();
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
