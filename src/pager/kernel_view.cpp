// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/kernel_view.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/units.hpp"
#include "os/copy_memory.hpp"
#include "os/drop_memory.hpp"
#include "os/page_map.hpp"

namespace farheap::pager {

using base::kPageBytes;

// The system call itself: inside a program that runs on Farheap, madvise() is Farheap's own.
static bool try_drop(std::byte* at, std::size_t bytes) { return syscall(SYS_madvise, at, bytes, MADV_DONTNEED) == 0; }

// Staging is locked for a moment while the program calls mlockall(). Its pages go all the same: a page that stayed
// would be taken for what is put there next.
static void drop_staged(std::byte* at, std::size_t bytes) {
  if (os::drop_though_locked(at, bytes)) return;
  if (syscall(SYS_munlock, at, bytes) == 0 && try_drop(at, bytes)) return;
  base::stop(fmt::format("cannot drop what has left, at {}: errno {}", static_cast<void*>(at), errno));
}

// A page that a forked process shares, or once shared (the kernel does not look whether the other is still there), is
// not moved until it is written. This writes nothing, but has the kernel do all that a write would. Only for pages
// that are there: a missing one would fault, and wait for the thread that is here.
static void make_ours_alone(std::byte* at, std::size_t pages) {
  os::PageEntry entries[512];
  pages = std::min<std::size_t>(pages, 512);
  if (!os::read_page_map(at, {entries, pages}) && !os::find_in_memory(at, {entries, pages})) return;
  std::size_t there = 0;
  while (there < pages && entries[there].present) ++there;
  if (there != 0) syscall(SYS_madvise, at, there * kPageBytes, MADV_POPULATE_WRITE);
}

Result<std::unique_ptr<KernelView>> KernelView::make(std::byte* base, std::size_t bytes, os::UserfaultFeatures wanted,
                                                     unsigned queues) {
  auto staging = os::Mapping::reserve(bytes, os::Access::kReadWrite);
  if (!staging) return fail(std::move(staging.error()));
  syscall(SYS_madvise, staging->data(), bytes, MADV_NOHUGEPAGE);
  syscall(SYS_madvise, staging->data(), bytes, MADV_DONTDUMP);
  syscall(SYS_munlock, staging->data(), bytes);
  auto opened = open(queues, wanted);
  if (!opened) return fail(std::move(opened.error()));
  return std::unique_ptr<KernelView>(new KernelView(base, bytes, std::move(*staging), std::move(*opened), wanted));
}

Result<KernelView::Queues> KernelView::open(unsigned queues, os::UserfaultFeatures wanted) {
  Queues opened;
  for (unsigned i = 0; i < queues; ++i) {
    auto one = os::Userfault::open(wanted);
    if (!one) return fail(std::move(one.error()));
    opened.push_back(std::move(*one));
  }
  return opened;
}

KernelView::KernelView(std::byte* base, std::size_t bytes, os::Mapping staging, Queues queues,
                       os::UserfaultFeatures wanted)
    : base_(base), bytes_(bytes), staging_(std::move(staging)), queues_(std::move(queues)), wanted_(wanted) {
  drops_at_once_ = features().move;  // which is older than what it takes
}

namespace {

// The stripe that the offset lies in is 2^answer bytes wide.
int width_of_stripe(std::size_t offset) {
  constexpr std::size_t kGiB = std::size_t{1} << 30;
  return offset < 4 * kGiB ? 26 : offset < 64 * kGiB ? 30 : 34;
}

}  // namespace

os::Userfault& KernelView::queue_of(PageNumber page) {
  const std::size_t offset = page * kPageBytes;
  return queues_[(offset >> width_of_stripe(offset)) % queues_.size()];
}

// `range`: the program's, or staging.
Status KernelView::watch_stripes(std::byte* range, std::size_t first, std::size_t end) {
  while (first < end) {
    const std::size_t width = std::size_t{1} << width_of_stripe(first);
    const std::size_t stop = queues_.size() == 1 ? end : std::min((first / width + 1) * width, end);
    if (Status status = queue_of(first / kPageBytes).register_range(range + first, stop - first); !status)
      return status;
    first = stop;
  }
  return {};
}

Status KernelView::watch(std::byte* at, std::size_t bytes) {
  const auto first = static_cast<std::size_t>(at - base_);
  return watch_stripes(base_, first, first + bytes);
}

Status KernelView::watch(const Runs& own) {
  for (const auto& [at, bytes] : own) {
    if (Status status = watch(at, bytes); !status) return status;
  }
  return watch_stripes(staging_.data(), 0, bytes_);
}

Status KernelView::renew_in_child(const Runs& own) {
  const unsigned queues = this->queues();
  queues_.clear();  // the parent's go first: the program may have left no further descriptor
  auto opened = open(queues, wanted_);
  if (!opened) return fail(std::move(opened.error()));
  queues_ = std::move(*opened);
  return watch(own);
}

void KernelView::unlock_staging() { syscall(SYS_munlock, staging_.data(), bytes_); }

PageNumber KernelView::page_of(std::uintptr_t address) const {
  return (address - reinterpret_cast<std::uintptr_t>(base_)) / kPageBytes;
}

std::byte* KernelView::view_at(PageNumber page) const { return base_ + page * kPageBytes; }
std::byte* KernelView::staging_at(PageNumber page) const { return staging_.data() + page * kPageBytes; }
const std::byte* KernelView::staging(PageNumber page) const { return staging_at(page); }

bool KernelView::read_shown(PageRun run, std::byte* into) const {
  return os::copy_memory(into, view_at(run.first), run.count * kPageBytes);
}

void KernelView::let_write(PageRun run) {
  std::byte* const at = view_at(run.first);
  const std::size_t bytes = run.count * kPageBytes;
  os::Userfault& queue = queue_of(run.first);
  keeps_guards_ ? queue.wake(at, bytes) : queue.write_protect(at, bytes, false);
}

void KernelView::guard(PageRun run) {
  const int error = queue_of(run.first).write_protect(view_at(run.first), run.count * kPageBytes, true);
  if (error == 0 || error == ESRCH) return;
  base::stop(fmt::format("cannot guard pages at {}: errno {}", static_cast<void*>(view_at(run.first)), error));
}

// The kernel does not move what it has pinned.
bool KernelView::tells_every_write() const {
  const os::UserfaultFeatures has = features();
  return has.move && has.kernel_faults && !has.notes_writes;
}

bool KernelView::take_written(PageNumber first, Written& written) {
  if (!features().notes_writes) return false;
  const std::size_t pages = std::min(written.size(), bytes_ / kPageBytes - first);
  return os::take_written(view_at(first), pages, written);
}

void KernelView::release(PageRun run) {
  os::Userfault& queue = queue_of(run.first);
  const int error = queue.write_protect(view_at(run.first), run.count * kPageBytes, false);
  if (error == 0 || error == ESRCH) return;
  if (!keeps_guards_) {  // the program may have mapped something of its own over a part of it
    for (std::uint32_t i = 0; i < run.count; ++i) queue.write_protect(view_at(run.first + i), kPageBytes, false);
    return wake(run);
  }
  base::stop(fmt::format("cannot release pages at {}: errno {}", static_cast<void*>(view_at(run.first)), error));
}

void KernelView::take_out(PageRun run, std::span<Taken> answers) {
  if (features().move) {
    take_out_by_move(run, answers);
  } else {
    take_out_by_copy(run, answers);
  }
}

// The kernel would move pages out of any anonymous mapping, and what is not watched does not come back.
bool KernelView::is_watched(PageRun run) {
  if (keeps_guards_) return true;  // nobody else maps anything there
  return queue_of(run.first).write_protect(view_at(run.first), run.count * kPageBytes, false) == 0;
}

void KernelView::take_out_by_move(PageRun run, std::span<Taken> answers) {
  if (strangers_.load(std::memory_order_relaxed) && !is_watched(run)) {
    answers[0] = Taken::kRefused;
    for (std::uint32_t i = 0; run.count > 1 && i < run.count; ++i)
      take_out_by_move({run.first + i, 1}, answers.subspan(i, 1));
    return;
  }
  os::Userfault& queue = queue_of(run.first);
  int tries = 0;
  std::uint32_t asked_until = 0;  // before it the kernel has been asked to make pages ours alone
  for (std::uint32_t at = 0; at < run.count;) {
    const PageNumber page = run.first + at;
    std::size_t done = 0;
    const int error = queue.move(staging_at(page), view_at(page), (run.count - at) * kPageBytes, done);
    const auto moved = static_cast<std::uint32_t>(done / kPageBytes);
    std::fill_n(answers.begin() + at, moved, Taken::kTaken);
    at += moved;
    if (error == 0 || moved != 0) continue;  // after progress the next call says what the next page has
    if ((error == EAGAIN || error == ENOMEM) && ++tries < 100) continue;
    tries = 0;
    if (error == ENOENT) {
      answers[at] = Taken::kGone;
    } else if (error == EBUSY && at >= asked_until) {
      asked_until = run.count;
      make_ours_alone(view_at(page), run.count - at);
      continue;
    } else {
      // Its staging place was empty, so this page was moved, though the kernel says no: since Linux 6.18, move_pages()
      // keeps the EAGAIN of a page whose entry changed meanwhile (by compaction, MADV_COLD) when it moves the page
      // next, so tries once more, and finds it there. Who took it for one in view would show zeros at the next touch.
      if (error == EEXIST) put_back({page, 1});
      answers[at] = Taken::kRefused;  // EBUSY: pinned; EINVAL: locked or read-only
    }
    ++at;
  }
}

void KernelView::take_out_by_copy(PageRun run, std::span<Taken> answers) {
  std::fill_n(answers.begin(), run.count, Taken::kRefused);
  os::PageEntry entries[512];
  for (std::uint32_t at = 0; at < run.count; at += 512) {
    const PageRun part{run.first + at, std::min<std::uint32_t>(run.count - at, 512)};
    const std::size_t bytes = part.count * kPageBytes;
    const bool watched = queue_of(part.first).write_protect(view_at(part.first), bytes, true) == 0;
    const bool all_known = watched && os::read_page_map(view_at(part.first), {entries, part.count});
    if (!all_known && !(watched && os::find_in_memory(view_at(part.first), {entries, part.count}))) {
      let_write(part);
      continue;
    }
    for (std::uint32_t i = 0; i < part.count;) {
      // Runs of pages that are there: one copy, and one drop, each.
      std::uint32_t end = i;
      while (end < part.count && entries[end].present == entries[i].present) ++end;
      const PageRun same{part.first + i, end - i};
      if (entries[i].present) {
        copy_out(same, answers.subspan(at + i, same.count));
      } else if (all_known) {
        std::fill_n(answers.begin() + at + i, same.count, Taken::kGone);
      } else {
        let_write(same);
      }
      i = end;
    }
  }
}

// Requires: the pages are there and write-protected. Those that cannot be read (the program has protected them) or
// dropped (it has locked them) stay as they were.
void KernelView::copy_out(PageRun run, std::span<Taken> answers) {
  os::Userfault& queue = queue_of(run.first);
  std::size_t copied = 0;
  const int error = queue.copy(staging_at(run.first), view_at(run.first), run.count * kPageBytes, copied);
  if (error == 0 && try_drop(view_at(run.first), run.count * kPageBytes)) {
    std::fill_n(answers.begin(), run.count, Taken::kTaken);
    return;
  }
  for (std::uint32_t i = 0; i < run.count; ++i) {
    std::byte* page = view_at(run.first + i);
    std::size_t one = i * kPageBytes < copied ? kPageBytes : 0;
    for (int tries = 0; one == 0 && tries < 100; ++tries) {
      const int why = queue.copy(staging_at(run.first + i), page, kPageBytes, one);
      if (why != EAGAIN && why != ENOMEM) break;
    }
    // Dropping some of them a second time does no harm: nobody can have put them in again meanwhile.
    if (one != 0 && try_drop(page, kPageBytes)) {
      answers[i] = Taken::kTaken;
      continue;
    }
    if (one != 0) drop_staged(staging_at(run.first + i), kPageBytes);
    let_write({run.first + i, 1});
  }
}

// Copies into a range that has no pages there yet, and wakes who waits for them.
void KernelView::put(os::Userfault& queue, std::byte* to, const std::byte* from, std::size_t bytes, Guard guard) {
  const bool guarded = guard == Guard::kOn;
  int tries = 0;
  for (std::size_t at = 0; at < bytes;) {
    std::size_t done = 0;
    const int error = queue.copy(to + at, from + at, bytes - at, done, guarded);
    at += done;
    if (error == 0 || done != 0) continue;
    if ((error == EAGAIN || error == ENOMEM) && ++tries < 1000) continue;
    if (error == ESRCH) return;  // the process is ending
    // Somebody mapped the page, or a mapping of his own, behind our back; what it holds now is the program's.
    if (error == EEXIST || error == ENOENT || error == EINVAL) {
      if (error == ENOENT) strangers_.store(true, std::memory_order_relaxed);
      std::size_t one = 0;
      if (error == EEXIST || queue.copy(to + at, from + at, kPageBytes, one, guarded) != 0) {
        queue.wake(to + at, kPageBytes);
      }
      at += kPageBytes;
      continue;
    }
    base::stop(fmt::format("cannot put a page in at {}: errno {}", static_cast<void*>(to + at), error));
  }
}

void KernelView::put_back(PageRun run) {
  if (!features().move) {
    copy_back(run, Guard::kOff);
    return drop_staging({&run, 1});
  }
  os::Userfault& queue = queue_of(run.first);
  const std::size_t bytes = run.count * kPageBytes;
  int tries = 0;
  for (std::size_t at = 0; at < bytes;) {
    std::size_t done = 0;
    const int error = queue.move(view_at(run.first) + at, staging_at(run.first) + at, bytes - at, done);
    at += done;
    if (error == 0 || done != 0) continue;
    if ((error == EAGAIN || error == ENOMEM) && ++tries < 100) continue;
    tries = 0;
    // There is a page in view: moved, though the kernel says no (as above), or the program's own. Otherwise shared with
    // a forked process, or beside a mapping of the program's: copy, one page. Where nothing is staged any more, who
    // copies would wait.
    if (error == EEXIST) {
      queue.wake(view_at(run.first) + at, kPageBytes);
    } else {
      put(queue, view_at(run.first) + at, staging_at(run.first) + at, kPageBytes);
    }
    drop_staged(staging_at(run.first) + at, kPageBytes);
    at += kPageBytes;
  }
}

void KernelView::copy_back(PageRun run, Guard guard) {
  put(queue_of(run.first), view_at(run.first), staging(run.first), run.count * kPageBytes, guard);
}
void KernelView::put_in(PageRun run, const std::byte* bytes, Guard guard) {
  put(queue_of(run.first), view_at(run.first), bytes, run.count * kPageBytes, guard);
}

// The kernel gives a watched range small pages only. So the huge page is filled elsewhere, which clears it, and moved.
std::uint32_t KernelView::put_in_huge(PageNumber first) {
  base::LockGuard one(making_huge_);
  if (!features().move || !makes_huge_) return 0;
  if (nursery_.size() == 0) {
    auto made = os::Mapping::reserve(2 * base::kHugePageBytes, os::Access::kReadWrite);
    makes_huge_ = made.has_value();
    if (!makes_huge_) return 0;
    nursery_ = std::move(*made);
    makes_huge_ = syscall(SYS_madvise, nursery_.data(), nursery_.size(), MADV_HUGEPAGE) == 0;
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(nursery_.data());
  auto* const filled = nursery_.data() + (base::round_up(begin, base::kHugePageBytes) - begin);
  if (!makes_huge_ || syscall(SYS_madvise, filled, base::kHugePageBytes, MADV_POPULATE_WRITE) != 0) {
    makes_huge_ = false;  // not here, and not later
    return 0;
  }
  std::size_t at = 0;
  for (int tries = 0; at < base::kHugePageBytes && tries < 100; ++tries) {
    std::size_t done = 0;
    const int error = queue_of(first).move(view_at(first) + at, filled + at, base::kHugePageBytes - at, done);
    at += done;
    if (error != 0 && done == 0 && error != EAGAIN && error != ENOMEM) break;
  }
  if (at < base::kHugePageBytes) {
    makes_huge_ = false;
    drop_staged(filled + at, base::kHugePageBytes - at);
  }
  return static_cast<std::uint32_t>(at / kPageBytes);
}

void KernelView::stage(PageRun run, const std::byte* bytes) {
  put(queue_of(run.first), staging_at(run.first), bytes, run.count * kPageBytes);
}

// One call for many runs is one interrupt to the other processors, instead of one for each run: with the program busy
// there, 0.7 us instead of 12 for a page (Linux 6.18 on two processors; one's own process can be advised so
// since 6.15).
void KernelView::drop_staging(std::span<const PageRun> runs) {
  while (!runs.empty()) {
    const std::size_t many = runs.size() > 1 && drops_at_once_.load(std::memory_order_relaxed) ? drop_many(runs) : 0;
    runs = runs.subspan(many);
    if (runs.empty()) return;
    drop_staged(staging_at(runs[0].first), runs[0].count * kPageBytes);  // locked, or the kernel has no such call
    runs = runs.subspan(1);
  }
}

// Returns how many runs, from the first on, are dropped.
std::size_t KernelView::drop_many(std::span<const PageRun> runs) {
  constexpr int kOwnProcess = -10001;  // PIDFD_SELF_THREAD_GROUP
  iovec parts[256];
  const std::size_t count = std::min(runs.size(), std::size(parts));
  for (std::size_t i = 0; i < count; ++i) parts[i] = {staging_at(runs[i].first), runs[i].count * kPageBytes};
  const long answer = syscall(SYS_process_madvise, kOwnProcess, parts, count, MADV_DONTNEED, 0);
  if (answer < 0 && errno != EINVAL) drops_at_once_ = false;
  std::size_t dropped = 0;
  for (long bytes = answer; dropped < count && bytes >= static_cast<long>(parts[dropped].iov_len); ++dropped) {
    bytes -= static_cast<long>(parts[dropped].iov_len);
  }
  return dropped;
}

// Pages that the program has locked go, too, where the kernel can do that; elsewhere they stay, as zeros. To write to a
// guarded one would wait for the pager, whose mutex this thread has.
void KernelView::drop_view(PageRun run) {
  if (os::drop_though_locked(view_at(run.first), run.count * kPageBytes)) return;
  for (std::uint32_t i = 0; i < run.count; ++i) {
    std::byte* const page = view_at(run.first + i);
    if (os::drop_though_locked(page, kPageBytes) || try_drop(page, kPageBytes)) continue;
    queue_of(run.first).write_protect(page, kPageBytes, false);
    std::memset(page, 0, kPageBytes);
  }
}
void KernelView::mend(PageNumber page) {
  alignas(kPageBytes) static const std::byte zeros[kPageBytes]{};
  put_in({page, 1}, zeros, keeps_guards_ ? Guard::kOn : Guard::kOff);  // where there is a page, it stays
}
void KernelView::wake(PageRun run) { queue_of(run.first).wake(view_at(run.first), run.count * kPageBytes); }

}  // namespace farheap::pager
