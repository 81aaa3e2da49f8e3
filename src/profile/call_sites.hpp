// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where in a program a call was made: its site, the stack of return addresses, found without unwinding the stack each
// time. A stack is unwound once. It is remembered under its return address and depth, with the places where its other
// return addresses lay. A later call of the same return address and depth has that stack if the same addresses lie at
// these places again. (docs/benchmarks/plan.md: 10 to 60 ns where unwinding takes 90 to 430, and no stack was taken for
// another one; return address and depth alone are wrong for up to a half of all calls.)
//
// What a call left at such a place that has ended since could deceive it. x86-64 only.
//
// Thread-safety: any thread, without locks. A forked child may go on with it.
#pragma once

#include <farheap/result.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "os/mapping.hpp"
#include "profile/access_counts.hpp"

namespace farheap::profile {

class CallSites {
 public:
  static constexpr SiteId kNoSite = 0;  // the table is full
  struct Limits {
    std::uint32_t sites = 1u << 16;  // 16 bytes of memory for each frame of each that is used
    unsigned frames = 64;            // of a stack, the innermost
  };
  // kNoSpace without addresses. Requires: limits.sites > 0, limits.frames > 0.
  [[nodiscard]] static Result<CallSites> make(Limits limits);

  // `caller` and `frame` are __builtin_return_address(0) and __builtin_frame_address(0) of the function that was
  // called. On a stack that is not the thread's own (a coroutine's, a signal handler's, in a forked child that of the
  // thread that forked) the site is the caller alone; so it is where 64 stacks of one return address and depth are
  // known. It may allocate, and must not be called again from there.
  [[nodiscard]] SiteId site_of(const void* caller, const void* frame);
  // Return addresses, the innermost first. Several sites may have the same: they differ in depth, or further out than
  // the frames that are kept. Requires: site_of() has answered it.
  struct Frame {
    std::uintptr_t address;
    std::uintptr_t place;  // from `frame` on
  };
  [[nodiscard]] std::span<const Frame> stack(SiteId site) const {
    return {&frames_[std::size_t{site} * limits_.frames], sites_[site].frames};
  }
  // Sites that were made, 1 to count(). One that site_of() has answered nobody yet may be half made, or stay unused:
  // two threads saw its stack first.
  [[nodiscard]] std::uint32_t count() const;

 private:
  struct Site {
    SiteId next;
    std::uint32_t frames;
    std::uintptr_t caller, depth;
  };
  // A call, as it is looked up. Depth 0: not on the thread's own stack.
  struct Call {
    std::uintptr_t caller, frame, depth;
  };

  CallSites(Limits limits, os::ReservedArray<Site> sites, os::ReservedArray<Frame> frames,
            os::ReservedArray<std::atomic<SiteId>> heads)
      : limits_(limits), sites_(std::move(sites)), frames_(std::move(frames)), heads_(std::move(heads)) {}

  // Among the sites from `first` up to `end`, which is not looked at; kNoSite if it is not there.
  // Adds to `alike` those of its return address and depth that are not it, and ends when they are many.
  [[nodiscard]] SiteId find(const Call& call, SiteId first, SiteId end, unsigned& alike) const;
  // Requires: return address and depth are the site's.
  [[nodiscard]] bool is_stack_of(const Call& call, SiteId site) const;
  // kNoSite if the table is full, or if as many stacks of its return address and depth are known as may be.
  [[nodiscard]] SiteId site_of(const Call& call, bool& are_too_many);
  // kNoSite if the table is full.
  [[nodiscard]] SiteId make_site(const Call& call);
  void unwind(const Call& call, SiteId site);

  Limits limits_;
  os::ReservedArray<Site> sites_;
  os::ReservedArray<Frame> frames_;
  os::ReservedArray<std::atomic<SiteId>> heads_;
  alignas(8) std::uint32_t made_ = 0;  // by std::atomic_ref, so that the table can be moved
};

}  // namespace farheap::profile
