// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where in a program a call was made: its site, the stack of return addresses, found without unwinding the stack each
// time. Stacks that were unwound make a tree: below a frame are those that called it. A frame of it remembers how far
// away the return address of the next one lay, which for most functions is always the same. A later call follows the
// tree from its caller on, and looks whether a return address that is known lies there; where none does, its stack is
// unwound, and joins the tree. (What that costs, beside unwinding each time: docs/benchmarks/plan.md.)
//
// A word that an ended call left where a return address is looked for could deceive it. Functions whose frames have
// more than four sizes end a stack: further out it is not looked at. x86-64 only.
//
// Thread-safety: any thread, without locks. A forked child may go on with it.
#pragma once

#include <farheap/result.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "os/mapping.hpp"
#include "profile/access_counts.hpp"

namespace farheap::profile {

class CallSites {
 public:
  static constexpr SiteId kNoSite = 0;
  struct Limits {
    std::uint32_t tree_frames = 1u << 18;  // of all stacks together; 40 bytes each, when used
    unsigned frames = 64;                  // of a stack, the innermost; 64 at the most
  };
  // kNoSpace without addresses. Requires: both limits > 0.
  [[nodiscard]] static Result<CallSites> make(Limits limits);

  // `caller` and `frame` are __builtin_return_address(0) and __builtin_frame_address(0) of the function that was
  // called. On a stack that is not the thread's own (a coroutine's, a signal handler's, in a forked child that of the
  // thread that forked) the site is the caller alone. With a full tree it is what is known of the stack, kNoSite if
  // that is nothing. It may allocate, and must not be called again from there.
  [[nodiscard]] SiteId site_of(const void* caller, const void* frame);
  // The same where the whole stack is known already; kNoSite where it is not. Allocates nothing, and writes nothing.
  [[nodiscard]] SiteId known_site_of(const void* caller, const void* frame) const;
  // Return addresses, the innermost first. Requires: site_of() has answered it.
  [[nodiscard]] std::vector<std::uintptr_t> stack(SiteId site) const;
  struct Frame {
    SiteId site;   // that ends with this frame
    SiteId inner;  // what it called; kNoSite: the innermost
    std::uintptr_t address;
  };
  // The same with the place of each in the tree, the outermost first.
  [[nodiscard]] std::vector<Frame> frames(SiteId site) const;
  // Frames of the tree. Not all of them are sites.
  [[nodiscard]] std::uint32_t tree_frames() const;

 private:
  static constexpr unsigned kMostFrames = 64;
  static constexpr unsigned kMostSizes = 4;

  // Frame 0 stands above all callers.
  struct TreeFrame {
    SiteId inner;  // what it called
    SiteId next;   // in the list of those that hash alike
    std::uintptr_t address;
    // From where its return address lies to where that of its caller does; 0: not known.
    std::atomic<std::uint32_t> sizes[kMostSizes];
    std::atomic<bool> is_outermost;  // unwinding ended here
    std::atomic<bool> varies;        // it has more sizes
  };
  struct Found {
    SiteId frame = kNoSite;  // the outermost that is known
    bool is_whole = false;
  };
  struct Unwound {
    std::uintptr_t address, place;
  };

  CallSites(Limits limits, os::ReservedArray<TreeFrame> tree, os::ReservedArray<std::atomic<SiteId>> heads)
      : limits_(limits), tree_(std::move(tree)), heads_(std::move(heads)) {}

  // `place` is where the caller's return address lies, `top` where the stack begins.
  [[nodiscard]] Found follow(std::uintptr_t caller, std::uintptr_t place, std::uintptr_t top) const;
  // Steps from `frame`, whose return address lies at `place`, to its caller; kNoSite if that is not known.
  [[nodiscard]] SiteId step(SiteId frame, std::uintptr_t& place, std::uintptr_t top) const;
  [[nodiscard]] static std::size_t unwind(std::uintptr_t frame, std::uintptr_t top, std::span<Unwound> room,
                                          bool& is_whole);
  [[nodiscard]] SiteId join(std::span<const Unwound> stack, bool is_whole);
  // Among the list from `first` up to `end`, which is not looked at.
  [[nodiscard]] SiteId find(SiteId inner, std::uintptr_t address, SiteId first, SiteId end) const;
  [[nodiscard]] SiteId outer_of(SiteId inner, std::uintptr_t address) const;
  // The same, made if it is not there; kNoSite if there is no room.
  [[nodiscard]] SiteId make_outer(SiteId inner, std::uintptr_t address);
  void note_size(SiteId frame, std::uintptr_t size);
  [[nodiscard]] std::atomic<SiteId>& head_of(SiteId inner, std::uintptr_t address) const;

  Limits limits_;
  os::ReservedArray<TreeFrame> tree_;
  os::ReservedArray<std::atomic<SiteId>> heads_;
  alignas(8) std::uint32_t made_ = 0;  // by std::atomic_ref, so that the table can be moved
};

}  // namespace farheap::profile
