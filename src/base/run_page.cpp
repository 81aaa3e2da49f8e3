// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/run_page.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>

#include "base/units.hpp"

namespace farheap::base {

// To come to life a child copies page tables and waits for a processor.
static constexpr std::int64_t kBirthNs = 500'000'000;

static std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// A negative number is that of no process, but of one that is being forked.
static bool is_gone(std::int32_t pid) { return pid > 0 && kill(pid, 0) != 0 && errno == ESRCH; }

static bool never_came(const RunSlot& slot) {
  if (slot.pid.load() >= 0) return false;
  const std::int64_t by = slot.born_by_ns.load();
  return by != 0 ? monotonic_ns() > by : is_gone(-slot.pid.load());
}

static void clear(RunSlot& slot) {
  slot.promised_bytes.store(0);
  slot.inherited_bytes.store(0);
  slot.watched.store(false);
  slot.short_of_room.store(false);
  slot.born_by_ns.store(0);
}

RunSlot& RunPage::take_free_slot(std::int32_t pid) {
  for (auto& slot : slots) {
    std::int32_t holder = slot.pid.load();
    if (holder != 0 && !is_gone(holder) && !never_came(slot)) continue;
    if (!slot.pid.compare_exchange_strong(holder, pid)) continue;
    slot.bytes.store(0);
    clear(slot);
    return slot;
  }
  return slots[kSlots - 1];
}

RunSlot& RunPage::claim(std::int32_t pid) {
  for (auto& slot : slots) {
    if (slot.pid.load() != pid) continue;
    clear(slot);  // the same process after an exec
    return slot;
  }
  return take_free_slot(pid);
}

RunSlot& RunPage::claim_for_child(std::int32_t parent, std::uint64_t promised_bytes, std::uint64_t inherited_bytes) {
  RunSlot& slot = take_free_slot(-parent);
  if (slot.pid.load() == -parent) {
    slot.promised_bytes.store(promised_bytes);
    slot.inherited_bytes.store(inherited_bytes);
  }
  return slot;
}

void RunPage::forked(RunSlot& expected, std::int32_t parent) {
  expected.born_by_ns.store(monotonic_ns() + kBirthNs);
  if (expected.pid.load() != -parent) expected.born_by_ns.store(0);  // it has come already
}

RunSlot& RunPage::be_born(RunSlot& expected, std::int32_t parent, std::int32_t pid) {
  std::int32_t unborn = -parent;
  if (!expected.pid.compare_exchange_strong(unborn, pid)) return take_free_slot(pid);
  expected.born_by_ns.store(0);
  return expected;
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

RunPage::Others RunPage::others(const RunSlot& own) {
  Others sum;
  for (auto& slot : slots) {
    std::int32_t pid = slot.pid.load(std::memory_order_relaxed);
    if (pid == 0 || &slot == &own) continue;
    if (never_came(slot)) {
      slot.born_by_ns.store(0);
      slot.pid.compare_exchange_strong(pid, 0);
      continue;
    }
    const std::uint64_t promised = std::max(slot.bytes.load(), slot.promised_bytes.load());
    if (promised == 0 || is_gone(pid)) continue;
    const bool pages = slot.watched.load(std::memory_order_relaxed);
    sum.promised_bytes += promised;
    sum.paging += pages;
    if (pages || slot.inherited_bytes.load() != 0) sum.most_to_give = std::max(sum.most_to_give, promised);
    sum.short_of_room |= slot.short_of_room.load(std::memory_order_relaxed);
  }
  return sum;
}

void RunPage::raise_peak(std::uint64_t total) {
  std::uint64_t peak = counters.peak_bytes.load(std::memory_order_relaxed);
  while (total > peak && !counters.peak_bytes.compare_exchange_weak(peak, total)) {
  }
}

HeatTable& RunPage::start_heat(RunSlot& slot) {
  auto* const table = reinterpret_cast<HeatTable*>(heat_[&slot - slots]);  // zeros are a table
  table->start(slot.pid.load(std::memory_order_relaxed));
  slot.heats.fetch_add(1, std::memory_order_release);
  return *table;
}

const HeatTable& RunPage::heat(std::size_t slot) const { return *reinterpret_cast<const HeatTable*>(heat_[slot]); }

// Not in a core dump: that would give every table of the page memory.
static void* map(int file, int access) {
  void* const at = mmap(nullptr, sizeof(RunPage), access, MAP_SHARED, file, 0);
  if (at != MAP_FAILED) syscall(SYS_madvise, at, sizeof(RunPage), MADV_DONTDUMP);
  return at;
}

static Result<RunPage*> map(int file, int access, const std::string& subject) {
  void* const at = map(file, access);
  if (at == MAP_FAILED) return fail(errno_error(errno, "cannot map the run page", subject));
  return static_cast<RunPage*>(at);
}

// Said here: the kernel would raise SIGXFSZ, which ends most programs without a word. What is in memory only counts,
// too.
static Status check_file_size_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= sizeof(RunPage)) return {};
  return fail(
      ErrorCode::kUnavailable, "cannot size the run page", "memfd",
      "`ulimit -f` allows files of " + format_size(limit.rlim_cur) + ", and it takes " + format_size(sizeof(RunPage)),
      "raise the limit");
}

Result<RunPage*> create_run_page(int file, std::uint64_t budget_bytes) {
  if (const Status allowed = check_file_size_limit(); !allowed) return fail(allowed.error());
  if (ftruncate(file, sizeof(RunPage)) != 0) return fail(errno_error(errno, "cannot size the run page", "memfd"));
  auto page = map(file, PROT_READ | PROT_WRITE, "memfd");
  if (!page) return page;
  new (*page) RunPage;  // without brackets: they would write the heat tables
  (*page)->started_ns.store(monotonic_ns());
  (*page)->budget_bytes.store(budget_bytes);
  return page;
}

RunPage* find_run_page(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat status{};
  const bool whole = fstat(file, &status) == 0 && static_cast<std::size_t>(status.st_size) >= sizeof(RunPage);
  void* const at = whole ? map(file, PROT_READ | PROT_WRITE) : MAP_FAILED;
  close(file);
  if (at == MAP_FAILED) return nullptr;
  auto* const page = static_cast<RunPage*>(at);
  return page->format.load() == kRunPageFormat ? page : nullptr;
}

static Result<RunPage*> open_page(const std::string& path, int how, int access) {
  const int file = open(path.c_str(), how | O_CLOEXEC);
  if (file < 0) return fail(errno_error(errno, "cannot open the run page", path));
  struct stat status{};
  // Every format begins with its number; other versions have other sizes.
  const bool known = fstat(file, &status) == 0;
  std::uint32_t format = 0;
  if (!known || pread(file, &format, sizeof format, 0) != sizeof format) {
    close(file);
    return fail(ErrorCode::kCorrupt, "cannot open the run page", path, "it is too short");
  }
  if (format != kRunPageFormat || static_cast<std::size_t>(status.st_size) < sizeof(RunPage)) {
    close(file);
    return fail(ErrorCode::kCorrupt, "cannot open the run page", path, "it has another format",
                "use the runtime and the tool of one version");
  }
  auto page = map(file, access, path);
  close(file);
  return page;
}

Result<RunPage*> open_run_page(const std::string& path) { return open_page(path, O_RDWR, PROT_READ | PROT_WRITE); }

Result<std::shared_ptr<const RunPage>> look_at_run_page(const std::string& path) {
  const auto page = open_page(path, O_RDONLY, PROT_READ);
  if (!page) return fail(page.error());
  return std::shared_ptr<const RunPage>(*page, [](const RunPage* at) { munmap(const_cast<RunPage*>(at), sizeof *at); });
}

}  // namespace farheap::base
