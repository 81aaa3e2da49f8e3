// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: what can be found from its head keeps its address and its place in the tree; sizes are only added.
#include "profile/call_sites.hpp"

#include <sys/resource.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "profile/code_ranges.hpp"

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

Stack own_stack(std::uintptr_t frame) {
  if (gettid() == getpid()) {
    const auto top = reinterpret_cast<std::uintptr_t>(__libc_stack_end);
    rlimit limit{};
    const bool is_limited = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return {top - std::min(is_limited ? limit.rlim_cur : kUnlimitedStack, kMostStack), top};
  }
  // What is mapped around it. The C library would tell more exactly, and allocate for that.
  Stack found = {1, 1};
  read_maps([&](std::string_view text) {
    MapsLine line;
    if (!read_maps_line(text, line) || frame >= line.end) return true;
    if (frame >= line.first) found = {line.first, line.end};
    return false;
  });
  return found;
}

// Where the stack begins on which `frame` lies; 0 if it is not the thread's own.
std::uintptr_t top_above(std::uintptr_t frame) {
  if (t_stack.top == 0) t_stack = own_stack(frame);
  return frame >= t_stack.low && frame < t_stack.top ? t_stack.top : 0;
}

// Any word of the thread's own stack, also between its variables: no sanitizer is to look.
__attribute__((no_sanitize("address", "thread", "undefined"))) std::uintptr_t word_at(std::uintptr_t address) {
  return *reinterpret_cast<const volatile std::uintptr_t*>(address);
}

}  // namespace

Result<CallSites> CallSites::make(Limits limits) {
  limits.frames = std::min(limits.frames, kMostFrames);
  const std::size_t frames = std::size_t{limits.tree_frames} + 1;
  auto tree = os::ReservedArray<TreeFrame>::make(frames);
  if (!tree) return fail(std::move(tree.error()));
  auto heads = os::ReservedArray<std::atomic<SiteId>>::make(std::bit_ceil(2 * frames));
  if (!heads) return fail(std::move(heads.error()));
  return CallSites(limits, std::move(*tree), std::move(*heads));
}

std::uint32_t CallSites::tree_frames() const {
  const std::atomic_ref made(const_cast<std::uint32_t&>(made_));
  return std::min(made.load(std::memory_order_acquire), limits_.tree_frames);
}

std::vector<CallSites::Frame> CallSites::frames(SiteId site) const {
  std::vector<Frame> frames;
  for (; site != kNoSite; site = tree_[site].inner) frames.push_back({site, tree_[site].inner, tree_[site].address});
  return frames;
}

std::vector<std::uintptr_t> CallSites::stack(SiteId site) const {
  std::vector<std::uintptr_t> addresses;
  for (const Frame& frame : frames(site)) addresses.push_back(frame.address);
  std::ranges::reverse(addresses);
  return addresses;
}

SiteId CallSites::known_site_of(const void* caller, const void* frame) const {
  const auto address = reinterpret_cast<std::uintptr_t>(caller), at = reinterpret_cast<std::uintptr_t>(frame);
  const std::uintptr_t top = top_above(at);
  if (top == 0) return outer_of(kNoSite, address);
  const Found known = follow(address, at + sizeof(void*), top);
  return known.is_whole ? known.frame : kNoSite;
}

SiteId CallSites::site_of(const void* caller, const void* frame) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller), at = reinterpret_cast<std::uintptr_t>(frame);
  const std::uintptr_t top = top_above(at);
  if (top == 0) {
    const SiteId alone = outer_of(kNoSite, address);
    return alone != kNoSite ? alone : make_outer(kNoSite, address);
  }
  const Found known = follow(address, at + sizeof(void*), top);
  if (known.is_whole || tree_frames() == limits_.tree_frames) return known.frame;
  Unwound room[kMostFrames];
  bool is_whole = false;
  const std::size_t found = unwind(at, top, {room, limits_.frames}, is_whole);
  if (found != 0) return join({room, found}, is_whole);
  room[0] = {address, at + sizeof(void*)};  // the caller is known in any case
  return join({room, 1}, true);
}

CallSites::Found CallSites::follow(std::uintptr_t caller, std::uintptr_t place, std::uintptr_t top) const {
  Found found = {outer_of(kNoSite, caller)};
  if (found.frame == kNoSite) return found;
  for (unsigned frames = 1; frames < limits_.frames; ++frames) {
    if (tree_[found.frame].varies.load(std::memory_order_relaxed)) return {found.frame, true};
    const SiteId outer = step(found.frame, place, top);
    if (outer == kNoSite) return {found.frame, tree_[found.frame].is_outermost.load(std::memory_order_relaxed)};
    found.frame = outer;
  }
  return {found.frame, true};
}

SiteId CallSites::step(SiteId frame, std::uintptr_t& place, std::uintptr_t top) const {
  for (const auto& known : tree_[frame].sizes) {
    const std::uint32_t size = known.load(std::memory_order_acquire);
    if (size == 0) break;
    if (place + size >= top) continue;
    const SiteId outer = outer_of(frame, word_at(place + size));
    if (outer == kNoSite) continue;
    place += size;
    return outer;
  }
  return kNoSite;
}

SiteId CallSites::join(std::span<const Unwound> stack, bool is_whole) {
  SiteId frame = kNoSite;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    if (i != 0) {
      if (tree_[frame].varies.load(std::memory_order_relaxed)) return frame;
      note_size(frame, stack[i].place - stack[i - 1].place);
    }
    const SiteId outer = make_outer(frame, stack[i].address);
    if (outer == kNoSite) return frame;
    frame = outer;
  }
  if (is_whole) tree_[frame].is_outermost.store(true, std::memory_order_relaxed);
  return frame;
}

void CallSites::note_size(SiteId frame, std::uintptr_t size) {
  for (auto& known : tree_[frame].sizes) {
    std::uint32_t seen = 0;
    if (known.compare_exchange_strong(seen, static_cast<std::uint32_t>(size), std::memory_order_acq_rel) ||
        seen == size)
      return;
  }
  tree_[frame].varies.store(true, std::memory_order_relaxed);
}

std::atomic<SiteId>& CallSites::head_of(SiteId inner, std::uintptr_t address) const {
  std::uint64_t value = address ^ (std::uint64_t{inner} << 40) ^ (inner >> 24);
  value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93u;
  return heads_[(value ^ (value >> 29)) & (heads_.capacity() - 1)];  // a power of two
}

SiteId CallSites::find(SiteId inner, std::uintptr_t address, SiteId first, SiteId end) const {
  for (SiteId one = first; one != end; one = tree_[one].next) {
    if (tree_[one].address == address && tree_[one].inner == inner) return one;
  }
  return kNoSite;
}

SiteId CallSites::outer_of(SiteId inner, std::uintptr_t address) const {
  return find(inner, address, head_of(inner, address).load(std::memory_order_acquire), kNoSite);
}

SiteId CallSites::make_outer(SiteId inner, std::uintptr_t address) {
  std::atomic<SiteId>& head = head_of(inner, address);
  SiteId first = head.load(std::memory_order_acquire);
  if (const SiteId found = find(inner, address, first, kNoSite); found != kNoSite) return found;
  const std::atomic_ref made(made_);
  if (made.load(std::memory_order_relaxed) >= limits_.tree_frames) return kNoSite;
  const SiteId fresh = made.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (fresh > limits_.tree_frames) return kNoSite;
  tree_[fresh].inner = inner;
  tree_[fresh].address = address;
  for (;;) {
    tree_[fresh].next = first;
    const SiteId seen = first;
    if (head.compare_exchange_weak(first, fresh, std::memory_order_acq_rel, std::memory_order_acquire)) return fresh;
    // Another thread made the same at the same time: that one counts, and this one stays unused.
    if (const SiteId found = find(inner, address, first, seen); found != kNoSite) return found;
  }
}

// The return addresses above the function whose frame it is, and where they lie. `is_whole`: the stack ends there.
std::size_t CallSites::unwind(std::uintptr_t frame, std::uintptr_t top, std::span<Unwound> room, bool& is_whole) {
  struct Walk {
    std::uintptr_t frame, top;
    std::span<Unwound> room;
    std::size_t found;
    bool is_whole;
  } walk = {frame, top, room, 0, true};
  const auto step = [](_Unwind_Context* context, void* argument) {
    Walk& all = *static_cast<Walk*>(argument);
    const std::uintptr_t address = _Unwind_GetIP(context);
    if (address == 0) return _URC_END_OF_STACK;  // where a thread begins
    // The stack pointer that this frame has when what it called has returned: the return address lies below.
    const std::uintptr_t place = _Unwind_GetCFA(context) - sizeof(void*);
    if (place <= all.frame) return _URC_NO_REASON;  // not yet out of the function that was called
    // Frames of signals were not called.
    if (place >= all.top || word_at(place) != address) return _URC_END_OF_STACK;
    all.room[all.found++] = {address, place};
    if (all.found < all.room.size()) return _URC_NO_REASON;
    all.is_whole = false;
    return _URC_END_OF_STACK;
  };
  _Unwind_Backtrace(step, &walk);
  is_whole = walk.is_whole;
  return walk.found;
}

}  // namespace farheap::profile
