// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the allocators that a program brings along do with addresses: they reserve them, open and shut pieces of what
// they reserved, map over them and unmap them. Books and kernel change together, under runs_mutex_.
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/mutex.hpp"
#include "segment/at_the_tables.hpp"
#include "segment/paged_segment.hpp"

namespace farheap::segment {

namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

// The system call itself: inside a program that runs on Farheap, mprotect() is Farheap's own.
bool set_protection(std::byte* at, std::size_t bytes, int protection) {
  return syscall(SYS_mprotect, at, bytes, protection) == 0;
}

}  // namespace

bool PagedSegment::open_run(std::byte* at, std::size_t bytes, int protection) {
  if (protection == kReadWrite && books_.is_open(at, bytes)) return true;
  if (!set_protection(at, bytes, protection)) return false;
  books_.note_open(at, bytes);
  return true;
}

void PagedSegment::dump_opened(std::byte* at, std::size_t bytes, bool opened) {
  if (!books_.is_for_reservations(at)) {
    if (opened) note_handed_out_until(at + bytes);
  } else {
    syscall(SYS_madvise, at, bytes, opened ? MADV_DODUMP : MADV_DONTDUMP);
  }
}

std::byte* PagedSegment::reserve(std::size_t bytes) {
  AtTheBooks working(runs_mutex_);
  std::byte* at = books_.reserve(bytes);
  // What was unmapped when there were too many mappings is still open.
  if (at != nullptr && !books_.is_shut(at, bytes) && set_protection(at, bytes, PROT_NONE)) {
    books_.note_shut(at, bytes, true);
  }
  return at;
}

bool PagedSegment::obtain_at(std::byte* at, std::size_t bytes, int protection) {
  const bool opens = protection != PROT_NONE;
  if (opens) make_sure_of_budget(bytes);
  AtTheBooks working(runs_mutex_);
  if (!books_.obtain_at(at, bytes)) return false;
  if (opens ? !open_run(at, bytes, protection) : !set_protection(at, bytes, PROT_NONE)) {
    books_.give_back(at, bytes);
    return false;
  }
  if (!opens) books_.note_shut(at, bytes, true);
  dump_opened(at, bytes, opens);
  count_anew();
  return true;
}

bool PagedSegment::renew(std::byte* at, std::size_t bytes, int protection) {
  discard(at, bytes);
  forget_files(at, bytes);
  if (locked_.load(std::memory_order_relaxed)) syscall(SYS_munlock, at, bytes);
  if (undumped_.load(std::memory_order_relaxed)) syscall(SYS_madvise, at, bytes, MADV_DODUMP);
  if (!foreign_.load(std::memory_order_relaxed)) return set_protection(at, bytes, protection);
  AtTheTables working;
  base::SharedGuard life(life_);  // paging does not start in between: it would not watch these pages
  constexpr int kOver = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (syscall(SYS_mmap, at, bytes, protection, kOver, -1, 0L) == -1) return false;
  {
    base::LockGuard lock(runs_mutex_);
    books_.note_own(at, bytes);  // paging that starts from here on watches it
  }
  syscall(SYS_madvise, at, bytes, MADV_NOHUGEPAGE);
  if (!is_paging()) return true;
  if (Status watched = paging_->watch_again(at, bytes); !watched) give_up(watched.error());
  return true;
}

int PagedSegment::map_over(std::byte* at, std::size_t bytes, int protection) {
  const bool opens = protection != PROT_NONE;
  if (opens) {
    std::size_t more;
    {
      AtTheBooks working(runs_mutex_);
      more = books_.bytes_to_count(at, bytes);
    }
    if (more != 0) make_sure_of_budget(more);
  }
  if (!renew(at, bytes, protection)) return ENOMEM;
  AtTheBooks working(runs_mutex_);
  opens ? books_.note_open(at, bytes) : books_.note_shut(at, bytes, true);
  dump_opened(at, bytes, opens);
  count_anew();
  return 0;
}

bool PagedSegment::copy_file(std::byte* at, std::size_t bytes, std::byte* file) {
  if (!FileCopies::copy(at, file, bytes)) return false;
  copies_files_.store(true, std::memory_order_relaxed);
  AtTheBooks working(runs_mutex_);
  file_copies_.note(at, bytes, file);
  return true;
}

void PagedSegment::forget_files(std::byte* at, std::size_t bytes) {
  if (!copies_files_.load(std::memory_order_relaxed)) return;
  AtTheBooks working(runs_mutex_);
  file_copies_.forget(at, bytes);
}

bool PagedSegment::show_files(std::byte* at, std::size_t bytes) {
  if (!copies_files_.load(std::memory_order_relaxed)) return true;
  std::byte* const end = at + bytes;
  while (at < end) {
    std::optional<FileCopies::Part> part;
    {
      AtTheBooks working(runs_mutex_);
      part = file_copies_.first_within(at, static_cast<std::size_t>(end - at));
    }
    if (!part) return true;
    const bool writable = (part->protection & PROT_WRITE) != 0;
    if (!writable && !set_protection(part->at, part->bytes, kReadWrite)) return false;
    const bool copied = FileCopies::copy(part->at, part->file, part->bytes);
    if (!writable && !set_protection(part->at, part->bytes, part->protection)) return false;
    if (!copied) return false;
    at = part->at + part->bytes;
  }
  return true;
}

namespace {

int kernel_protect(std::byte* at, std::size_t bytes, int protection, int key) {
  const long result = key == PagedSegment::kNoKey ? syscall(SYS_mprotect, at, bytes, protection)
                                                  : syscall(SYS_pkey_mprotect, at, bytes, protection, key);
  return result == 0 ? 0 : errno;
}

}  // namespace

int PagedSegment::protect(std::byte* at, std::size_t bytes, int protection, int key) {
  if (!is_foreign(at, bytes)) return protect_own(at, bytes, protection, key);
  const base::InsideRuntime inside;  // the lists are the runtime's
  AddressBooks::Runs foreign, own;
  {
    AtTheBooks working(runs_mutex_);
    books_.split(at, bytes, foreign, own);
  }
  for (const auto& [part, length] : foreign) {
    if (const int why = kernel_protect(part, length, protection, key); why != 0) return why;
  }
  for (const auto& [part, length] : own) {
    if (const int why = protect_own(part, length, protection, key); why != 0) return why;
  }
  return 0;
}

int PagedSegment::protect_own(std::byte* at, std::size_t bytes, int protection, int key) {
  const bool opens = protection != PROT_NONE;
  std::size_t more = 0;
  {
    AtTheBooks working(runs_mutex_);
    if (!books_.is_handed_out(at, bytes)) return ENOMEM;
    if (opens) more = books_.bytes_to_count(at, bytes);
  }
  if (more != 0) make_sure_of_budget(more);
  AtTheBooks working(runs_mutex_);
  if (const int why = kernel_protect(at, bytes, protection, key); why != 0) return why;
  opens ? books_.note_open(at, bytes) : books_.note_shut(at, bytes, false);
  file_copies_.note_protection(at, bytes, protection);
  if (more != 0) dump_opened(at, bytes, true);
  count_anew();
  return 0;
}

void PagedSegment::empty(std::byte* at, std::size_t bytes) {
  discard(at, bytes);
  AtTheBooks working(runs_mutex_);
  if (books_.is_open(at, bytes)) return;
  books_.note_empty(at, bytes);
  count_anew();
}

void PagedSegment::unmap(std::byte* at, std::size_t bytes) {
  bool shut;
  {
    AtTheBooks working(runs_mutex_);
    shut = books_.is_shut(at, bytes) || books_.shut_runs() < kMostShutRuns;
  }
  bool renewed = renew(at, bytes, shut ? PROT_NONE : kReadWrite);
  if (!renewed && shut) {
    shut = false;
    renewed = renew(at, bytes, kReadWrite);
  }
  AtTheBooks working(runs_mutex_);
  if (renewed) {
    dump_opened(at, bytes, false);
    books_.note_free(at, bytes, shut);
  }  // else nobody may have the addresses again: what protection they have is not known
  count_anew();
}

void PagedSegment::make_way(std::byte* at, std::size_t bytes) {
  discard(at, bytes);
  forget_files(at, bytes);
  foreign_.store(true, std::memory_order_relaxed);
  AtTheBooks working(runs_mutex_);
  books_.note_foreign(at, bytes);
  count_anew();
}

bool PagedSegment::is_foreign(std::byte* at, std::size_t bytes) {
  if (!foreign_.load(std::memory_order_relaxed)) return false;
  AtTheBooks working(runs_mutex_);
  return !books_.is_own(at, bytes);
}

PagedSegment::Holding PagedSegment::holding(std::byte* at, std::size_t bytes) {
  AtTheBooks working(runs_mutex_);
  if (!books_.is_own(at, bytes)) return books_.is_foreign(at, bytes) ? Holding::kForeign : Holding::kMixed;
  if (books_.is_reserved(at, bytes)) return Holding::kReserved;
  if (books_.is_shut(at, bytes)) return Holding::kShut;
  return books_.is_open(at, bytes) ? Holding::kOpen : Holding::kMixed;
}

}  // namespace farheap::segment
