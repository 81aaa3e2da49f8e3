// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/run_page.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

namespace farheap::base {

static bool is_gone(std::int32_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

RunSlot& RunPage::claim(std::int32_t pid) {
  for (auto& slot : slots) {
    if (slot.pid.load() != pid) continue;
    slot.promised_bytes.store(0);
    slot.inherited_bytes.store(0);  // the same process after an exec
    slot.watched.store(false);
    return slot;
  }
  for (auto& slot : slots) {
    std::int32_t holder = slot.pid.load();
    if (holder != 0 && !is_gone(holder)) continue;
    if (slot.pid.compare_exchange_strong(holder, pid)) {
      slot.bytes.store(0);
      slot.promised_bytes.store(0);
      slot.inherited_bytes.store(0);
      slot.watched.store(false);
      return slot;
    }
  }
  return slots[kSlots - 1];
}

void RunPage::release(RunSlot& slot) {
  slot.bytes.store(0);
  slot.pid.store(0);
}

std::uint64_t RunPage::total_bytes() {
  std::uint64_t total = 0;
  for (auto& slot : slots) {
    const std::int32_t pid = slot.pid.load(std::memory_order_relaxed);
    if (pid == 0) continue;
    const std::uint64_t bytes = slot.bytes.load(std::memory_order_relaxed);
    if (bytes != 0 && pid != getpid() && is_gone(pid)) {
      std::int32_t expected = pid;
      if (slot.pid.compare_exchange_strong(expected, 0)) slot.bytes.store(0);
      continue;
    }
    total += bytes;
  }
  raise_peak(total);
  return total;
}

std::uint64_t RunPage::promised_to_others(const RunSlot& own) const {
  std::uint64_t total = 0;
  for (const auto& slot : slots) {
    const std::int32_t pid = slot.pid.load(std::memory_order_relaxed);
    if (pid == 0 || &slot == &own) continue;
    const std::uint64_t promised = std::max(slot.bytes.load(), slot.promised_bytes.load());
    if (promised != 0 && !is_gone(pid)) total += promised;
  }
  return total;
}

void RunPage::raise_peak(std::uint64_t total) {
  std::uint64_t peak = counters.peak_bytes.load(std::memory_order_relaxed);
  while (total > peak && !counters.peak_bytes.compare_exchange_weak(peak, total)) {
  }
}

static Result<RunPage*> map(int file, const std::string& subject) {
  void* at = mmap(nullptr, sizeof(RunPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return fail(errno_error(errno, "cannot map the run page", subject));
  return static_cast<RunPage*>(at);
}

Result<RunPage*> create_run_page(int file, std::uint64_t budget_bytes) {
  if (ftruncate(file, sizeof(RunPage)) != 0) return fail(errno_error(errno, "cannot size the run page", "memfd"));
  auto page = map(file, "memfd");
  if (!page) return page;
  new (*page) RunPage;
  (*page)->budget_bytes.store(budget_bytes);
  return page;
}

RunPage* find_run_page(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat status{};
  const bool whole = fstat(file, &status) == 0 && static_cast<std::size_t>(status.st_size) >= sizeof(RunPage);
  void* const at = whole ? mmap(nullptr, sizeof(RunPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  close(file);
  if (at == MAP_FAILED) return nullptr;
  auto* const page = static_cast<RunPage*>(at);
  return page->format.load() == kRunPageFormat ? page : nullptr;
}

Result<RunPage*> open_run_page(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return fail(errno_error(errno, "cannot open the run page", path));
  struct stat status{};
  if (fstat(file, &status) != 0 || static_cast<std::size_t>(status.st_size) < sizeof(RunPage)) {
    close(file);
    return fail(ErrorCode::kCorrupt, "cannot open the run page", path, "it is too short");
  }
  auto page = map(file, path);
  close(file);
  if (page && (*page)->format.load() != kRunPageFormat) {
    munmap(*page, sizeof(RunPage));
    return fail(ErrorCode::kCorrupt, "cannot open the run page", path, "it has another format",
                "use the runtime and the tool of one version");
  }
  return page;
}

}  // namespace farheap::base
