// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Records in which order a program uses its pages (format: profile/page_trace.hpp). It stands around the pager, on all
// of its seams (pager/use_recording.hpp): what it sees are pages that come into view, leave it, or are dropped.
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
#include "pager/use_recording.hpp"
#include "pager/view.hpp"
#include "pager/view_around.hpp"
#include "profile/page_trace.hpp"

namespace farheap::profile {

// Writes the entries. Which pages were written it finds by itself: it keeps a hash of each page as it last left.
class PageRecorder {
 public:
  [[nodiscard]] static Result<std::unique_ptr<PageRecorder>> make(const std::string& path, PageTraceHeader header,
                                                                  std::uint64_t capacity_pages);
  void came(pager::PageRun run);
  void left(PageNumber page, const std::byte* bytes);
  void dropped(PageNumber page);
  void forgotten(pager::PageRun run);  // as dropped, for pages that are out of view, or were never touched
  // In a forked child: the recording is the parent's.
  void stop_in_child();

 private:
  PageRecorder(os::WordFile file, os::ReservedArray<pager::PageHash> known)
      : file_(std::move(file)), known_(std::move(known)) {}
  void write(PageTraceEntry entry) FARHEAP_REQUIRES(mutex_);

  base::Mutex mutex_;
  std::optional<os::WordFile> file_ FARHEAP_GUARDED_BY(mutex_);  // none: recording has ended
  // Of what rests out of view; zeros: nothing, the page will come as zeros.
  os::ReservedArray<pager::PageHash> known_ FARHEAP_GUARDED_BY(mutex_);
};

class RecordedView final : public pager::ViewAround {
 public:
  RecordedView(pager::View& view, PageRecorder& recorder) : ViewAround(view), recorder_(recorder) {}
  void take_out(pager::PageRun run, std::span<Taken> answers) override;
  void put_back(pager::PageRun run) override;
  void copy_back(pager::PageRun run, Guard guard) override;
  void put_in(pager::PageRun run, const std::byte* bytes, Guard guard) override;
  void drop_view(pager::PageRun run) override;
  void adopted(pager::PageRun run) override { recorder_.came(run); }

 private:
  PageRecorder& recorder_;
};

class RecordedBacking final : public pager::Backing {
 public:
  RecordedBacking(pager::Backing& backing, PageRecorder& recorder) : backing_(backing), recorder_(recorder) {}
  [[nodiscard]] Status read(std::span<const Read> runs) override { return backing_.read(runs); }
  [[nodiscard]] Status write(std::span<const Write> runs) override { return backing_.write(runs); }
  void forget(pager::PageRun run) override;
  [[nodiscard]] Result<Stored> stored_from(PageNumber first) override { return backing_.stored_from(first); }
  void invalidate(pager::PageRun run) override { backing_.invalidate(run); }
  [[nodiscard]] bool has_owners() const override { return backing_.has_owners(); }
  [[nodiscard]] Status claim(pager::PageRun run) override { return backing_.claim(run); }

 private:
  pager::Backing& backing_;
  PageRecorder& recorder_;
};

// The budget, and never more than the window.
class WindowBudget final : public pager::Budget {
 public:
  WindowBudget(pager::Budget& budget, std::uint64_t window_pages) : budget_(budget), window_pages_(window_pages) {}
  [[nodiscard]] std::uint64_t page_limit(std::uint64_t resident_pages, std::uint64_t coming_pages) override;

 private:
  pager::Budget& budget_;
  std::uint64_t window_pages_;
};

// All of it. What it is made over outlives it.
class PageRecording final : public pager::UseRecording {
 public:
  PageRecording(std::unique_ptr<PageRecorder> recorder, pager::View& view, pager::Backing& backing,
                pager::Budget& budget, std::uint64_t window_pages)
      : recorder_(std::move(recorder)),
        view_(view, *recorder_),
        backing_(backing, *recorder_),
        budget_(budget, window_pages) {}
  [[nodiscard]] pager::View& view() override { return view_; }
  [[nodiscard]] pager::Backing& backing() override { return backing_; }
  [[nodiscard]] pager::Budget& budget() override { return budget_; }
  void stop_in_child() override { recorder_->stop_in_child(); }

 private:
  std::unique_ptr<PageRecorder> recorder_;
  RecordedView view_;
  RecordedBacking backing_;
  WindowBudget budget_;
};

// Each process that comes to page records its pages in a file of its own: `path` with a dot and its number added.
[[nodiscard]] pager::MakeUseRecording page_recordings_at(std::string path, std::uint64_t window_pages);

}  // namespace farheap::profile
