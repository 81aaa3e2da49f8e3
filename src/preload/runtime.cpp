// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "preload/runtime.hpp"

#include <errno.h>
#include <link.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/log.hpp"
#include "base/units.hpp"
#include "os/mapping.hpp"
#include "os/memory_group.hpp"
#include "os/own_descriptors.hpp"
#include "store/secrets.hpp"

extern char** environ;

namespace farheap::preload {

std::atomic<Runtime*> g_runtime{nullptr};

namespace {

constexpr std::size_t kArenaBytes = 64 * base::kGiB;  // of addresses
// Each process of a family has it. A store's buffers of megabytes would stay, one of each size.
constexpr std::size_t kMostWaiting = 256 * base::kKiB;

alignas(Runtime) unsigned char g_place[sizeof(Runtime)];
alignas(heap::Heap) unsigned char g_program_place[sizeof(heap::Heap)];
std::atomic<int> g_phase{0};  // 0 nothing, 1 being made, 2 the arena is there, 3 whole

Runtime& placed() { return *reinterpret_cast<Runtime*>(g_place); }

// The tool hears of it: the program did not run at all. Allocates nothing.
[[noreturn]] void end_unstarted() {
  const char* const path = getenv(base::kRunPageVariable);
  base::RunPage* const page = path != nullptr ? base::find_run_page(path) : nullptr;
  if (page != nullptr) page->counters.failed_starts.fetch_add(1);
  _exit(base::kStatusNotStarted);
}

[[noreturn]] void give_up(const Error& error) {
  base::log(base::LogLevel::kError, "{}", error.message());
  end_unstarted();
}

// There is nothing to allocate a message from.
[[noreturn]] void give_up_without_arena(int why) {
  base::log(base::LogLevel::kError, "cannot reserve {} GiB of addresses to start {} on Farheap: errno {}; {}",
            kArenaBytes / base::kGiB, program_invocation_short_name, why, os::remedy_for_addresses());
  end_unstarted();
}

// The descriptor that `farheap run` gave to all that it starts, under the number it has in the tool: for processes that
// may not look into the tool's (another user's, or without its capabilities). nullptr if it was closed on the way.
base::RunPage* inherited_run_page(const std::string& path) {
  const int file = atoi(path.c_str() + path.rfind('/') + 1);
  const std::string own = "/proc/self/fd/" + std::to_string(file);
  char name[64] = "";
  if (readlink(own.c_str(), name, sizeof name - 1) < 0 || strncmp(name, "/memfd:farheap-run", 18) != 0) return nullptr;
  auto page = base::open_run_page(own);
  if (!page) return nullptr;
  os::adopt_descriptor(file);
  return *page;
}

// The run's page, or, where the tool is not there any more (or never was), one of this process alone.
base::RunPage* join_run(const base::Options& options) {
  const std::uint64_t budget = options.memory != 0 ? options.memory : os::automatic_budget();
  if (!options.run_page.empty()) {
    if (base::RunPage* inherited = inherited_run_page(options.run_page)) return inherited;
    auto page = base::open_run_page(options.run_page);
    if (page) return *page;
    base::log(base::LogLevel::kWarn, "process {} is not counted in its run: {}", getpid(), page.error().message());
  }
  const int file = memfd_create(base::kRunPageName, MFD_CLOEXEC);
  auto page = base::create_run_page(file, budget);
  if (!page) give_up(page.error());
  close(file);
  return *page;
}

// In the loader's own words; its program headers tell how long it is.
void find_loader(Runtime& runtime) {
  const ElfW(Addr) base = _r_debug.r_ldbase;
  if (base == 0) return;
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(base);
  const auto* parts = reinterpret_cast<const ElfW(Phdr)*>(base + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i) {
    if (parts[i].p_type != PT_LOAD) continue;
    runtime.loader_bytes = std::max<std::uintptr_t>(runtime.loader_bytes, parts[i].p_vaddr + parts[i].p_memsz);
  }
  runtime.loader = base;
}

void forget_preload() { unsetenv("LD_PRELOAD"); }

}  // namespace

Runtime::Runtime() : arena_space(kArenaBytes), arena(arena_space, kMostWaiting) {
  if (!arena.usable()) give_up_without_arena(errno);
}

heap::Heap& early_arena() { return placed().arena; }

// Now, because a program may change its environment later, and while the store is opened.
static void find_password(Runtime& runtime) {
  std::string& uri = runtime.options.store;
  if (runtime.run_page->store[0] != 0) {
    uri = runtime.run_page->store;
    return;
  }
  auto whole = store::with_login_inside(uri);
  if (!whole) give_up(whole.error());
  uri = std::move(*whole);
}

static void make_whole(Runtime& runtime) {
  auto loaded = base::load_options(environ);
  if (!loaded) give_up(loaded.error());
  runtime.options = std::move(loaded->options);
  find_loader(runtime);
  base::set_log_level(runtime.options.log);
  runtime.run_page = join_run(runtime.options);
  find_password(runtime);
  auto segment = segment::PagedSegment::make(runtime.options, *runtime.run_page);
  if (!segment) give_up(segment.error());
  runtime.segment = std::move(*segment);
  runtime.program = new (g_program_place) heap::Heap(*runtime.segment);
  if (!runtime.program->usable()) {
    give_up({ErrorCode::kNoSpace, "cannot start", "farheap", "the heap's books have no memory",
             os::remedy_for_addresses()});
  }
  runtime.run_page->counters.processes.fetch_add(1);
}

Runtime* make_runtime() {
  int nothing = 0;
  if (g_phase.compare_exchange_strong(nothing, 1)) {
    base::InsideRuntime inside;
    new (g_place) Runtime;
    g_phase.store(2);
    make_whole(placed());
    g_runtime.store(&placed(), std::memory_order_release);
    g_phase.store(3);
    watch_forks();
    watch_quick_exit();
    if (Status prepared = prepare_for_foreign_malloc(placed()); !prepared) give_up(prepared.error());
    if (!placed().options.follow_exec) forget_preload();
    return &placed();
  }
  if (base::t_inside_runtime) return nullptr;  // the thread that makes it, allocating for itself
  while (g_phase.load() != 3) sched_yield();
  return &placed();
}

// For programs that never allocate: they count as reached all the same.
__attribute__((constructor)) static void start() { (void)runtime(); }

}  // namespace farheap::preload
