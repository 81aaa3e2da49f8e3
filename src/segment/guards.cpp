// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/guards.hpp"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "segment/at_the_tables.hpp"

namespace farheap::segment {

namespace {

// Reading a store may be a point where a thread is cancelled: not in the middle of the pager.
class NotCancelled {
 public:
  NotCancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace

void Guards::add(farheap_residency& view) {
  const AtTheTables working;
  const base::LockGuard lock(mutex_);
  if (std::ranges::find(views_, &view) == views_.end()) views_.push_back(&view);
  if (pager_ == nullptr) return;
  make_table();
  show(view);
}

void Guards::remove(farheap_residency& view) {
  const AtTheTables working;
  const base::LockGuard lock(mutex_);
  std::erase(views_, &view);
}

bool Guards::has_views() {
  const AtTheTables working;
  const base::LockGuard lock(mutex_);
  return !views_.empty();
}

void Guards::begin(std::byte* base, std::uint64_t pages, std::uint32_t buffer_pages, pager::Pager& pager) {
  const base::LockGuard lock(mutex_);
  base_ = base;
  pages_ = pages;
  buffer_bytes_ = std::size_t{buffer_pages} * base::kPageBytes;
  pager_ = &pager;
  if (views_.empty()) return;
  make_table();
  for (farheap_residency* view : views_) show(*view);
}

void Guards::make_table() {
  if (works_.load(std::memory_order_relaxed)) return;
  auto away = os::ReservedArray<std::atomic<std::uint8_t>>::make(pages_);
  auto buffers = os::Mapping::reserve(kBuffers * buffer_bytes_, os::Access::kReadWrite);
  if (!away || !buffers) {
    base::log(base::LogLevel::kWarn, "the program's guards do nothing: {}",
              (away ? buffers.error() : away.error()).message());
    return;
  }
  away_ = std::move(*away);
  buffers_ = std::move(*buffers);
  pager_->note_away(&away_[0]);
  works_.store(true, std::memory_order_release);
}

// `bytes` last: until then no address is in the view.
void Guards::show(farheap_residency& view) const {
  if (!works_.load(std::memory_order_relaxed)) return;
  static_assert(sizeof(std::atomic<std::uint8_t>) == 1);
  std::atomic_ref(view.away).store(reinterpret_cast<const unsigned char*>(&away_[0]), std::memory_order_release);
  std::atomic_ref(view.begin).store(reinterpret_cast<std::uintptr_t>(base_), std::memory_order_release);
  std::atomic_ref(view.bytes).store(pages_ * base::kPageBytes, std::memory_order_release);
}

int Guards::take_buffer() {
  std::uint32_t taken = taken_.load(std::memory_order_relaxed);
  for (;;) {
    const int free = std::countr_one(taken);
    if (free >= static_cast<int>(kBuffers)) return -1;
    if (taken_.compare_exchange_weak(taken, taken | 1u << free, std::memory_order_acquire)) return free;
  }
}

// Whose stack lies in the pages would wait for himself, if he lost it with the pager's mutex in his hands.
void Guards::fetch(const void* at, bool write) {
  if (!works_.load(std::memory_order_acquire) || base::t_inside_runtime) return;
  const auto page_of = [&](const void* address) {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_) / base::kPageBytes;
  };
  const pager::PageNumber page = page_of(at);
  if (page >= pages_ || page_of(__builtin_frame_address(0)) < pages_) return;
  const int before = errno;
  {
    const AtTheTables working;
    const NotCancelled whole;
    if (const int mine = take_buffer(); mine >= 0) {
      pager_->fetch(page, write, buffers_.data() + static_cast<std::size_t>(mine) * buffer_bytes_);
      taken_.fetch_and(~(1u << mine), std::memory_order_release);
    }
  }
  errno = before;
}

// Threads that held buffers are not here.
void Guards::unlock_in_child() {
  taken_.store(0, std::memory_order_relaxed);
  mutex_.unlock();
}

}  // namespace farheap::segment
