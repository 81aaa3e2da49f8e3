// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "idle_watch.hpp"

#include <algorithm>
#include <system_error>

#include "base/log.hpp"
#include "os/process_memory.hpp"
#include "os/process_name.hpp"
#include "os/run_memory.hpp"
#include "quiet_thread.hpp"

namespace farheap::tool {

namespace {

// While nothing pages, nobody is short of room.
constexpr std::chrono::milliseconds kNothingPages{50};

}  // namespace

IdleWatch::IdleWatch(base::RunPage& page)
    : page_(page),
      pid_namespace_(static_cast<std::uint32_t>(os::name_of_this_process().pid_namespace)),
      seen_(base::RunPage::kSlots - 1) {}

// Not at the last slot, which several processes may have.
void IdleWatch::look() {
  if (pid_namespace_ == 0) return;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    base::RunSlot& slot = page_.slots[i];
    const std::uint64_t unused = look_at(slot, seen_[i]);
    if (unused != slot.unused_bytes.load(std::memory_order_relaxed)) slot.unused_bytes.store(unused);
  }
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(base::Clock::now().time_since_epoch());
  page_.looked_ns.store(now.count());
}

// What of its promise the process does not use, if it is idle.
std::uint64_t IdleWatch::look_at(const base::RunSlot& slot, Seen& seen) const {
  const auto holder = slot.holder.load();
  const std::int32_t pid = holder.pid();
  // Who pages asks by itself.
  if (pid <= 0 || slot.watched.load() != 0 || holder.pid_namespace() != pid_namespace_) {
    if (seen.pid != 0) seen = {};
    return 0;
  }
  const std::uint64_t promised = std::max(slot.bytes.load(), slot.promised_bytes.load());
  const std::uint64_t grown = os::grown_bytes(slot);
  const bool is_quiet = seen.pid == pid && grown != 0 && grown <= seen.quiet_bytes + kLittle;
  if (!is_quiet) {
    seen = {.pid = pid, .quiet_bytes = grown};
    return 0;
  }
  if (++seen.quiet_looks < kQuietLooks) return 0;
  // What a forked process shares is in part its own, and all of it when its relatives have gone.
  if ((seen.quiet_looks - kQuietLooks) % kShareEvery == 0) {
    const std::uint64_t share = slot.inherited_bytes.load() == 0 ? grown : os::ProcessMemory::anonymous_share_of(pid);
    seen.share_bytes = share != 0 ? share : promised;
  }
  return promised - std::min(promised, std::max(grown, seen.share_bytes));
}

IdleWatchThread::IdleWatchThread(base::RunPage& page) : page_(page) {
  std::error_code why;
  thread_ = start_quietly([this] { watch(); }, why);
  if (why) base::log(base::LogLevel::kInfo, "no thread to watch idle processes: {}", why.message());
}

void IdleWatchThread::watch() {
  IdleWatch watch(page_);
  base::LockGuard lock(mutex_);
  while (!stopped_) {
    const bool pages = page_.counters.paging_processes.load(std::memory_order_relaxed) != 0;
    if (pages) watch.look();
    stop_.wait_for(mutex_, pages ? IdleWatch::kLookEvery : kNothingPages);
  }
}

IdleWatchThread::~IdleWatchThread() {
  {
    base::LockGuard lock(mutex_);
    stopped_ = true;
    stop_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace farheap::tool
