// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: a site that can be found from its head is whole, and stays as it is.
#include "profile/call_sites.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>

// The C library's: where the main thread's stack began. NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" void* __libc_stack_end;

namespace farheap::profile {

namespace {

// The stack that the C library gave a thread.
struct Stack {
  std::uintptr_t low, top;  // top 0: not known yet
};
__attribute__((tls_model("initial-exec"))) thread_local Stack t_stack;

constexpr std::uintptr_t kUnlimitedStack = std::uintptr_t{8} << 20;
// The kernel keeps that much free for a stack that grows, whatever the limit was raised to since.
constexpr std::uintptr_t kMostStack = std::uintptr_t{128} << 20;
// Stacks of one return address and depth that are told apart: recursions have any number.
constexpr unsigned kMostAlike = 64;

Stack own_stack() {
  if (gettid() == getpid()) {
    const auto top = reinterpret_cast<std::uintptr_t>(__libc_stack_end);
    rlimit limit{};
    const bool is_limited = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return {top - std::min(is_limited ? limit.rlim_cur : kUnlimitedStack, kMostStack), top};
  }
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {1, 1};
  void* low = nullptr;
  std::size_t bytes = 0;
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  return {reinterpret_cast<std::uintptr_t>(low), reinterpret_cast<std::uintptr_t>(low) + bytes};
}

// How far `frame` lies below the top of the thread's stack; 0 if it lies on another one.
std::uintptr_t depth_of(std::uintptr_t frame) {
  if (t_stack.top == 0) t_stack = own_stack();
  return frame >= t_stack.low && frame < t_stack.top ? t_stack.top - frame : 0;
}

std::size_t mixed(std::uintptr_t caller, std::uintptr_t depth) {
  std::uint64_t value = caller ^ (depth << 44) ^ (depth >> 20);
  value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93u;
  return value ^ (value >> 29);
}

// Any word of the thread's own stack, also between its variables: no sanitizer is to look.
__attribute__((no_sanitize("address", "thread", "undefined"))) std::uintptr_t word_at(std::uintptr_t address) {
  return *reinterpret_cast<const volatile std::uintptr_t*>(address);
}

}  // namespace

Result<CallSites> CallSites::make(Limits limits) {
  const std::size_t sites = std::size_t{limits.sites} + 1;  // none has number 0
  auto table = os::ReservedArray<Site>::make(sites);
  if (!table) return fail(std::move(table.error()));
  auto frames = os::ReservedArray<Frame>::make(sites * limits.frames);
  if (!frames) return fail(std::move(frames.error()));
  auto heads = os::ReservedArray<std::atomic<SiteId>>::make(2 * sites);
  if (!heads) return fail(std::move(heads.error()));
  return CallSites(limits, std::move(*table), std::move(*frames), std::move(*heads));
}

std::uint32_t CallSites::count() const {
  const std::atomic_ref made(const_cast<std::uint32_t&>(made_));
  return std::min(made.load(std::memory_order_acquire), limits_.sites);
}

SiteId CallSites::site_of(const void* caller, const void* frame) {
  const auto at = reinterpret_cast<std::uintptr_t>(frame);
  const Call call = {reinterpret_cast<std::uintptr_t>(caller), at, depth_of(at)};
  bool are_too_many = false;
  const SiteId site = site_of(call, are_too_many);
  return are_too_many ? site_of({call.caller, call.frame, 0}, are_too_many) : site;
}

SiteId CallSites::site_of(const Call& call, bool& are_too_many) {
  std::atomic<SiteId>& head = heads_[mixed(call.caller, call.depth) % heads_.capacity()];
  SiteId first = head.load(std::memory_order_acquire);
  unsigned alike = 0;
  if (const SiteId found = find(call, first, kNoSite, alike); found != kNoSite) return found;
  are_too_many = alike >= kMostAlike;
  if (are_too_many) return kNoSite;
  const SiteId made = make_site(call);
  if (made == kNoSite) return kNoSite;
  for (;;) {
    sites_[made].next = first;
    const SiteId seen_end = first;
    if (head.compare_exchange_weak(first, made, std::memory_order_acq_rel, std::memory_order_acquire)) return made;
    // Another thread had the same stack at the same time: its site counts, and the one made here stays unused.
    if (const SiteId found = find(call, first, seen_end, alike); found != kNoSite) return found;
  }
}

SiteId CallSites::find(const Call& call, SiteId first, SiteId end, unsigned& alike) const {
  for (SiteId site = first; site != end && alike < kMostAlike; site = sites_[site].next) {
    if (sites_[site].caller != call.caller || sites_[site].depth != call.depth) continue;
    if (is_stack_of(call, site)) return site;
    ++alike;
  }
  return kNoSite;
}

// With the same depth all places are below the top of the stack.
bool CallSites::is_stack_of(const Call& call, SiteId site) const {
  if (call.depth == 0) return true;
  return std::ranges::all_of(stack(site),
                             [&call](const Frame& one) { return word_at(call.frame + one.place) == one.address; });
}

SiteId CallSites::make_site(const Call& call) {
  const std::atomic_ref made(made_);
  if (made.load(std::memory_order_relaxed) >= limits_.sites) return kNoSite;
  const SiteId site = made.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (site > limits_.sites) return kNoSite;
  sites_[site] = {.next = kNoSite, .frames = 0, .caller = call.caller, .depth = call.depth};
  if (call.depth != 0) unwind(call, site);
  if (sites_[site].frames == 0) {  // the caller is known in any case
    frames_[std::size_t{site} * limits_.frames] = {call.caller, sizeof(void*)};
    sites_[site].frames = 1;
  }
  return site;
}

void CallSites::unwind(const Call& call, SiteId site) {
  struct Walk {
    std::uintptr_t frame, top;
    std::span<Frame> room;
    std::uint32_t found;
  } walk = {call.frame, call.frame + call.depth, {&frames_[std::size_t{site} * limits_.frames], limits_.frames}, 0};
  const auto step = [](_Unwind_Context* context, void* argument) {
    Walk& all = *static_cast<Walk*>(argument);
    const std::uintptr_t address = _Unwind_GetIP(context);
    // The stack pointer that this frame has when what it called has returned: the return address lies below.
    const std::uintptr_t slot = _Unwind_GetCFA(context) - sizeof(void*);
    if (slot <= all.frame) return _URC_NO_REASON;  // not yet out of the function that was called
    // Frames of signals were not called.
    if (slot >= all.top || word_at(slot) != address || all.found == all.room.size()) return _URC_END_OF_STACK;
    all.room[all.found++] = {address, slot - all.frame};
    return _URC_NO_REASON;
  };
  _Unwind_Backtrace(step, &walk);
  sites_[site].frames = walk.found;
}

}  // namespace farheap::profile
