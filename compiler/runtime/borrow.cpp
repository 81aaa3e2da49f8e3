// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of far objects for functions that are not translated: from the pointer to the end of its object, for the time
// of the call. What has changed is written back, byte by byte, so that what other threads wrote beside it stays.
//
// Invariant: a copy ends where a page does, and another that is closed follows; when it is given back its pages are
// closed, too, and not used again before 64 GiB of others were. So a function that writes beyond, or keeps a pointer,
// is found.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "base/mutex.hpp"
#include "base/units.hpp"
#include "far.hpp"

namespace farheap::translate {
namespace {

constexpr std::size_t kArenaBytes = std::size_t{64} << 30;
constexpr int kClosed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

struct Loan {
  std::byte* pages;
  std::size_t page_bytes;  // the closed page behind them included
  std::vector<std::byte> before;
};

base::Mutex g_mutex;
std::atomic<std::byte*> g_arena{nullptr};  // changed under the mutex
std::size_t g_next FARHEAP_GUARDED_BY(g_mutex) = 0;
std::map<const std::byte*, Loan> g_loans FARHEAP_GUARDED_BY(g_mutex);  // by the copy's address

[[noreturn]] void no_memory(std::size_t bytes) {
  die(errno_error(errno, "cannot lend far memory to a function", base::format_size(bytes),
                  "give the process more memory or addresses"));
}

bool is_lent(const std::byte* pages, std::size_t bytes) FARHEAP_REQUIRES(g_mutex) {
  const auto after = g_loans.lower_bound(pages + bytes);
  if (after == g_loans.begin()) return false;
  const Loan& last = std::prev(after)->second;
  return last.pages + last.page_bytes > pages;
}

std::byte* open_pages(std::size_t bytes) FARHEAP_REQUIRES(g_mutex) {
  if (g_arena == nullptr) {
    void* const arena = mmap(nullptr, kArenaBytes, PROT_NONE, kClosed, -1, 0);
    if (arena == MAP_FAILED) no_memory(kArenaBytes);
    g_arena = static_cast<std::byte*>(arena);
  }
  if (bytes > kArenaBytes) {
    errno = ENOMEM;
    no_memory(bytes);
  }
  do {
    if (bytes > kArenaBytes - g_next) g_next = 0;
    if (!is_lent(g_arena + g_next, bytes)) break;
    g_next += base::kPageBytes;
  } while (true);
  std::byte* const pages = g_arena + g_next;
  g_next += bytes;
  if (mprotect(pages, bytes - base::kPageBytes, PROT_READ | PROT_WRITE) != 0) no_memory(bytes);
  return pages;
}

void close_pages(const Loan& loan) FARHEAP_REQUIRES(g_mutex) {
  if (mmap(loan.pages, loan.page_bytes, PROT_NONE, kClosed | MAP_FIXED, -1, 0) == MAP_FAILED)
    no_memory(loan.page_bytes);
}

void write_changes(std::byte* to, const std::byte* now, const std::vector<std::byte>& before) {
  for (std::size_t at = 0; at < before.size();) {
    if (now[at] == before[at]) {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    while (end < before.size() && now[end] != before[end]) ++end;
    __farheap_put(to + at, now + at, end - at);
    at = end;
  }
}

}  // namespace

bool was_lent(const void* at) {
  const std::byte* const arena = g_arena;
  return arena != nullptr && at >= arena && at < arena + kArenaBytes;
}

}  // namespace farheap::translate

using farheap::translate::is_far;

// NOLINTBEGIN(bugprone-reserved-identifier): names that no program has.
// What no object is at stays as it is: touching it is a fault.
FARHEAP_ENTRY void* __farheap_borrow(void* own) {
  namespace translate = farheap::translate;
  if (!is_far(own)) return own;
  std::size_t bytes = 0;
  {
    const translate::Inside inside;
    const auto found = inside.heap().bytes_from(own);
    if (!found) return own;
    bytes = *found;
  }
  // The object is a whole chunk of the stack, most of which is nothing.
  if (const std::size_t used = translate::on_stack_from(own); used != 0) bytes = std::min(bytes, used);
  translate::Loan loan{
      nullptr, farheap::base::round_up(bytes, farheap::base::kPageBytes) + farheap::base::kPageBytes, {}};
  loan.before.resize(bytes);
  __farheap_get(loan.before.data(), own, bytes);
  farheap::base::LockGuard lock(translate::g_mutex);
  loan.pages = translate::open_pages(loan.page_bytes);
  std::byte* const copy = loan.pages + loan.page_bytes - farheap::base::kPageBytes - bytes;
  std::memcpy(copy, loan.before.data(), bytes);
  translate::g_loans.emplace(copy, std::move(loan));
  return copy;
}

// A result that points into the copy, or to its end, points into the object.
FARHEAP_ENTRY void* __farheap_returned(void* result, void* copy, void* own) {
  if (copy == own) return result;
  farheap::base::LockGuard lock(farheap::translate::g_mutex);
  const std::size_t bytes = farheap::translate::g_loans.at(static_cast<std::byte*>(copy)).before.size();
  const std::size_t at = reinterpret_cast<std::uintptr_t>(result) - reinterpret_cast<std::uintptr_t>(copy);
  return at <= bytes ? static_cast<std::byte*>(own) + at : result;
}

FARHEAP_ENTRY void __farheap_return(void* copy, void* own) {
  namespace translate = farheap::translate;
  if (copy == own) return;
  const int before = errno;
  farheap::base::UniqueLock lock(translate::g_mutex);
  const auto found = translate::g_loans.find(static_cast<std::byte*>(copy));
  const translate::Loan& loan = found->second;
  lock.unlock();  // others' loans come and go meanwhile
  translate::write_changes(static_cast<std::byte*>(own), static_cast<std::byte*>(copy), loan.before);
  lock.lock();
  translate::close_pages(loan);
  translate::g_loans.erase(found);
  errno = before;
}
// NOLINTEND(bugprone-reserved-identifier)
