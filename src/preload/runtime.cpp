// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "preload/runtime.hpp"

#include <errno.h>
#include <link.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <optional>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "base/secret.hpp"
#include "base/units.hpp"
#include "os/mapping.hpp"
#include "os/memory_group.hpp"
#include "os/own_descriptors.hpp"
#include "profile/page_recorder.hpp"
#include "profile/page_sampler.hpp"
#include "profile/recorded_order.hpp"
#include "store/secrets.hpp"

namespace farheap::preload {

std::atomic<Runtime*> g_runtime{nullptr};
std::atomic<profile::AllocationObserver*> g_observer{nullptr};
std::atomic<heap::HeapRegions*> g_regions{nullptr};
std::atomic<plan::PlannedRegions*> g_planned_regions{nullptr};

namespace {

// Not in core dumps: what passes through it for a moment may be a password.
constexpr std::size_t kArenaBytes = 64 * base::kGiB;  // of addresses
// Each process of a family has it. A store's buffers of megabytes would stay, one of each size.
constexpr std::size_t kMostWaiting = 256 * base::kKiB;

alignas(Runtime) unsigned char g_place[sizeof(Runtime)];
alignas(heap::Heap) unsigned char g_program_place[sizeof(heap::Heap)];
std::atomic<int> g_phase{0};  // 0 nothing, 1 being made, 2 the arena is there, 3 whole

Runtime& placed() { return *reinterpret_cast<Runtime*>(g_place); }

// The tool hears of it: the program did not run at all. Allocates nothing.
[[noreturn]] void end_unstarted() {
  base::RunPage* const page = base::find_run_page(base::environment(base::kRunPageVariable));
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

// One of this process alone.
base::RunPage* own_run(std::uint64_t budget) {
  const auto files = base::make_run_files(budget, program_invocation_short_name);
  if (!files) give_up(files.error());
  auto page = base::map_run_page(*files);
  if (!page) give_up(page.error());
  base::open_locks(**page, files->counters);
  close(files->configuration);
  close(files->counters);
  return *page;
}

// Its files stay open, under the number that those have got which this process executes: for processes that may not
// look into the tool's (another user's, or without its capabilities).
base::RunPage* join_run(const base::RunPlace& place) {
  auto page = base::open_run_page(place);
  if (!page) {
    base::log(base::LogLevel::kWarn, "process {} is not counted in its run: {}", getpid(), page.error().message());
    return nullptr;
  }
  const base::RunFiles inherited = place.inherited();
  os::adopt_descriptor(inherited.configuration);
  os::adopt_descriptor(inherited.counters);
  base::open_locks(**page, place);
  return *page;
}

// The run's page, or, where the tool is not there any more (or never was), one of this process alone.
base::RunPage* find_run(const base::Options& options, const std::optional<base::RunPlace>& place) {
  base::RunPage* page = place ? join_run(*place) : nullptr;
  if (!place && !options.run_page.empty()) {
    base::log(base::LogLevel::kWarn, "process {} is not counted in its run: FARHEAP_RUN_PAGE is of another version",
              getpid());
  }
  if (page == nullptr) page = own_run(options.memory != 0 ? options.memory : os::automatic_budget());
  if (page->locks >= 0) page->locks = os::keep_descriptor(page->locks);
  return page;
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

Runtime::Runtime()
    : arena_space(kArenaBytes, segment::HugePages::kNo, segment::InCores::kNo), arena(arena_space, kMostWaiting) {
  if (!arena.usable()) give_up_without_arena(errno);
}

heap::Heap& early_arena() { return placed().arena; }

// The store's URI with its password, which nobody inherits: of the tool, or of the environment. Now, because a program
// may change its environment later. Empty where there is none; then the store says what it misses, if it is opened.
static base::Secret find_password(base::Options& options, const std::optional<base::RunPlace>& place) {
  if (place && place->password >= 0) {
    auto secret = base::read_secret_file(place->password_path());
    if (secret) return std::move(*secret);
    base::log(base::LogLevel::kInfo, "process {} has no password for its store: {}", getpid(),
              secret.error().message());
    return {};
  }
  auto whole = store::with_login_inside(options.store);
  if (!whole) give_up(whole.error());
  std::string shown = store::without_secrets(*whole);
  if (*whole == shown) return {};
  base::wipe(options.store);
  options.store = std::move(shown);
  auto secret = base::Secret::take(*whole);
  if (!secret) give_up(secret.error());
  return std::move(*secret);
}

// What an option asks for is asked for when paging begins.
static void hand_in_page_traces(Runtime& runtime) {
  const base::Options& options = runtime.options;
  if (!options.record_pages.empty()) {
    const std::uint64_t window_pages = std::max<std::uint64_t>(options.record_window / base::kPageBytes, 1);
    runtime.segment->record_uses(profile::page_recordings_at(options.record_pages, window_pages));
  }
  if (!options.expect_pages.empty()) {
    runtime.segment->expect_order([&options] { return profile::recorded_order(options.expect_pages); });
  }
  runtime.segment->sample_uses(profile::sample_pages);
}

static void start_recording(Runtime& runtime) {
  if (runtime.options.record_into.empty()) return;
  auto recorder = profile::Recorder::make(runtime.options.record_into,
                                          {runtime.segment->base(), runtime.segment->capacity_bytes()});
  if (!recorder) {
    return base::log(base::LogLevel::kWarn, "process {} is not in the profile: {}", getpid(),
                     recorder.error().message());
  }
  runtime.recorder = std::move(*recorder);
  runtime.segment->observe_faults(*runtime.recorder);
  g_observer.store(runtime.recorder.get(), std::memory_order_release);
}

// A region that is wanted comes as a whole if it takes at most three quarters of memory: so much may be said to be
// needed at once (pager/read_ahead.hpp).
static void watch_regions(Runtime& runtime) {
  runtime.region_watch = std::make_unique<plan::RegionWatch>(plan::RegionWatch::Regions{
      .region_of =
          [&](pager::PageNumber page) {
            return runtime.regions->region_of(runtime.segment->base() + page * base::kPageBytes);
          },
      .bytes_of = [&](unsigned region) { return runtime.regions->bytes_of(region); },
      .most_bytes = [&] { return runtime.segment->page_limit() / 4 * 3 * base::kPageBytes; },
      .need =
          [&](unsigned region) {
            runtime.regions->for_each_run(region, [&](std::byte* at, std::size_t bytes) {
              runtime.segment->hint(pager::HintKind::kWillNeed, at, bytes);
            });
          },
      .bytes_read = [&] { return runtime.run_page->counters.bytes_read_ahead.load(std::memory_order_relaxed); }});
  runtime.segment->observe_faults(*runtime.region_watch);
}

// Advice: without a plan, or with one of something else, the program runs as ever.
static Status follow_plan(Runtime& runtime) {
  const std::string& path = runtime.options.plan;
  auto bytes = plan::plan_bytes(path.c_str());
  if (!bytes) return fail(std::move(bytes.error()));
  auto plan = plan::read_plan(*bytes, path);
  if (!plan) return fail(std::move(plan.error()));
  auto planned = plan::PlannedRun::make(std::move(*plan), {runtime.segment->base(), runtime.segment->capacity_bytes()},
                                        plan::most_visits_in(runtime.run_page->budget_bytes.load()));
  if (!planned) return fail(std::move(planned.error()));
  if (plan::PlannedRegions* const regions = (*planned)->regions()) {
    static_assert(plan::kMostRegions <= heap::HeapRegions::kMostRegions);
    auto made = heap::HeapRegions::make(*runtime.segment, *runtime.program, regions->count());
    if (!made) return fail(std::move(made.error()));
    runtime.regions = std::move(*made);
    watch_regions(runtime);
  }
  runtime.plan = std::move(*planned);
  runtime.segment->ask_for_order(*runtime.plan);
  return {};
}

static void start_plan(Runtime& runtime) {
  if (runtime.options.plan.empty() || runtime.recorder) return;
  if (const Status followed = follow_plan(runtime); !followed) {
    return base::log(base::LogLevel::kWarn, "process {} has no plan: {}", getpid(), followed.error().message());
  }
  if (runtime.plan->has_order()) g_observer.store(runtime.plan.get(), std::memory_order_release);
}

static void make_whole(Runtime& runtime) {
  auto loaded = base::load_options(base::environment_lines());
  if (!loaded) give_up(loaded.error());
  runtime.options = std::move(loaded->options);
  find_loader(runtime);
  base::set_log_level(runtime.options.log);
  const auto place = base::RunPlace::parse(runtime.options.run_page);
  runtime.run_page = find_run(runtime.options, place);
  auto segment = segment::PagedSegment::make(runtime.options, *runtime.run_page, find_password(runtime.options, place));
  if (!segment) give_up(segment.error());
  runtime.segment = std::move(*segment);
  runtime.program = new (g_program_place) heap::Heap(*runtime.segment);
  if (!runtime.program->usable()) {
    give_up({ErrorCode::kNoSpace, "cannot start", "farheap", "the heap's books have no memory",
             os::remedy_for_addresses()});
  }
  hand_in_page_traces(runtime);
  start_recording(runtime);
  start_plan(runtime);
  runtime.segment->accompany(runtime.attached);
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
    if (placed().regions) {  // those who look there look at the runtime, too
      g_regions.store(placed().regions.get(), std::memory_order_release);
      g_planned_regions.store(placed().plan->regions(), std::memory_order_release);
    }
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
