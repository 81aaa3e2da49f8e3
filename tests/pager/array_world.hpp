// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A world of plain arrays around the pager: the program's view with a lock a page in place of the kernel's page
// tables, and a store that can be slow, fail, and lie about nothing. Every byte is compared.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/units.hpp"
#include "pager/pager.hpp"

namespace farheap::pager::testing {

using base::kPageBytes;
using PageBytes = std::array<std::byte, kPageBytes>;

class ArrayView : public View {
 public:
  explicit ArrayView(std::size_t pages) : pages_(pages), staging_(pages), view_(pages) {}

  // What the processor does: touch the page if it is in view. Nothing: it was; otherwise how often who waits for the
  // page has been woken yet, for wait().
  template <class Access>
  std::optional<std::uint64_t> touch(PageNumber page, Access&& access) {
    std::lock_guard lock(pages_[page].mutex);
    if (!pages_[page].in_view) return pages_[page].wakes;
    access(view_[page]);
    pages_[page].written = true;  // for all the view knows
    return {};
  }
  // A write that is refused by a guard: `guarded` tells.
  template <class Access>
  std::optional<std::uint64_t> write(PageNumber page, bool& guarded, Access&& access) {
    std::lock_guard lock(pages_[page].mutex);
    guarded = pages_[page].in_view && pages_[page].guarded;
    if (!pages_[page].in_view || guarded) return pages_[page].wakes;
    access(view_[page]);
    pages_[page].written = true;
    return {};
  }
  // What the kernel does with who has faulted: it sleeps until it is woken, however long that takes.
  void wait(PageNumber page, std::uint64_t wakes) {
    std::unique_lock lock(pages_[page].mutex);
    const auto woken = [&] { return pages_[page].wakes != wakes; };
    if (!pages_[page].woken.wait_for(lock, std::chrono::seconds(60), woken)) ++broken_rules;  // forgotten
  }
  // Pages the kernel refuses to move for a while (pinned).
  void refuse(PageNumber page, bool on) { pages_[page].refused = on; }
  // The program drops a page behind the pager's back.
  void vanish(PageNumber page) {
    std::lock_guard lock(pages_[page].mutex);
    pages_[page].in_view = false;
  }

  void take_out(PageRun run, std::span<Taken> answers) override {
    check(run);
    for (std::uint32_t i = 0; i < run.count; ++i) {
      Page& page = pages_[run.first + i];
      std::lock_guard lock(page.mutex);
      if (page.refused) {
        answers[i] = Taken::kRefused;
      } else if (!page.in_view) {
        answers[i] = Taken::kGone;
      } else {
        claim(page.staged, false, true);
        staging_[run.first + i] = view_[run.first + i];
        page.in_view = false;
        answers[i] = Taken::kTaken;
      }
    }
  }
  void put_back(PageRun run) override {
    check(run);
    copy_back(run, Guard::kOff);
    drop_staging({&run, 1});
  }
  void copy_back(PageRun run, Guard guard) override {
    check(run);
    put(run, staging_[run.first].data(), guard);
  }
  void put_in(PageRun run, const std::byte* bytes, Guard guard) override {
    check(run);
    put(run, bytes, guard);
  }
  // Now and then not all of it, as where the kernel has no huge page left.
  std::uint32_t put_in_huge(PageNumber first) override {
    static const std::vector<PageBytes> zeros(kExtentPages);
    const std::uint32_t count = ++huge_ % 4 == 0 ? 300 : kExtentPages;
    put({first, count}, zeros[0].data(), Guard::kOff);
    return count;
  }
  void guard(PageRun run) override {
    check(run);
    for (std::uint32_t i = 0; i < run.count; ++i) {
      std::lock_guard lock(pages_[run.first + i].mutex);
      if (pages_[run.first + i].in_view) pages_[run.first + i].guarded = true;
    }
  }
  void release(PageRun run) override {
    check(run);
    for (std::uint32_t i = 0; i < run.count; ++i) {
      std::lock_guard lock(pages_[run.first + i].mutex);
      pages_[run.first + i].guarded = false;
      wake(pages_[run.first + i]);
    }
  }
  const std::byte* shown(PageNumber page) const override { return view_[page].data(); }
  bool read_shown(PageRun run, std::byte* into) const override {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const PageNumber page = run.first + i;
      std::lock_guard lock(pages_[page].mutex);
      if (!pages_[page].in_view) return false;
      std::memcpy(into + i * kPageBytes, view_[page].data(), kPageBytes);
      ++pages_read;
    }
    return true;
  }
  bool tells_every_write() const override { return true; }
  bool take_written(PageNumber first, Written& written) override {
    ++asked;
    written.reset();
    for (PageNumber page = first; page < std::min<PageNumber>(first + written.size(), pages_.size()); ++page) {
      std::lock_guard lock(pages_[page].mutex);
      written[page - first] = pages_[page].in_view && (std::exchange(pages_[page].written, false) || always_written);
    }
    return says_what_is_written;
  }
  void stage(PageRun run, const std::byte* bytes) override {
    check(run);
    for (std::uint32_t i = 0; i < run.count; ++i) {
      claim(pages_[run.first + i].staged, false, true);
      std::memcpy(staging_[run.first + i].data(), bytes + i * kPageBytes, kPageBytes);
    }
  }
  const std::byte* staging(PageNumber page) const override { return staging_[page].data(); }
  void drop_staging(std::span<const PageRun> runs) override {
    for (const PageRun& run : runs) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        claim(pages_[run.first + i].staged, true, false);
        staging_[run.first + i].fill(std::byte{0xdb});
      }
    }
  }
  void drop_view(PageRun run) override {
    check(run);
    for (std::uint32_t i = 0; i < run.count; ++i) {
      std::lock_guard lock(pages_[run.first + i].mutex);
      pages_[run.first + i].in_view = false;
    }
  }
  void mend(PageNumber page) override {
    std::lock_guard lock(pages_[page].mutex);
    if (!pages_[page].in_view) {
      view_[page].fill(std::byte{0});
      pages_[page].in_view = true;
      pages_[page].guarded = false;
    }
    wake(pages_[page]);
  }
  void wake(PageRun run) override {
    check(run);
    for (std::uint32_t i = 0; i < run.count; ++i) {
      std::lock_guard lock(pages_[run.first + i].mutex);
      wake(pages_[run.first + i]);
    }
  }

  [[nodiscard]] unsigned huge_pages() const { return huge_; }

  std::atomic<int> broken_rules{0};
  std::atomic<unsigned> asked{0};  // take_written()
  bool says_what_is_written = true, always_written = false;
  mutable std::atomic<std::uint64_t> pages_read{0};  // by read_shown()

 private:
  void check(PageRun run) {
    if (run.first / kExtentPages != (run.first + run.count - 1) / kExtentPages) ++broken_rules;
  }
  struct Page {
    mutable std::mutex mutex;
    std::condition_variable woken;
    std::uint64_t wakes = 0;
    bool in_view = false;
    bool guarded = false;
    bool written = false;
    std::atomic<bool> refused{false};
    std::atomic<bool> staged{false};
  };
  static void wake(Page& page) {
    ++page.wakes;
    page.woken.notify_all();
  }
  void claim(std::atomic<bool>& flag, bool from, bool to) {
    if (flag.exchange(to) != from) ++broken_rules;
  }
  void put(PageRun run, const std::byte* bytes, Guard guard) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      Page& page = pages_[run.first + i];
      std::lock_guard lock(page.mutex);
      if (page.in_view) ++broken_rules;  // a page that is there must never be overwritten
      std::memcpy(view_[run.first + i].data(), bytes + i * kPageBytes, kPageBytes);
      page.in_view = page.written = true;
      page.guarded = guard == Guard::kOn;
      wake(page);
    }
  }

  std::vector<Page> pages_;
  std::vector<PageBytes> staging_, view_;
  std::atomic<unsigned> huge_{0};
};

struct Faults {
  double read_error = 0, write_error = 0, full = 0;
  int delay_us = 0;
};

class MapBacking : public Backing {
 public:
  MapBacking(Faults faults, std::uint64_t seed) : faults_(faults), random_(seed) {}

  Status read(std::span<const Read> runs) override {
    pause();
    if (strikes(faults_.read_error)) return fail(ErrorCode::kIo, "cannot read", "test", "injected");
    std::lock_guard lock(mutex_);
    for (const Read& one : runs) {
      for (std::uint32_t i = 0; i < one.run.count; ++i) {
        auto found = pages_.find(one.run.first + i);
        if (found == pages_.end()) return fail(ErrorCode::kCorrupt, "cannot read", "test", "never written");
        std::memcpy(one.into + i * kPageBytes, found->second.data(), kPageBytes);
      }
    }
    return {};
  }
  // Now and then, of single pages: whoever writes one that is looked at there is seen by the thread sanitizer, and by
  // its bytes.
  const std::byte* at_rest(PageRun run) override {
    if (run.count != 1 || ++asked_ % 2 == 0) return nullptr;
    std::lock_guard lock(mutex_);
    const auto found = pages_.find(run.first);
    if (found == pages_.end()) return nullptr;
    ++shown_at_rest;
    return found->second.data();
  }
  Status write(std::span<const Write> runs) override {
    pause();
    const bool error = strikes(faults_.write_error);
    const bool full = strikes(faults_.full);
    // A failing write tears: the first page arrives, the rest is rubbish.
    std::size_t left = error || full ? 1 : SIZE_MAX;
    std::unique_lock lock(mutex_);
    for (const Write& one : runs) {
      for (std::uint32_t i = 0; i < one.run.count; ++i) {
        auto& page = pages_[one.run.first + i];
        if (left-- > 0) {
          std::memcpy(page.data(), one.from + i * kPageBytes, kPageBytes);
        } else {
          page.fill(kTorn);
          left = 0;
        }
        ++pages_written;
      }
    }
    if (full) return fail(ErrorCode::kNoSpace, "cannot write", "test", "injected full disk");
    if (error) return fail(ErrorCode::kIo, "cannot write", "test", "injected");
    return {};
  }
  void forget(PageRun run) override {
    if (at_forget) at_forget();
    std::lock_guard lock(mutex_);
    if (holding_) return held_.push_back(run);
    for (std::uint32_t i = 0; i < run.count; ++i) pages_.erase(run.first + i);
  }
  Result<Stored> stored_from(PageNumber first) override {
    std::lock_guard lock(mutex_);
    Stored stored;
    for (std::uint32_t i = 0; i < stored.size(); ++i) stored[i] = pages_.contains(first + i);
    return stored;
  }
  // While a commit is under way, what is forgotten is not its business.
  void hold_forgets(bool on) {
    std::lock_guard lock(mutex_);
    holding_ = on;
    for (const PageRun& run : held_) {
      for (std::uint32_t i = 0; i < run.count; ++i) pages_.erase(run.first + i);
    }
    held_.clear();
  }
  std::unordered_map<PageNumber, PageBytes> copy() const {
    std::lock_guard lock(mutex_);
    return pages_;
  }
  std::size_t pages() const {
    std::lock_guard lock(mutex_);
    return pages_.size();
  }
  std::optional<PageBytes> page(PageNumber number) const {
    std::lock_guard lock(mutex_);
    const auto found = pages_.find(number);
    return found != pages_.end() ? std::optional(found->second) : std::nullopt;
  }

  // All of a page that a failing write has torn.
  static constexpr std::byte kTorn{0xee};

  std::atomic<std::uint64_t> pages_written{0};
  std::atomic<std::uint64_t> shown_at_rest{0};
  std::function<void()> at_forget;  // set before anything is forgotten

 private:
  void pause() {
    if (faults_.delay_us == 0) return;
    std::unique_lock lock(mutex_);
    const int delay = static_cast<int>(random_() % faults_.delay_us);
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(delay));
  }
  bool strikes(double probability) {
    std::lock_guard lock(mutex_);
    return std::uniform_real_distribution<>()(random_) < probability;
  }
  const Faults faults_;
  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  std::unordered_map<PageNumber, PageBytes> pages_;
  bool holding_ = false;
  std::vector<PageRun> held_;
  std::atomic<unsigned> asked_{0};
};

class FixedBudget : public Budget {
 public:
  explicit FixedBudget(std::uint64_t limit) : pages(limit) {}
  std::uint64_t page_limit(std::uint64_t, std::uint64_t) override { return pages; }
  std::atomic<std::uint64_t> pages;
};

struct WorldOptions {
  std::uint64_t pages = 4096;
  std::uint64_t memory_pages = 1024;
  PolicyKind policy = PolicyKind::kS3Fifo;
  Faults faults;
  std::uint64_t seed = 1;
  std::uint64_t read_ahead_pages = 256;
  bool track_changes = false;
  bool guards = false;
  std::shared_ptr<const PageOrder> expected_order = nullptr;
  unsigned evictors = 0;  // 0: one to three, by the seed
  // What stands between the pager and its backing, if anything does, and the budget that the pager asks then.
  struct Near {
    std::unique_ptr<Backing> backing;
    Budget* budget = nullptr;
  };
  std::function<Near(Backing& below, Budget& budget, base::RunCounters& counters)> near = nullptr;
};

// The pager with its evictor and reader threads; the test's own threads are the program and the fault handlers.
class World {
 public:
  explicit World(const WorldOptions& options)
      : view(options.pages), backing(options.faults, options.seed), budget(options.memory_pages), away(options.pages) {
    PagerOptions pager_options;
    pager_options.capacity_pages = options.pages;
    pager_options.policy = options.policy;
    pager_options.read_ahead_pages = options.read_ahead_pages;
    pager_options.track_changes = options.track_changes;
    pager_options.expected_order = options.expected_order;
    const auto evictors = options.evictors != 0 ? options.evictors : 1 + static_cast<unsigned>(options.seed % 3);
    pager_options.evictors = evictors;
    pager_options.huge_from = kExtentPages;
    pager_options.pages_before_huge = 0;
    pager_options.lost = [this](const Error& error) {
      std::lock_guard lock(lost_mutex);
      lost.push_back(error.message());
      if (error.code != ErrorCode::kCorrupt) return;
      std::fprintf(stderr, "a page that the store has not is lost: %s\n", lost.back().c_str());
      std::abort();  // the pager would ask for it for ever
    };
    if (options.near) near = options.near(backing, budget, counters);
    pager_options.says_soon = near.backing != nullptr;
    pager = Pager::make(view, rests(), near.budget != nullptr ? *near.budget : budget, counters, pager_options).value();
    if (options.guards) pager->note_away(away.data());
    heat->start(1);
    pager->heat_goes_to(*heat);
    for (unsigned evictor = 0; evictor < evictors; ++evictor)
      threads_.emplace_back([this, evictor] { evict(evictor); });
    threads_.emplace_back([this] {
      std::vector<PageBytes> buffer(512);
      while (!stop_) pager->read_ahead_once(buffer[0].data(), 1);
    });
  }
  ~World() { stop(); }
  void stop() {
    stop_ = true;
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

  // Where the pager's pages rest.
  Backing& rests() { return near.backing != nullptr ? *near.backing : backing; }

  // One access of the program. `buffer`: the calling thread's, 512 pages.
  template <class Access>
  void touch(PageNumber page, bool write, std::byte* buffer, Access&& access) {
    // A guard: what it sees may be old, and the page may be gone again.
    if (away[page].load(std::memory_order_relaxed) != 0) pager->fetch(page, write, buffer);
    bool guarded = false;
    const auto try_it = [&] { return write ? view.write(page, guarded, access) : view.touch(page, access); };
    while (const auto wakes = try_it()) {
      guarded_writes += guarded;
      guarded ? pager->written(page) : (void)pager->fault(page, write, buffer);
      view.wait(page, *wakes);
    }
  }

  // A write of the program to a kept heap, where pages may be guarded.
  template <class Access>
  void write(PageNumber page, std::byte* buffer, Access&& access) {
    bool guarded = false;
    while (const auto wakes = view.write(page, guarded, access)) {
      if (!guarded) {
        (void)pager->fault(page, true, buffer);
      } else if (!pager->written_at_once(page)) {
        pager->written(page);
      }
      view.wait(page, *wakes);
    }
  }

  // What a handler does that has several reads in flight: faults on all of `pages`, answers in any order, some of which
  // failed. Whether anybody touched these pages does not matter: a fault may always be late.
  void fault_together(std::span<const PageNumber> pages, std::mt19937_64& random) {
    struct Flight {
      Pager::Started started;
      std::vector<PageBytes> buffer;
    };
    std::vector<Flight> flights;
    const auto land_all = [&] {
      std::shuffle(flights.begin(), flights.end(), random);
      for (Flight& flight : flights) {
        const Incoming::Reads reads(flight.started.incoming, flight.buffer[0].data());
        const bool arrived = random() % 8 != 0 && rests().read(reads.all()).has_value();
        std::byte* const buffer = flight.buffer[0].data();
        pager->finish_fault(flight.started, arrived ? buffer : nullptr, buffer);
      }
      flights.clear();
    };
    Pager::Started started;  // one for all, as a handler has: what the fault before wanted was read, and counted, again
    for (const PageNumber page : pages) {
      switch (pager->begin_fault(page, false, started)) {
        case Pager::Begun::kDone: break;
        case Pager::Begun::kReading:
          flights.push_back({started, std::vector<PageBytes>(started.incoming.pages())});
          ++together;
          break;
        case Pager::Begun::kNotNow: land_all(); break;
      }
    }
    land_all();
  }
  std::atomic<std::uint64_t> together{0};
  std::atomic<std::uint64_t> guarded_writes{0};  // in touch()

  ArrayView view;
  MapBacking backing;
  FixedBudget budget;
  base::RunCounters counters;
  WorldOptions::Near near;
  std::unique_ptr<base::HeatTable> heat = std::make_unique<base::HeatTable>();
  std::vector<std::atomic<std::uint8_t>> away;  // all 0 without guards
  std::unique_ptr<Pager> pager;
  std::mutex lost_mutex;
  std::vector<std::string> lost;

 private:
  void evict(unsigned evictor) {
    while (!stop_) {
      switch (pager->evict_once(evictor)) {
        case Pager::Evicted::kIdle: pager->wait_for_eviction_work(1, evictor); break;
        case Pager::Evicted::kStoreFull: std::this_thread::sleep_for(std::chrono::microseconds(200)); break;
        case Pager::Evicted::kWorked: break;
      }
    }
  }
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace farheap::pager::testing
