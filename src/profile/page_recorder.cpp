// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/page_recorder.hpp"

#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/log.hpp"
#include "base/mutex.hpp"

namespace farheap::profile {

using pager::PageHash;
using pager::PageRun;

namespace {
constexpr std::uint64_t kMostWords = std::uint64_t{1} << 30;  // 4 GiB of trace: hours, at a fault in ten microseconds
}

Result<std::unique_ptr<PageRecorder>> PageRecorder::make(const std::string& path, PageTraceHeader header,
                                                         std::uint64_t capacity_pages) {
  if (capacity_pages > kTraceablePages) {
    return fail(ErrorCode::kInvalidArgument, "cannot record pages", path, "the heap has more than a trace can name");
  }
  auto known = os::ReservedArray<PageHash>::make(capacity_pages);
  if (!known) return fail(std::move(known.error()));
  auto file = os::WordFile::create(path);
  if (!file) return fail(std::move(file.error()));
  if (Status begun = file->append(header.words()); !begun) return fail(std::move(begun.error()));
  return std::unique_ptr<PageRecorder>(new PageRecorder(std::move(*file), std::move(*known)));
}

void PageRecorder::write(PageTraceEntry entry) {
  if (!file_) return;
  const Status written = file_->size_words() < kMostWords
                             ? file_->append(pack(entry))
                             : Status(fail(ErrorCode::kNoSpace, "cannot write", "the page trace", "it is 4 GiB long"));
  if (written) return;
  base::log(base::LogLevel::kError, "{}; the program goes on, its pages are no longer recorded",
            written.error().message());
  file_->replace_last(pack({0, PageEvent::kCut}));
  file_.reset();
}

void PageRecorder::came(PageRun run) {
  base::LockGuard lock(mutex_);
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const PageNumber page = run.first + i;
    write({page, known_[page] == PageHash{} ? PageEvent::kCameFresh : PageEvent::kCame});
  }
}

void PageRecorder::left(PageNumber page, const std::byte* bytes) {
  const PageHash now = pager::is_zero_page(bytes) ? PageHash{} : pager::hash_page(bytes);
  base::LockGuard lock(mutex_);
  write({page, now == known_[page] ? PageEvent::kLeft : PageEvent::kLeftWritten});
  known_[page] = now;
}

void PageRecorder::dropped(PageNumber page) {
  base::LockGuard lock(mutex_);
  write({page, PageEvent::kDropped});
  known_[page] = {};
}

void PageRecorder::forgotten(PageRun run) {
  base::LockGuard lock(mutex_);
  for (PageNumber page = run.first; page < run.first + run.count; ++page) {
    if (known_[page] == PageHash{}) continue;
    write({page, PageEvent::kDropped});
    known_[page] = {};
  }
}

void PageRecorder::stop_in_child() {
  new (&mutex_) base::Mutex;
  base::LockGuard lock(mutex_);
  file_.reset();
}

void RecordedView::take_out(PageRun run, std::span<Taken> answers) {
  view_.take_out(run, answers);
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const PageNumber page = run.first + i;
    if (answers[i] == Taken::kTaken) recorder_.left(page, view_.staging(page));
    if (answers[i] == Taken::kGone) recorder_.dropped(page);
  }
}

// Recorded before the program goes on: its next use comes after this one in the trace.
void RecordedView::put_back(PageRun run) {
  recorder_.came(run);
  view_.put_back(run);
}

void RecordedView::copy_back(PageRun run, Guard guard) {
  recorder_.came(run);
  view_.copy_back(run, guard);
}

void RecordedView::put_in(PageRun run, const std::byte* bytes, Guard guard) {
  recorder_.came(run);
  view_.put_in(run, bytes, guard);
}

void RecordedView::drop_view(PageRun run) {
  view_.drop_view(run);
  for (std::uint32_t i = 0; i < run.count; ++i) recorder_.dropped(run.first + i);
}

void RecordedBacking::forget(PageRun run) {
  backing_.forget(run);
  recorder_.forgotten(run);
}

std::uint64_t WindowBudget::page_limit(std::uint64_t resident_pages, std::uint64_t coming_pages) {
  return std::min(budget_.page_limit(resident_pages, coming_pages), window_pages_);
}

pager::MakeUseRecording page_recordings_at(std::string path, std::uint64_t window_pages) {
  return [path = std::move(path), window_pages](const std::byte* base, std::uint64_t pages, pager::View& view,
                                                pager::Backing& backing,
                                                pager::Budget& budget) -> Result<std::unique_ptr<pager::UseRecording>> {
    auto recorder = PageRecorder::make(path + "." + std::to_string(getpid()),
                                       {reinterpret_cast<std::uintptr_t>(base), window_pages}, pages);
    if (!recorder) return fail(std::move(recorder.error()));
    return std::make_unique<PageRecording>(std::move(*recorder), view, backing, budget, window_pages);
  };
}

}  // namespace farheap::profile
