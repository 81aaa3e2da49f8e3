// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Records in which order a program uses its pages (format: pager/page_trace.hpp). It stands around the pager, on both
// of its seams, and the pager knows nothing of it: what it sees are pages that come into view, leave it, or are
// dropped. The pager must bring in one page a fault, for then each page that comes was used at that moment; and may
// keep few in view, because what is in view is used unseen.
//
// Thread-safety: as View, Backing and Budget.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/mutex.hpp"
#include "os/mapping.hpp"
#include "os/word_file.hpp"
#include "pager/budget.hpp"
#include "pager/contents.hpp"
#include "pager/page_trace.hpp"
#include "pager/view.hpp"
#include "pager/view_around.hpp"

namespace farheap::pager {

// Writes the entries. Which pages were written it finds by itself: it keeps a hash of each page as it last left.
class PageRecorder {
 public:
  [[nodiscard]] static Result<std::unique_ptr<PageRecorder>> make(const std::string& path, PageTraceHeader header,
                                                                  std::uint64_t capacity_pages);
  void came(PageRun run);
  void left(PageNumber page, const std::byte* bytes);
  void dropped(PageNumber page);
  void forgotten(PageRun run);  // as dropped, for pages that are out of view, or were never touched
  // In a forked child: the recording is the parent's.
  void stop_in_child();

 private:
  PageRecorder(os::WordFile file, os::ReservedArray<PageHash> known)
      : file_(std::move(file)), known_(std::move(known)) {}
  void write(PageTraceEntry entry) FARHEAP_REQUIRES(mutex_);

  base::Mutex mutex_;
  std::optional<os::WordFile> file_ FARHEAP_GUARDED_BY(mutex_);  // none: recording has ended
  // Of what rests out of view; zeros: nothing, the page will come as zeros.
  os::ReservedArray<PageHash> known_ FARHEAP_GUARDED_BY(mutex_);
};

class RecordedView final : public ViewAround {
 public:
  RecordedView(View& view, PageRecorder& recorder) : ViewAround(view), recorder_(recorder) {}
  void take_out(PageRun run, std::span<Taken> answers) override;
  void put_back(PageRun run) override;
  void copy_back(PageRun run, Guard guard) override;
  void put_in(PageRun run, const std::byte* bytes, Guard guard) override;
  void drop_view(PageRun run) override;

 private:
  PageRecorder& recorder_;
};

class RecordedBacking final : public Backing {
 public:
  RecordedBacking(Backing& backing, PageRecorder& recorder) : backing_(backing), recorder_(recorder) {}
  [[nodiscard]] Status read(std::span<const Read> runs) override { return backing_.read(runs); }
  [[nodiscard]] Status write(std::span<const Write> runs) override { return backing_.write(runs); }
  void forget(PageRun run) override;
  [[nodiscard]] Result<Stored> stored_from(PageNumber first) override { return backing_.stored_from(first); }
  void invalidate(PageRun run) override { backing_.invalidate(run); }
  [[nodiscard]] bool has_owners() const override { return backing_.has_owners(); }
  [[nodiscard]] Status claim(PageRun run) override { return backing_.claim(run); }

 private:
  Backing& backing_;
  PageRecorder& recorder_;
};

// The budget, and never more than the window.
class WindowBudget final : public Budget {
 public:
  WindowBudget(Budget& budget, std::uint64_t window_pages) : budget_(budget), window_pages_(window_pages) {}
  [[nodiscard]] std::uint64_t page_limit(std::uint64_t resident_pages, std::uint64_t coming_pages) override;

 private:
  Budget& budget_;
  std::uint64_t window_pages_;
};

// All of it. What it is made over outlives it.
struct PageRecording {
  PageRecording(std::unique_ptr<PageRecorder> made, View& seen, Backing& rests, Budget& room,
                std::uint64_t window_pages)
      : recorder(std::move(made)), view(seen, *recorder), backing(rests, *recorder), budget(room, window_pages) {}

  std::unique_ptr<PageRecorder> recorder;
  RecordedView view;
  RecordedBacking backing;
  WindowBudget budget;
};

}  // namespace farheap::pager
