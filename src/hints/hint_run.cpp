// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: what is locked belongs to objects that live. It is unlocked before the object is given back, with the
// mutex held: so the thread never locks what lies there afterwards.
#include "hints/hint_run.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/inside_runtime.hpp"
#include "base/log.hpp"
#include "base/units.hpp"
#include "os/runtime_threads.hpp"
#include "profile/recording.hpp"

namespace farheap::hints {

using plan::HintKind;
using plan::PageRange;
using plan::PlannedSites;
using profile::kLargeObjectBytes;

namespace {

constexpr std::chrono::milliseconds kGroup{2};  // objects come in groups
constexpr std::chrono::milliseconds kLook{2};
constexpr std::uint64_t kLeadOfRoom = 8;
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;  // of an entry of pagemap

std::atomic<HintRun*> g_hints = nullptr;

std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uint64_t>(at); }
void* at(std::uint64_t address) { return reinterpret_cast<void*>(address); }  // NOLINT(performance-no-int-to-ptr)

}  // namespace

HintRun* hints_now() { return g_hints.load(std::memory_order_acquire); }

Result<std::unique_ptr<HintRun>> HintRun::make(plan::HintFile file) {
  auto hints = file.hints();
  if (!hints) return fail(std::move(hints.error()));
  auto sites = profile::CallSites::make(plan::kPlannedStacks);
  if (!sites) return fail(std::move(sites.error()));
  const int page_map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (page_map < 0) {
    return fail(ErrorCode::kPermission, "cannot see what is in memory", "/proc/self/pagemap", std::strerror(errno), "");
  }
  return std::unique_ptr<HintRun>(new HintRun(std::move(file), std::move(*hints), std::move(*sites), page_map));
}

HintRun::HintRun(plan::HintFile file, plan::HintPlan hints, profile::CallSites sites, int page_map)
    : file_(std::move(file)), hints_(std::move(hints)), sites_(std::move(sites)), page_map_(page_map) {
  const auto& objects = hints_.phase().objects;
  for (std::uint32_t i = 0; i < objects.size(); ++i) objects_.try_emplace({objects[i].site, objects[i].number}, i);
}

// ---- the program's threads

void HintRun::allocated(const void* object, std::size_t bytes, const void* caller, const void* frame) {
  if (object == nullptr || bytes < kLargeObjectBytes || base::t_inside_runtime) return;
  const base::InsideRuntime inside;
  const int before = errno;
  const profile::SiteId site = sites_.site_of(caller, frame);
  if (site != profile::CallSites::kNoSite) {
    base::LockGuard lock(mutex_);
    const std::uint32_t planned = planned_.of(site, sites_, hints_.plan);
    if (planned != PlannedSites::kNotPlanned) {
      const std::uint64_t first = address_of(object);
      end_objects(first, first + bytes);  // given back unseen
      const std::uint32_t number = numbers_.born(planned);
      const auto found = objects_.find({planned, number});
      const bool is_known = found != objects_.end();
      living_[first] = {planned, number, is_known ? found->second : PlannedSites::kNotPlanned, bytes, {}};
      if (is_known) {
        file_.page().recognised.fetch_add(1);
        tell_change();
      }
    }
  }
  errno = before;
}

void HintRun::freed(const void* object) {
  if (base::t_inside_runtime) return;
  const base::InsideRuntime inside;
  base::LockGuard lock(mutex_);
  if (living_.contains(address_of(object))) end_objects(address_of(object), address_of(object) + 1);
}

void HintRun::unmapped(const void* begin, std::size_t bytes) {
  if (base::t_inside_runtime || bytes == 0) return;
  const base::InsideRuntime inside;
  base::LockGuard lock(mutex_);
  end_objects(address_of(begin), address_of(begin) + bytes);
}

// All that have a byte there.
void HintRun::end_objects(std::uint64_t first, std::uint64_t end) {
  auto one = living_.upper_bound(first);
  if (one != living_.begin()) {
    const auto before = std::prev(one);
    if (before->first + before->second.bytes > first) one = before;
  }
  bool was_known = false;
  while (one != living_.end() && one->first < end) {
    Living& living = one->second;
    unlock(living, living.locked);
    numbers_.died(living.site, living.number);
    was_known |= living.object != PlannedSites::kNotPlanned;
    one = living_.erase(one);
  }
  if (was_known) tell_change();
}

void HintRun::tell_change() {
  is_told_ = false;
  if (!has_thread_) has_thread_ = static_cast<bool>(os::start_runtime_thread(work, this));
  if (!has_thread_ && !std::exchange(has_warned_, true)) {
    base::log(base::LogLevel::kWarn, "process {} has no hints: no thread can be made", getpid());
  }
  changed_.notify_one();
}

// ---- the thread

void* HintRun::work(void* self) {
  auto& run = *static_cast<HintRun*>(self);
  for (;;) {
    run.wait_for_change();
    if (run.file_.page().kind == HintKind::kLock) {
      run.lock_chosen();
    } else {
      run.follow_until_change();
    }
  }
  return nullptr;
}

void HintRun::wait_for_change() {
  {
    base::LockGuard lock(mutex_);
    while (is_told_) changed_.wait(mutex_);
  }
  base::sleep_for(kGroup);
}

std::vector<plan::LiveObject> HintRun::planned_objects() const {
  std::vector<plan::LiveObject> objects;
  for (const auto& [first, living] : living_) {
    if (living.object != PlannedSites::kNotPlanned) objects.push_back({living.object, first, living.bytes});
  }
  return objects;
}

// First, parts that are no longer chosen give room.
void HintRun::lock_chosen() {
  base::LockGuard lock(mutex_);
  is_told_ = true;
  const auto objects = planned_objects();
  const auto chosen = plan::choose_locked(hints_, objects, file_.page().room_bytes);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    Living& living = living_.at(objects[i].first);
    unlock(living, plan::without(living.locked, chosen[i]));
  }
  for (std::size_t i = 0; i < objects.size(); ++i) this->lock(living_.at(objects[i].first), chosen[i]);
}

// `ranges` may be living.locked itself.
void HintRun::unlock(Living& living, const std::vector<PageRange>& ranges) {
  for (const PageRange& range : ranges) {
    munlock(at(range.first), range.bytes);
    count_locked(-static_cast<std::int64_t>(range.bytes));
  }
  living.locked = plan::without(living.locked, ranges);
}

void HintRun::lock(Living& living, const std::vector<PageRange>& chosen) {
  for (const PageRange& range : plan::without(chosen, living.locked)) {
    if (mlock(at(range.first), range.bytes) == 0) {
      count_locked(static_cast<std::int64_t>(range.bytes));
      living.locked.push_back(range);
      continue;
    }
    const int why = errno;
    munlock(at(range.first), range.bytes);  // what was locked of it
    file_.page().refusals.fetch_add(1);
    if (!std::exchange(has_warned_, true)) {
      base::log(base::LogLevel::kWarn, "process {} cannot lock {} bytes of memory: {}", getpid(), range.bytes,
                std::strerror(why));
    }
  }
  std::ranges::sort(living.locked, {}, &PageRange::first);
}

void HintRun::count_locked(std::int64_t bytes) {
  locked_bytes_ += static_cast<std::uint64_t>(bytes);
  std::atomic<std::uint64_t>& shown = file_.page().most_locked_bytes;
  std::uint64_t most = shown.load();
  while (locked_bytes_ > most && !shown.compare_exchange_weak(most, locked_bytes_)) {
  }
}

void HintRun::follow_until_change() {
  std::vector<bool> in_view;
  {
    base::LockGuard lock(mutex_);
    is_told_ = true;
    follower_ = plan::UseFollower(hints_.phase(), planned_objects(), file_.page().room_bytes / kLeadOfRoom);
    for (const PageRange& part : follower_.parts()) in_view.push_back(is_in_view(part.first + part.bytes / 2));
  }
  if (in_view.empty()) return;
  for (;;) {
    base::LockGuard lock(mutex_);
    if (!is_told_) return;
    look(in_view);
    changed_.wait_for(mutex_, kLook);
  }
}

void HintRun::look(std::vector<bool>& in_view) {
  for (std::uint32_t i = 0; i < in_view.size(); ++i) {
    const PageRange& part = follower_.parts()[i];
    const bool was = in_view[i];
    in_view[i] = is_in_view(part.first + part.bytes / 2);
    if (was || !in_view[i]) continue;
    for (const std::uint32_t next : follower_.used(i)) advise(follower_.parts()[next]);
  }
}

void HintRun::advise(PageRange range) {
  if (madvise(at(range.first), range.bytes, MADV_WILLNEED) == 0) {
    file_.page().advised_bytes.fetch_add(range.bytes);
  } else {
    file_.page().refusals.fetch_add(1);
  }
}

bool HintRun::is_in_view(std::uint64_t address) const {
  std::uint64_t entry = 0;
  const auto place = static_cast<off_t>(address / base::kPageBytes * sizeof entry);
  return pread(page_map_, &entry, sizeof entry, place) == sizeof entry && (entry & kPresent) != 0;
}

// ---- begin and end

static void forget_hints() { g_hints.store(nullptr, std::memory_order_release); }

// Hints are advice: without them the program runs as ever, and is told.
__attribute__((constructor)) static void start() {
  const char* const path = base::environment(plan::kHintsVariable);
  if (path == nullptr) return;
  const base::InsideRuntime inside;
  auto file = plan::HintFile::open(path);
  auto made = file ? HintRun::make(std::move(*file)) : fail(std::move(file.error()));
  if (!made) {
    base::log(base::LogLevel::kWarn, "process {} has no hints: {}", getpid(), made.error().message());
    return;
  }
  pthread_atfork(nullptr, nullptr, forget_hints);
  g_hints.store(made->release(), std::memory_order_release);  // until the process ends
}

}  // namespace farheap::hints
