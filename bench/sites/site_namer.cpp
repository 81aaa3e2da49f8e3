// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Preloaded: names the site of every allocation that a program makes, and counts what that takes. SITES_WAY says how:
//
//   plain      not at all: the calls are counted
//   name       by a hash of the return address and the depth of the stack; the stack is unwound where a name is new
//   unwind_N   by a hash of the N innermost return addresses, unwound each time; N is 64 at the most
//   again_N    by the N innermost return addresses, unwound only where they are not known (profile/call_sites.hpp)
//   check      by all of these at once: how many stacks, unwound whole, have the same name. Its times mean nothing
//
// At the end each process writes one line of JSON into the folder SITES_FOLDER. Time is the processor's counter, less
// what it takes to read it.
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <x86intrin.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "profile/call_sites.hpp"

// The C library's own names. NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
extern void* __libc_stack_end;
}
// NOLINTEND(bugprone-reserved-identifier)

namespace {

using farheap::profile::CallSites;

constexpr int kMostFrames = 64;
constexpr int kNearFrames = 4;
constexpr std::uint32_t kTreeFrames = 1u << 22;
constexpr std::size_t kSlots = std::size_t{1} << 18;  // a table that is fuller than three quarters takes no more

enum class Way { kPlain, kName, kUnwind, kAgain, kCheck };

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93u;
  return value ^ (value >> 29);
}

// Names that were seen. Keys are not 0.
class Names {
 public:
  struct Slot {
    std::atomic<std::uint64_t> key;
    std::atomic<std::uint64_t> stack, near;               // of the first allocation with this name; its 4 inner frames
    std::atomic<std::uint64_t> other_stacks, other_near;  // allocations with others
  };
  // nullptr if there is no room for a new one.
  Slot* find(std::uint64_t key, bool& is_new) {
    is_new = false;
    for (std::size_t at = key % kSlots;; at = (at + 1) % kSlots) {
      std::uint64_t found = slots_[at].key.load(std::memory_order_acquire);
      if (found == key) return &slots_[at];
      if (found != 0) continue;
      if (count_.load(std::memory_order_relaxed) >= kSlots / 4 * 3) return nullptr;
      if (slots_[at].key.compare_exchange_strong(found, key)) {
        count_.fetch_add(1, std::memory_order_relaxed);
        is_new = true;
        return &slots_[at];
      }
      if (found == key) return &slots_[at];
    }
  }
  std::uint64_t count() const { return count_.load(); }
  std::uint64_t sum(std::atomic<std::uint64_t> Slot::* what) const {
    std::uint64_t sum = 0;
    for (const Slot& slot : slots_) sum += (slot.*what).load();
    return sum;
  }

 private:
  Slot slots_[kSlots];
  std::atomic<std::uint64_t> count_;
};

struct Totals {
  std::atomic<std::uint64_t> allocations, bytes, ticks, new_names, new_ticks, frames, without_room;
};

Totals g_totals;
Names g_names, g_addresses, g_near, g_stacks;  // by address and depth; address alone; 4 frames; 64 frames
Names g_again_near, g_again;                   // by sites of 4 frames, and of 64
CallSites *g_sites, *g_near_sites;             // as long as the process
Way g_way = Way::kPlain;
int g_frames = kMostFrames;
std::uint64_t g_reading_ticks = 0;  // what two readings of the counter are apart
timespec g_begin_time;
std::uint64_t g_begin_ticks = 0;
__thread __attribute__((tls_model("initial-exec"))) bool t_inside = false;

std::uintptr_t stack_top() {
  return getpid() == gettid() ? reinterpret_cast<std::uintptr_t>(__libc_stack_end)
                              : static_cast<std::uintptr_t>(pthread_self());
}

// 0 while the thread has named nothing yet.
__thread __attribute__((tls_model("initial-exec"))) std::uintptr_t t_stack_top = 0;

std::uint64_t name_of(const void* caller, const void* frame) {
  if (t_stack_top == 0) t_stack_top = stack_top();
  const std::uint64_t depth = t_stack_top - reinterpret_cast<std::uintptr_t>(frame);
  return mixed(reinterpret_cast<std::uint64_t>(caller) ^ (depth << 44) ^ (depth >> 20)) | 1;
}

// The caller's frames from `caller` on: those of this library are left out, whatever was inlined.
std::uint64_t stack_name(const void* caller, int most) {
  void* frames[kMostFrames + 8];
  const int count = unw_backtrace(frames, std::min(most + 6, kMostFrames + 8));
  int first = 0;
  while (first < count && frames[first] != caller) ++first;
  if (first == count) first = 0;
  std::uint64_t name = 1;
  const int end = std::min(count, first + most);
  for (int i = first; i < end; ++i) name = mixed(name ^ reinterpret_cast<std::uint64_t>(frames[i]));
  g_totals.frames.fetch_add(static_cast<std::uint64_t>(end - first), std::memory_order_relaxed);
  return name | 1;
}

void note(Names& names, std::uint64_t name, std::uint64_t stack, std::uint64_t near) {
  bool is_new;
  Names::Slot* const slot = names.find(name, is_new);
  if (slot == nullptr) {
    g_totals.without_room.fetch_add(1, std::memory_order_relaxed);
  } else if (is_new) {
    slot->stack.store(stack);
    slot->near.store(near);
  } else {
    if (slot->stack.load() != stack) slot->other_stacks.fetch_add(1, std::memory_order_relaxed);
    if (slot->near.load() != near) slot->other_near.fetch_add(1, std::memory_order_relaxed);
  }
}

void note_site(Names& names, farheap::profile::SiteId site, std::uint64_t stack, std::uint64_t near) {
  if (site == CallSites::kNoSite) {
    g_totals.without_room.fetch_add(1, std::memory_order_relaxed);
  } else {
    note(names, site, stack, near);
  }
}

void check(const void* caller, const void* frame) {
  const std::uint64_t stack = stack_name(caller, kMostFrames), near = stack_name(caller, kNearFrames);
  note(g_stacks, stack, stack, near);
  note(g_near, near, stack, near);
  note(g_names, name_of(caller, frame), stack, near);
  note_site(g_again_near, g_near_sites->site_of(caller, frame), stack, near);
  note_site(g_again, g_sites->site_of(caller, frame), stack, near);
  note(g_addresses, mixed(reinterpret_cast<std::uint64_t>(caller)) | 1, stack, near);
}

__attribute__((always_inline)) inline void name_site(std::size_t bytes, const void* caller, const void* frame) {
  if (t_inside) return;
  t_inside = true;
  g_totals.allocations.fetch_add(1, std::memory_order_relaxed);
  g_totals.bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (g_way == Way::kCheck) {
    check(caller, frame);
  } else if (g_way != Way::kPlain) {
    bool is_new = false;
    const std::uint64_t before = __rdtsc();
    if (g_way == Way::kName) {
      Names::Slot* slot = g_names.find(name_of(caller, frame), is_new);
      if (is_new && slot != nullptr) slot->stack.store(stack_name(caller, kMostFrames));
    } else if (g_way == Way::kAgain) {
      const std::uint32_t sites = g_sites->tree_frames();
      if (g_sites->site_of(caller, frame) == CallSites::kNoSite)
        g_totals.without_room.fetch_add(1, std::memory_order_relaxed);
      is_new = g_sites->tree_frames() != sites;
    } else {
      (void)g_names.find(stack_name(caller, g_frames), is_new);
    }
    const std::uint64_t took = __rdtsc() - before;
    const std::uint64_t ticks = took - std::min(took, g_reading_ticks);
    g_totals.ticks.fetch_add(ticks, std::memory_order_relaxed);
    if (is_new) {
      g_totals.new_names.fetch_add(1, std::memory_order_relaxed);
      g_totals.new_ticks.fetch_add(ticks, std::memory_order_relaxed);
    }
  }
  t_inside = false;
}

double ticks_per_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double ns = static_cast<double>(now.tv_sec - g_begin_time.tv_sec) * 1e9 +
                    static_cast<double>(now.tv_nsec - g_begin_time.tv_nsec);
  return static_cast<double>(__rdtsc() - g_begin_ticks) / ns;
}

std::uint64_t ticks_of_reading() {
  std::uint64_t least = ~std::uint64_t{0};
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t before = __rdtsc();
    least = std::min<std::uint64_t>(least, __rdtsc() - before);
  }
  return least;
}

CallSites* make_sites(int frames) {
  auto made = CallSites::make({.tree_frames = kTreeFrames, .frames = static_cast<unsigned>(frames)});
  if (!made) {
    (void)!write(2, "site_namer: no addresses for the table of sites\n", 48);
    _exit(99);
  }
  return new CallSites(std::move(*made));
}

__attribute__((constructor)) void begin() {
  clock_gettime(CLOCK_MONOTONIC, &g_begin_time);
  g_begin_ticks = __rdtsc();
  g_reading_ticks = ticks_of_reading();
  const char* way = std::getenv("SITES_WAY");
  if (way == nullptr) return;
  t_inside = true;
  if (std::strcmp(way, "name") == 0) g_way = Way::kName;
  if (std::strcmp(way, "check") == 0) g_way = Way::kCheck;
  if (std::strncmp(way, "unwind_", 7) == 0) {
    g_frames = std::clamp(std::atoi(way + 7), 1, kMostFrames);
    g_way = Way::kUnwind;
  }
  if (std::strncmp(way, "again_", 6) == 0) {
    g_frames = std::clamp(std::atoi(way + 6), 1, kMostFrames);
    g_way = Way::kAgain;
  }
  g_sites = make_sites(g_way == Way::kAgain ? g_frames : kMostFrames);
  g_near_sites = make_sites(kNearFrames);
  t_inside = false;
}

__attribute__((destructor)) void end() {
  t_inside = true;
  const char* folder = std::getenv("SITES_FOLDER");
  if (folder == nullptr || g_totals.allocations == 0) return;
  char path[4096], line[1024];
  std::snprintf(path, sizeof path, "%s/%d.json", folder, getpid());
  const double rate = ticks_per_ns();
  const auto ns = [rate](std::uint64_t ticks) { return static_cast<double>(ticks) / rate; };
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  using Slot = Names::Slot;
  const int length = std::snprintf(
      line, sizeof line,
      R"({"allocations":%llu,"bytes":%llu,"ns":%.0f,"new_names":%llu,"new_ns":%.0f,"frames":%llu,"without_room":%llu,)"
      R"("stacks":%llu,"near":%llu,"near_other_stack":%llu,"names":%llu,"name_other_stack":%llu,"name_other_near":%llu,)"
      R"("addresses":%llu,"address_other_stack":%llu,"address_other_near":%llu,)"
      R"("again_near":%llu,"again_near_other_near":%llu,"again":%llu,"again_other_stack":%llu})"
      "\n",
      number(g_totals.allocations), number(g_totals.bytes), ns(g_totals.ticks), number(g_totals.new_names),
      ns(g_totals.new_ticks), number(g_totals.frames), number(g_totals.without_room), number(g_stacks.count()),
      number(g_near.count()), number(g_near.sum(&Slot::other_stacks)), number(g_names.count()),
      number(g_names.sum(&Slot::other_stacks)), number(g_names.sum(&Slot::other_near)), number(g_addresses.count()),
      number(g_addresses.sum(&Slot::other_stacks)), number(g_addresses.sum(&Slot::other_near)),
      number(g_again_near.count()), number(g_again_near.sum(&Slot::other_near)), number(g_again.count()),
      number(g_again.sum(&Slot::other_stacks)));
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0 || write(file, line, static_cast<std::size_t>(length)) != length) {
    (void)!write(2, "site_namer: cannot write into SITES_FOLDER\n", 43);
  }
  if (file >= 0) close(file);
}

}  // namespace

// Each says where it was called from: inlined into another function of this library it would be called from there.
#define SITES_CALL extern "C" __attribute__((visibility("default"), noinline))
#define SITES_NAME(bytes) name_site(bytes, __builtin_return_address(0), __builtin_frame_address(0))

SITES_CALL void* malloc(std::size_t bytes) {
  SITES_NAME(bytes);
  return __libc_malloc(bytes);
}
SITES_CALL void* calloc(std::size_t count, std::size_t each) {
  SITES_NAME(count * each);
  return __libc_calloc(count, each);
}
SITES_CALL void* realloc(void* at, std::size_t bytes) {
  SITES_NAME(bytes);
  return __libc_realloc(at, bytes);
}

__attribute__((noinline)) void* operator new(std::size_t bytes) {
  SITES_NAME(bytes);
  void* const made = __libc_malloc(bytes);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}
__attribute__((noinline)) void* operator new[](std::size_t bytes) {
  SITES_NAME(bytes);
  void* const made = __libc_malloc(bytes);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}
// The C library's free() takes them.
void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }
void operator delete[](void* at) noexcept { std::free(at); }
void operator delete[](void* at, std::size_t) noexcept { std::free(at); }
