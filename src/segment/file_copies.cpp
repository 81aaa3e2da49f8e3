// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/file_copies.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/units.hpp"

namespace farheap::segment {

// The system calls themselves: inside a program that runs on Farheap, munmap() and madvise() are Farheap's own.
static void unmap(std::byte* at, std::size_t bytes) { syscall(SYS_munmap, at, bytes); }

FileCopies::~FileCopies() {
  for (const auto& [at, copy] : copies_) unmap(copy.file, copy.bytes);
}

void FileCopies::note(std::byte* at, std::size_t bytes, std::byte* file) {
  copies_.insert_or_assign(at, Copy{bytes, file, PROT_READ | PROT_WRITE});
}

void FileCopies::split(std::byte* at) {
  auto after = copies_.lower_bound(at);
  if (after == copies_.begin()) return;
  auto& [first, copy] = *std::prev(after);
  const auto before = static_cast<std::size_t>(at - first);
  if (before >= copy.bytes) return;
  copies_.emplace_hint(after, at, Copy{copy.bytes - before, copy.file + before, copy.protection});
  copy.bytes = before;
}

std::pair<FileCopies::Copies::iterator, FileCopies::Copies::iterator> FileCopies::cut(std::byte* at,
                                                                                      std::size_t bytes) {
  split(at);
  split(at + bytes);
  return {copies_.lower_bound(at), copies_.lower_bound(at + bytes)};
}

void FileCopies::note_protection(std::byte* at, std::size_t bytes, int protection) {
  const auto [first, last] = cut(at, bytes);
  for (auto copy = first; copy != last; ++copy) copy->second.protection = protection;
}

void FileCopies::forget(std::byte* at, std::size_t bytes) {
  const auto [first, last] = cut(at, bytes);
  for (auto copy = first; copy != last; ++copy) unmap(copy->second.file, copy->second.bytes);
  copies_.erase(first, last);
}

std::optional<FileCopies::Part> FileCopies::first_within(std::byte* at, std::size_t bytes) const {
  auto found = copies_.upper_bound(at);
  if (found != copies_.begin() && std::prev(found)->first + std::prev(found)->second.bytes > at) --found;
  if (found == copies_.end() || found->first >= at + bytes) return std::nullopt;
  const auto& [begin, copy] = *found;
  std::byte* const first = std::max(begin, at);
  std::byte* const end = std::min(begin + copy.bytes, at + bytes);
  return Part{first, static_cast<std::size_t>(end - first), copy.file + (first - begin), copy.protection};
}

bool FileCopies::copy(std::byte* to, std::byte* file, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min<std::size_t>(bytes - done, base::kHugePageBytes);
    // It says what cannot be read; a touch would be the end of the program.
    if (syscall(SYS_madvise, file + done, piece, MADV_POPULATE_READ) != 0) return false;
    std::memcpy(to + done, file + done, piece);
    syscall(SYS_madvise, file + done, piece, MADV_DONTNEED);
    done += piece;
  }
  return true;
}

}  // namespace farheap::segment
