// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/idle_cleaner.hpp"

#include <chrono>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "os/runtime_threads.hpp"
#include "store/aligned_buffer.hpp"

namespace farheap::segment {
namespace {

constexpr std::chrono::seconds kIdleFor(1);

}  // namespace

IdleCleaner::~IdleCleaner() {
  {
    base::LockGuard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    if (!started_) return;
  }
  pthread_join(thread_, nullptr);
}

void IdleCleaner::begin_commit() {
  base::LockGuard lock(mutex_);
  committing_ = true;
}

void IdleCleaner::end_commit() {
  base::LockGuard lock(mutex_);
  committing_ = false;
  is_due_ = true;
  if (!started_) {
    const auto thread = os::start_ending_thread(run, this);
    if (!thread) return;
    thread_ = *thread;
    started_ = true;
  }
  changed_.notify_all();
}

void* IdleCleaner::run(void* cleaner) {
  static_cast<IdleCleaner*>(cleaner)->work();
  return nullptr;
}

void IdleCleaner::work() {
  const store::AlignedBuffer buffer(Versions::kPagesPerLeaf * base::kPageBytes);
  if (!buffer.is_there()) return;
  const base::LockGuard lock(mutex_);
  while (!stopping_) {
    while (!stopping_ && (!is_due_ || committing_)) changed_.wait(mutex_);
    is_due_ = false;
    const auto is_disturbed = [&]() FARHEAP_REQUIRES(mutex_) { return stopping_ || is_due_ || committing_; };
    if (changed_.wait_for(mutex_, kIdleFor, is_disturbed)) continue;
    const base::Without unlocked(mutex_);
    while (clean_some(buffer.part(0, Versions::kPagesPerLeaf * base::kPageBytes).data())) continue;
  }
}

bool IdleCleaner::clean_some(std::byte* buffer) {
  {
    base::LockGuard lock(mutex_);
    if (stopping_ || committing_ || is_due_) return false;
  }
  const auto moved = versions_.gather_one_of_lately(buffer);
  if (moved) return *moved;
  base::log(base::LogLevel::kWarn, "pages stay scattered: {}", moved.error().message());
  return false;
}

}  // namespace farheap::segment
