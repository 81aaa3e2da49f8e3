// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/kernel_view.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "base/units.hpp"
#include "os/page_map.hpp"

namespace farheap::pager {

using base::kPageBytes;

// The system call itself: inside a program that runs on Farheap, madvise() is Farheap's own.
static void drop(std::byte* at, std::size_t bytes) {
  if (syscall(SYS_madvise, at, bytes, MADV_DONTNEED) != 0) {
    base::log(base::LogLevel::kError, "cannot drop {} bytes at {}: errno {}", bytes, static_cast<void*>(at), errno);
  }
}

Result<std::unique_ptr<KernelView>> KernelView::make(std::byte* base, std::size_t bytes, os::UserfaultFeatures wanted) {
  auto staging = os::Mapping::reserve(bytes, os::Access::kReadWrite);
  if (!staging) return fail(std::move(staging.error()));
  syscall(SYS_madvise, staging->data(), bytes, MADV_NOHUGEPAGE);
  syscall(SYS_madvise, staging->data(), bytes, MADV_DONTDUMP);
  auto userfault = os::Userfault::open(wanted);
  if (!userfault) return fail(std::move(userfault.error()));
  std::unique_ptr<KernelView> view(
      new KernelView(base, bytes, std::move(*staging), std::move(*userfault), wanted));
  if (Status watched = view->watch(); !watched) return fail(std::move(watched.error()));
  return view;
}

KernelView::KernelView(std::byte* base, std::size_t bytes, os::Mapping staging, os::Userfault userfault,
                       os::UserfaultFeatures wanted)
    : base_(base), bytes_(bytes), staging_(std::move(staging)), userfault_(std::move(userfault)), wanted_(wanted) {}

Status KernelView::watch() {
  if (Status status = userfault_.register_range(base_, bytes_); !status) return status;
  return userfault_.register_range(staging_.data(), bytes_);
}

Status KernelView::renew_in_child() {
  auto userfault = os::Userfault::open(wanted_);
  if (!userfault) return fail(std::move(userfault.error()));
  userfault_ = std::move(*userfault);
  return watch();
}

PageNumber KernelView::page_of(std::uintptr_t address) const {
  return (address - reinterpret_cast<std::uintptr_t>(base_)) / kPageBytes;
}

std::byte* KernelView::view_at(PageNumber page) const { return base_ + page * kPageBytes; }
std::byte* KernelView::staging_at(PageNumber page) const { return staging_.data() + page * kPageBytes; }
const std::byte* KernelView::staging(PageNumber page) const { return staging_at(page); }

void KernelView::take_out(PageRun run, std::span<Taken> answers) {
  if (userfault_.features().move) {
    take_out_by_move(run, answers);
  } else {
    take_out_by_copy(run, answers);
  }
}

void KernelView::take_out_by_move(PageRun run, std::span<Taken> answers) {
  int tries = 0;
  for (std::uint32_t at = 0; at < run.count;) {
    const PageNumber page = run.first + at;
    std::size_t done = 0;
    const int error = userfault_.move(staging_at(page), view_at(page), (run.count - at) * kPageBytes, done);
    const auto moved = static_cast<std::uint32_t>(done / kPageBytes);
    std::fill_n(answers.begin() + at, moved, Taken::kTaken);
    at += moved;
    if (error == 0 || moved != 0) continue;  // after progress the next call says what the next page has
    if ((error == EAGAIN || error == ENOMEM) && ++tries < 100) continue;
    tries = 0;
    if (error == ENOENT) {
      answers[at] = Taken::kGone;
    } else if (error == EBUSY) {
      // Shared with a forked process, or pinned. A pinned page is mapped by us alone; leave that.
      os::PageEntry entry;
      os::read_page_map(view_at(page), {&entry, 1});
      answers[at] = Taken::kRefused;
      if (!entry.exclusive) take_out_by_copy({page, 1}, answers.subspan(at, 1));
    } else {
      answers[at] = Taken::kRefused;  // EINVAL: locked or read-only
    }
    ++at;
  }
}

void KernelView::take_out_by_copy(PageRun run, std::span<Taken> answers) {
  if (userfault_.write_protect(view_at(run.first), run.count * kPageBytes, true) != 0) {
    std::fill_n(answers.begin(), run.count, Taken::kRefused);
    return;
  }
  os::PageEntry entries[512];
  for (std::uint32_t at = 0; at < run.count;) {
    const std::uint32_t count = std::min<std::uint32_t>(run.count - at, 512);
    os::read_page_map(view_at(run.first + at), {entries, count});
    for (std::uint32_t i = 0; i < count;) {
      // Runs of pages that are there: one copy, and one drop, each.
      std::uint32_t end = i;
      while (end < count && entries[end].present == entries[i].present) ++end;
      const bool present = entries[i].present;
      if (present) put(staging_at(run.first + at + i), view_at(run.first + at + i), (end - i) * kPageBytes);
      std::fill(answers.begin() + at + i, answers.begin() + at + end, present ? Taken::kTaken : Taken::kGone);
      i = end;
    }
    at += count;
  }
  drop(view_at(run.first), run.count * kPageBytes);
}

// Copies into a range that has no pages there yet, and wakes who waits for them.
void KernelView::put(std::byte* to, const std::byte* from, std::size_t bytes) {
  int tries = 0;
  for (std::size_t at = 0; at < bytes;) {
    std::size_t done = 0;
    const int error = userfault_.copy(to + at, from + at, bytes - at, done);
    at += done;
    if (error == 0 || done != 0) continue;
    if ((error == EAGAIN || error == ENOMEM) && ++tries < 1000) continue;
    if (error == ESRCH) return;  // the process is ending
    if (error == EEXIST) {       // somebody mapped the page behind our back; what it holds now is the program's
      userfault_.wake(to + at, kPageBytes);
      at += kPageBytes;
      continue;
    }
    base::stop(fmt::format("cannot put a page in at {}: errno {}", static_cast<void*>(to + at), error));
  }
}

void KernelView::put_back(PageRun run) {
  if (!userfault_.features().move) {
    copy_back(run);
    return drop_staging(run);
  }
  const std::size_t bytes = run.count * kPageBytes;
  int tries = 0;
  for (std::size_t at = 0; at < bytes;) {
    std::size_t done = 0;
    const int error = userfault_.move(view_at(run.first) + at, staging_at(run.first) + at, bytes - at, done);
    at += done;
    if (error == 0 || done != 0) continue;
    if ((error == EAGAIN || error == ENOMEM) && ++tries < 100) continue;
    tries = 0;
    // Shared with a forked process: copy, one page.
    put(view_at(run.first) + at, staging_at(run.first) + at, kPageBytes);
    drop(staging_at(run.first) + at, kPageBytes);
    at += kPageBytes;
  }
}

void KernelView::copy_back(PageRun run) { put(view_at(run.first), staging(run.first), run.count * kPageBytes); }
void KernelView::put_in(PageRun run, const std::byte* bytes) { put(view_at(run.first), bytes, run.count * kPageBytes); }
void KernelView::stage(PageRun run, const std::byte* bytes) {
  put(staging_at(run.first), bytes, run.count * kPageBytes);
}
void KernelView::drop_staging(PageRun run) { drop(staging_at(run.first), run.count * kPageBytes); }
void KernelView::drop_view(PageRun run) { drop(view_at(run.first), run.count * kPageBytes); }
void KernelView::wake(PageRun run) { userfault_.wake(view_at(run.first), run.count * kPageBytes); }

}  // namespace farheap::pager
