// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program's view as the kernel's page tables keep it, changed through userfaultfd.
//
// A page leaves by UFFDIO_MOVE where the kernel has it (6.8): atomic, no copy. Elsewhere, and for pages the kernel
// does not move because a forked process shares them: write-protect, copy, drop. A writer in between is held by the
// write protection, faults again when the page is gone, and finds it in probation.
// A page that the kernel has pinned for a device is never copied away (what the device writes would be lost); where
// MOVE does not tell, see docs/limits.md.
//
// The staging place of a page is a mirror: the same offset in a second range.
//
// A userfaultfd has one queue, whose lock all threads that fault wait for: on 16 processors one serves 210,000 faults a
// second, eight serve 670,000 (docs/benchmarks/cores.md). So a view may have several, each for its stripes of the range
// and of staging. Stripes are narrow where a heap begins, and wider further on: each is a mapping of its own for the
// kernel.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "os/mapping.hpp"
#include "os/userfault.hpp"
#include "pager/view.hpp"

namespace farheap::pager {

class KernelView final : public View {
 public:
  // [base, base + bytes) is mapped and outlives the view. Requires: queues > 0.
  [[nodiscard]] static Result<std::unique_ptr<KernelView>> make(std::byte* base, std::size_t bytes,
                                                                os::UserfaultFeatures wanted, unsigned queues = 1);
  // From now on the range faults to the queues: the runs of it in `own`, which are private and anonymous.
  using Runs = std::vector<std::pair<std::byte*, std::size_t>>;
  [[nodiscard]] Status watch(const Runs& own);
  // In a forked child: the parent's context means nothing here.
  [[nodiscard]] Status renew_in_child(const Runs& own);

  // The same for a part of the range.
  [[nodiscard]] Status watch(std::byte* at, std::size_t bytes);

  [[nodiscard]] unsigned queues() const { return static_cast<unsigned>(queues_.size()); }
  [[nodiscard]] os::Userfault& queue(unsigned number) { return queues_[number]; }
  [[nodiscard]] os::UserfaultFeatures features() const { return queues_.front().features(); }
  // After the program has locked all of its memory, what is to come included.
  void unlock_staging();
  // Writes are watched: a guard that the pager has set is taken away by release() alone.
  void keep_guards() { keeps_guards_ = true; }
  [[nodiscard]] PageNumber page_of(std::uintptr_t address) const;

  void take_out(PageRun run, std::span<Taken> answers) override;
  void put_back(PageRun run) override;
  void copy_back(PageRun run, Guard guard) override;
  void put_in(PageRun run, const std::byte* bytes, Guard guard) override;
  std::uint32_t put_in_huge(PageNumber first) override;
  void guard(PageRun run) override;
  [[nodiscard]] bool tells_every_write() const override;
  [[nodiscard]] bool take_written(PageNumber first, Written& written) override;
  void release(PageRun run) override;
  [[nodiscard]] const std::byte* shown(PageNumber page) const override { return view_at(page); }
  [[nodiscard]] bool read_shown(PageRun run, std::byte* into) const override;
  void stage(PageRun run, const std::byte* bytes) override;
  [[nodiscard]] const std::byte* staging(PageNumber page) const override;
  void drop_staging(std::span<const PageRun> runs) override;
  void drop_view(PageRun run) override;
  void mend(PageNumber page) override;
  void wake(PageRun run) override;

 private:
  using Queues = std::vector<os::Userfault>;
  KernelView(std::byte* base, std::size_t bytes, os::Mapping staging, Queues queues, os::UserfaultFeatures wanted);
  [[nodiscard]] static Result<Queues> open(unsigned queues, os::UserfaultFeatures wanted);
  // The queue that the page faults to. All pages of an extent have the same.
  [[nodiscard]] os::Userfault& queue_of(PageNumber page);
  [[nodiscard]] Status watch_stripes(std::byte* range, std::size_t first, std::size_t end);
  [[nodiscard]] std::byte* view_at(PageNumber page) const;
  [[nodiscard]] std::byte* staging_at(PageNumber page) const;
  [[nodiscard]] bool is_watched(PageRun run);
  void take_out_by_move(PageRun run, std::span<Taken> answers);
  void take_out_by_copy(PageRun run, std::span<Taken> answers);
  [[nodiscard]] std::size_t drop_many(std::span<const PageRun> runs);
  void copy_out(PageRun run, std::span<Taken> answers);
  void put(os::Userfault& queue, std::byte* to, const std::byte* from, std::size_t bytes, Guard guard = Guard::kOff);
  // What was guarded for a moment only, to be taken out: it stays so where writes are watched.
  void let_write(PageRun run);

  std::byte* base_;
  std::size_t bytes_;
  os::Mapping staging_;
  Queues queues_;
  os::UserfaultFeatures wanted_;
  std::atomic<bool> strangers_{false};  // a part of the range was found to be mapped to something else
  std::atomic<bool> drops_at_once_;     // many runs by one call
  bool keeps_guards_ = false;
  base::Mutex making_huge_;
  os::Mapping nursery_ FARHEAP_GUARDED_BY(making_huge_);  // where a huge page is filled before it is moved into view
  bool makes_huge_ FARHEAP_GUARDED_BY(making_huge_) = true;
};

}  // namespace farheap::pager
