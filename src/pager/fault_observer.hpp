// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sees each fault for which a thread of the program waits: a recorder of profiles, or the watch over a plan's regions.
//
// Thread-safety: the runtime's threads call it, several at once. It must not touch what is paged.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "pager/view.hpp"

namespace farheap::pager {

class FaultObserver {
 public:
  FaultObserver() = default;
  FaultObserver(const FaultObserver&) = delete;
  FaultObserver& operator=(const FaultObserver&) = delete;
  virtual ~FaultObserver() = default;

  // Before the first fault. Threads may be made here, and not later: the thread that waits for its page may hold a lock
  // that a handler needs to make one.
  virtual void paging_begins() {}
  // Before the page is served, while the thread waits. `thread`: the kernel's number; 0 where it does not tell.
  // `touched`: the byte that is waited for, or its page where the kernel does not tell; 0 where the page is in view,
  // and guarded. The answer names the place in the program for ended().
  [[nodiscard]] virtual std::uint32_t begun(std::uint32_t thread, std::uintptr_t touched) = 0;
  // The thread goes on. `pages_read`: from the store.
  virtual void ended(PageNumber page, std::uint32_t place, std::chrono::nanoseconds stalled,
                     std::uint32_t pages_read) = 0;
  // Where the order is to be written in which a sample of the pages is used (UseSampling); empty: nowhere. Asked
  // when paging begins.
  [[nodiscard]] virtual std::string sample_path() = 0;
};

}  // namespace farheap::pager
