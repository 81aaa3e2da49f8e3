// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "faults/bare_pager.hpp"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/threads.hpp"
#include "faults/kernel.hpp"
#include "os/page_map.hpp"

namespace farheap::bench::faults {
namespace {

constexpr std::size_t kMostEvents = 64;
constexpr double kWarmSeconds = 0.3;
constexpr std::size_t kReserve = 4;  // batches that a ring may hold above its share before its handler has to wait

// Processor time and context switches of a thread of the program, until it ended.
struct Used {
  double user_seconds = 0;
  double system_seconds = 0;
  double switches = 0;

  static Used of_this_thread() {
    rusage now{};
    getrusage(RUSAGE_THREAD, &now);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return {seconds(now.ru_utime), seconds(now.ru_stime), static_cast<double>(now.ru_nvcsw + now.ru_nivcsw)};
  }
  void add(const Used& other) {
    user_seconds += other.user_seconds;
    system_seconds += other.system_seconds;
    switches += other.switches;
  }
};

// Pages in `ranges` mappings with a gap between each two, so that the kernel keeps them apart.
class Arena {
 public:
  Arena(std::size_t pages, unsigned ranges)
      : pages_(pages), per_range_(pages / ranges), memory_(Memory::anonymous((pages + ranges) * kPage)) {
    for (unsigned i = 0; i < ranges; ++i) munmap(range(i) + range_bytes(), kPage);
  }
  [[nodiscard]] std::size_t pages() const { return pages_; }
  [[nodiscard]] std::byte* range(std::size_t number) const { return memory_.page(number * (per_range_ + 1)); }
  [[nodiscard]] std::size_t range_bytes() const { return per_range_ * kPage; }
  [[nodiscard]] std::size_t range_of(std::size_t page) const { return page / per_range_; }
  [[nodiscard]] std::byte* at(std::size_t page) const { return memory_.page(page + range_of(page)); }
  [[nodiscard]] std::size_t page_at(std::uint64_t address) const {
    const std::size_t offset = (address - reinterpret_cast<std::uintptr_t>(memory_.data())) / kPage;
    return offset - offset / (per_range_ + 1);
  }

 private:
  std::size_t pages_;
  std::size_t per_range_;
  Memory memory_;
};

// The pages that a handler filled in, the oldest first. One thread puts in, another one takes out. Counts run over.
class Ring {
 public:
  void reserve(std::size_t limit) {
    limit_ = static_cast<std::uint32_t>(limit);
    pages_.resize(std::size_t{1} << std::bit_width(limit));
  }
  [[nodiscard]] std::uint32_t limit() const { return limit_; }
  [[nodiscard]] std::uint32_t size() const {
    return filled_.load(std::memory_order_acquire) - dropped_.load(std::memory_order_acquire);
  }
  void push(std::size_t page) {
    const std::uint32_t at = filled_.load(std::memory_order_relaxed);
    pages_[at & (pages_.size() - 1)] = static_cast<std::uint32_t>(page);
    filled_.store(at + 1, std::memory_order_release);
  }
  [[nodiscard]] std::size_t oldest(std::size_t number) const {
    return pages_[(dropped_.load(std::memory_order_relaxed) + number) & (pages_.size() - 1)];
  }
  void pop(std::size_t count) {
    dropped_.fetch_add(static_cast<std::uint32_t>(count), std::memory_order_release);
    dropped_.notify_one();
  }
  // Returns when it is not full, or when `given_up` says so.
  void wait_for_room(const std::atomic<bool>& given_up) const {
    while (true) {
      const std::uint32_t dropped = dropped_.load(std::memory_order_acquire);
      if (filled_.load(std::memory_order_relaxed) - dropped < limit_ || given_up) return;
      dropped_.wait(dropped, std::memory_order_acquire);
    }
  }
  void give_up() {
    dropped_.fetch_sub(1);  // any other number wakes the one that waits; the ring is not used any more
    dropped_.notify_all();
  }

 private:
  std::vector<std::uint32_t> pages_;
  std::uint32_t limit_ = 0;
  alignas(64) std::atomic<std::uint32_t> filled_{0};
  alignas(64) std::atomic<std::uint32_t> dropped_{0};
};

struct alignas(64) Handler {
  Ring ring;
  std::atomic<std::uint64_t> misses{0};
  std::atomic<std::uint64_t> full{0};  // how often it had to wait for room
  std::vector<int> descriptors;
  Used used;
};

struct alignas(64) Evictor {
  std::atomic<std::uint32_t> calls{0};  // goes up when one of its rings has a batch too much
  Used used;
};

struct alignas(64) Toucher {
  std::atomic<std::uint64_t> touches{0};
  Used used;
};

class BarePager {
 public:
  explicit BarePager(const Shape& shape)
      : shape_(shape),
        arena_(shape.bytes / kPage, shape.ranges),
        handlers_(shape.handlers),
        evictors_(shape.evictors),
        touchers_(shape.threads),
        ends_(eventfd(0, EFD_CLOEXEC)),
        self_(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))) {
    for (unsigned i = 0; i < shape.userfaultfds; ++i) {
      faults_.push_back(open_userfault(shape.eviction == Eviction::kMove));
    }
    if (shape.eviction == Eviction::kMove && !faults_[0].features().move) stop("this kernel has no UFFDIO_MOVE");
    for (unsigned i = 0; i < shape.ranges; ++i) {
      watch(faults_[i % shape.userfaultfds], arena_.range(i), arena_.range_bytes());
    }
    for (unsigned i = 0; i < std::max(shape.userfaultfds, shape.handlers); ++i) {
      handlers_[i % shape.handlers].descriptors.push_back(faults_[i % shape.userfaultfds].descriptor());
    }
    fill();
  }

  void run() {
    std::vector<std::jthread> serving;
    serving.reserve(shape_.handlers + shape_.evictors);
    for (unsigned i = 0; i < shape_.handlers; ++i) serving.emplace_back([this, i] { serve(handlers_[i], i); });
    for (unsigned i = 0; i < shape_.evictors; ++i) serving.emplace_back([this, i] { evict(i); });
    std::vector<std::jthread> touching;
    touching.reserve(shape_.threads);
    for (unsigned i = 0; i < shape_.threads; ++i) touching.emplace_back([this, i] { touch(i); });
    if (shape_.touches == 0) {
      measure();
    } else {
      const auto start = Clock::now();
      touching.clear();
      say_rates(misses(), touches(), seconds_since(start));
    }
    touching_ends_ = true;
    touching.clear();
    end(serving);
    say_costs();
    check_limit();
  }

 private:
  void measure() {
    std::this_thread::sleep_for(std::chrono::duration<double>(kWarmSeconds));
    const std::uint64_t misses_before = misses();
    const std::uint64_t touches_before = touches();
    const auto start = Clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(shape_.seconds));
    const double took = seconds_since(start);
    say_rates(misses() - misses_before, touches() - touches_before, took);
  }

  void end(std::vector<std::jthread>& serving) {
    serving_ends_ = true;
    const std::uint64_t one = 1;
    if (write(ends_, &one, sizeof one) != sizeof one) stop_errno("end the handlers");
    for (Evictor& evictor : evictors_) call(evictor);
    serving.clear();
  }

  // ---- the program

  void touch(unsigned number) {
    Toucher& self = touchers_[number];
    Random random(shape_.seed * 1000 + number);
    std::uint64_t done = 0;
    while (!touching_ends_.load(std::memory_order_relaxed) && (shape_.touches == 0 || done < shape_.touches)) {
      const std::size_t page = random.below(arena_.pages());
      const std::uint64_t found = word_of(arena_.at(page));
      if (found != page) stop("page " + std::to_string(page) + " reads as " + std::to_string(found));
      self.touches.store(++done, std::memory_order_relaxed);
    }
    self.used = Used::of_this_thread();
  }

  // ---- handlers

  void serve(Handler& self, unsigned number) {
    Evictor& evictor = evictors_[number % shape_.evictors];
    alignas(kPage) std::array<std::byte, kPage> content{};
    std::array<uffd_msg, kMostEvents> events;
    const int waiter = shape_.wait == Wait::kEpoll ? make_epoll(self) : -1;
    auto idle_since = Clock::now();
    while (!serving_ends_.load(std::memory_order_relaxed)) {
      bool idle = true;
      for (const int descriptor : self.descriptors) {
        const ssize_t got = read(descriptor, events.data(), shape_.events * sizeof events[0]);
        for (ssize_t i = 0; i < got / static_cast<ssize_t>(sizeof events[0]); ++i) {
          bring_in(self, evictor, events[static_cast<std::size_t>(i)].arg.pagefault.address, content);
          idle = false;
        }
      }
      if (!idle) {
        if (shape_.spin_us > 0) idle_since = Clock::now();
      } else if (shape_.wait != Wait::kSpin && seconds_since(idle_since) * 1e6 >= shape_.spin_us) {
        sleep_until_fault(self, waiter);
      }
    }
    if (waiter >= 0) close(waiter);
    self.used = Used::of_this_thread();
  }

  int make_epoll(const Handler& self) const {
    const int waiter = epoll_create1(EPOLL_CLOEXEC);
    const auto add = [waiter](int descriptor, std::uint32_t how) {
      epoll_event event{how, {}};
      if (epoll_ctl(waiter, EPOLL_CTL_ADD, descriptor, &event) != 0) stop_errno("wait with epoll");
    };
    for (const int descriptor : self.descriptors) add(descriptor, EPOLLIN | EPOLLEXCLUSIVE);
    add(ends_, EPOLLIN);
    return waiter;
  }

  void sleep_until_fault(const Handler& self, int waiter) const {
    if (waiter >= 0) {
      epoll_event event;
      epoll_wait(waiter, &event, 1, -1);
      return;
    }
    std::array<pollfd, kMostEvents + 1> all;
    std::size_t count = 0;
    for (const int descriptor : self.descriptors) all[count++] = {descriptor, POLLIN, 0};
    all[count++] = {ends_, POLLIN, 0};
    poll(all.data(), count, -1);
  }

  void bring_in(Handler& self, Evictor& evictor, std::uint64_t address, std::array<std::byte, kPage>& content) {
    if (self.ring.size() >= self.ring.limit()) {
      self.full.fetch_add(1, std::memory_order_relaxed);
      call(evictor);
      self.ring.wait_for_room(serving_ends_);
    }
    const std::size_t page = arena_.page_at(address);
    if (!copy_in(page, content)) return;
    self.ring.push(page);
    self.misses.fetch_add(1, std::memory_order_relaxed);
    const std::uint32_t too_many = self.ring.size() - aim_;
    if (static_cast<std::int32_t>(too_many) > 0 && too_many % shape_.batch == 0) call(evictor);
  }

  // False: another one was faster.
  bool copy_in(std::size_t page, std::array<std::byte, kPage>& content) {
    os::Userfault& faults = faults_[arena_.range_of(page) % shape_.userfaultfds];
    word_of(content.data()) = page;
    std::size_t done = 0;
    int refused = EAGAIN;
    while (refused == EAGAIN) refused = faults.copy(arena_.at(page), content.data(), kPage, done);
    if (refused == 0) return true;
    if (refused != EEXIST) stop("cannot fill page " + std::to_string(page) + " in: errno " + std::to_string(refused));
    faults.wake(arena_.at(page), kPage);
    return false;
  }

  // ---- evictors

  static void call(Evictor& evictor) {
    evictor.calls.fetch_add(1, std::memory_order_release);
    evictor.calls.notify_one();
  }

  void evict(unsigned number) {
    Evictor& self = evictors_[number];
    std::vector<Memory> aside;  // where moved pages lie until they are dropped
    if (shape_.eviction == Eviction::kMove) {
      for (os::Userfault& faults : faults_) {
        aside.push_back(Memory::anonymous(shape_.batch * kPage));
        watch(faults, aside.back().data(), aside.back().bytes());
      }
    }
    std::vector<iovec> pages(shape_.batch);
    while (!serving_ends_.load(std::memory_order_relaxed)) {
      const std::uint32_t calls = self.calls.load(std::memory_order_acquire);
      bool idle = true;
      for (unsigned i = number; i < shape_.handlers; i += shape_.evictors) {
        Ring& ring = handlers_[i].ring;
        if (ring.size() < aim_ + shape_.batch) continue;
        if (aside.empty())
          drop(ring, pages);
        else
          move_out(ring, aside);
        ring.pop(shape_.batch);
        idle = false;
      }
      if (idle && !serving_ends_) self.calls.wait(calls, std::memory_order_acquire);
    }
    for (unsigned i = number; i < shape_.handlers; i += shape_.evictors) handlers_[i].ring.give_up();
    self.used = Used::of_this_thread();
  }

  void drop(const Ring& ring, std::vector<iovec>& pages) const {
    for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = {arena_.at(ring.oldest(i)), kPage};
    const long dropped = syscall(SYS_process_madvise, self_, pages.data(), pages.size(), MADV_DONTNEED, 0);
    const std::size_t done = dropped < 0 ? 0 : static_cast<std::size_t>(dropped) / kPage;
    for (std::size_t i = done; i < pages.size(); ++i) zap(static_cast<std::byte*>(pages[i].iov_base), kPage);
  }

  void move_out(const Ring& ring, std::vector<Memory>& aside) {
    std::vector<std::size_t> used(aside.size());
    for (std::size_t i = 0; i < shape_.batch; ++i) {
      const std::size_t page = ring.oldest(i);
      const std::size_t which = arena_.range_of(page) % shape_.userfaultfds;
      std::size_t done = 0;
      int refused = EAGAIN;
      while (refused == EAGAIN) {
        refused = faults_[which].move(aside[which].page(used[which]), arena_.at(page), kPage, done);
      }
      if (refused != 0) stop("cannot move page " + std::to_string(page) + " out: errno " + std::to_string(refused));
      ++used[which];
    }
    for (std::size_t i = 0; i < aside.size(); ++i) {
      if (used[i] > 0) zap(aside[i].data(), used[i] * kPage);
    }
  }

  // ---- before and after

  // A share of the pages, at random, each in the ring of some handler and in no order.
  void fill() {
    std::vector<std::size_t> order(arena_.pages());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937_64(shape_.seed));
    const std::size_t aim = arena_.pages() * shape_.resident_percent / 100 / shape_.handlers;
    const std::size_t limit = aim + kReserve * shape_.batch;
    if (aim < shape_.batch || limit * shape_.handlers > arena_.pages()) {
      stop("too few pages for so many handlers: a larger --size, or a smaller --batch");
    }
    aim_ = static_cast<std::uint32_t>(aim);
    for (Handler& handler : handlers_) handler.ring.reserve(limit);
    order.resize(aim_ * handlers_.size());
    in_threads(shape_.handlers, [&](unsigned thread) {
      alignas(kPage) std::array<std::byte, kPage> content{};
      for (std::size_t i = thread; i < order.size(); i += shape_.handlers) {
        (void)copy_in(order[i], content);
        handlers_[thread].ring.push(order[i]);
      }
    });
  }

  std::uint64_t misses() const {
    std::uint64_t sum = 0;
    for (const Handler& handler : handlers_) sum += handler.misses.load(std::memory_order_relaxed);
    return sum;
  }
  std::uint64_t touches() const {
    std::uint64_t sum = 0;
    for (const Toucher& toucher : touchers_) sum += toucher.touches.load(std::memory_order_relaxed);
    return sum;
  }

  std::string name() const {
    return std::to_string(shape_.threads) + "_" + std::to_string(shape_.handlers) + "_" +
           std::to_string(shape_.userfaultfds) + "_" + std::to_string(shape_.evictors);
  }

  void say_rates(std::uint64_t misses, std::uint64_t touches, double seconds) const {
    say(name(), "misses_per_second", static_cast<double>(misses) / seconds);
    say(name(), "touches_per_second", static_cast<double>(touches) / seconds);
  }

  // Of the whole run, the seconds before the measurement included.
  void say_costs() const {
    const auto total = static_cast<double>(misses());
    std::uint64_t full = 0;
    for (const Handler& handler : handlers_) full += handler.full;
    say(name(), "waits_for_room_per_miss", static_cast<double>(full) / total);
    Used all;
    const auto say_of = [&](const char* metric, const auto& threads) {
      Used sum;
      for (const auto& one : threads) sum.add(one.used);
      all.add(sum);
      say(name(), metric, (sum.user_seconds + sum.system_seconds) / total * 1e6);
    };
    say_of("toucher_cpu_us_per_miss", touchers_);
    say_of("handler_cpu_us_per_miss", handlers_);
    say_of("evictor_cpu_us_per_miss", evictors_);
    say(name(), "switches_per_miss", all.switches / total);
  }

  void check_limit() const {
    std::size_t resident = 0;
    std::vector<os::PageEntry> entries(arena_.range_bytes() / kPage);
    for (unsigned i = 0; i < shape_.ranges; ++i) {
      if (!os::read_page_map(arena_.range(i), entries)) stop("cannot read which pages are in memory");
      for (const os::PageEntry& entry : entries) resident += entry.present ? 1 : 0;
    }
    const std::size_t limit = handlers_.size() * handlers_[0].ring.limit();
    if (resident > limit) stop(std::to_string(resident) + " pages are in memory, of " + std::to_string(limit));
    say(name(), "resident_share", static_cast<double>(resident) / static_cast<double>(arena_.pages()));
  }

  const Shape shape_;
  Arena arena_;
  std::vector<os::Userfault> faults_;
  std::vector<Handler> handlers_;
  std::vector<Evictor> evictors_;
  std::vector<Toucher> touchers_;
  std::uint32_t aim_ = 0;  // pages in a ring that its evictor leaves there
  int ends_;               // readable when the handlers shall end
  int self_;               // this process, for process_madvise()
  std::atomic<bool> touching_ends_{false};
  std::atomic<bool> serving_ends_{false};
};

}  // namespace

void run_bare_pager(const Shape& shape) {
  Shape whole = shape;
  if (whole.ranges == 0) whole.ranges = whole.userfaultfds;
  if (whole.ranges % whole.userfaultfds != 0) stop("--ranges: a multiple of the userfaultfds");
  const std::size_t unit = whole.ranges * kPage;
  whole.bytes = whole.bytes / unit * unit;
  if (whole.events < 1 || whole.events > kMostEvents) stop("--events: 1 to " + std::to_string(kMostEvents));
  if (whole.batch < 1 || whole.batch > 1024) stop("--batch: 1 to 1024 pages");
  if (whole.resident_percent < 1 || whole.resident_percent > 99) stop("--resident: 1 to 99 per cent");
  BarePager(whole).run();
}

}  // namespace farheap::bench::faults
