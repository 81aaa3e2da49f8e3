// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The frame in which single operations of the kernel are timed: the same memory size and the same order of pages for
// all, and, where it is asked for, threads beside that read memory of their own. Pages are touched in a random order,
// because a pager does not choose who touches them.
//
// Thread-safety: one thread.
#pragma once

#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "faults/kernel.hpp"

namespace farheap::bench::faults {

// Threads of this process that read at random while others are timed: whoever changes page tables must interrupt them.
class Beside {
 public:
  explicit Beside(unsigned threads);
  ~Beside();

 private:
  Memory memory_;
  std::atomic<bool> ends_{false};
  std::atomic<std::uint64_t> sum_{0};  // of what was read, so that it is read
  std::vector<std::jthread> threads_;
};

class PriceList {
 public:
  PriceList(std::size_t bytes, unsigned beside, std::uint64_t seed);

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t pages() const { return order_.size(); }
  [[nodiscard]] std::span<const std::uint32_t> order() const { return order_; }  // all, each once
  [[nodiscard]] std::span<const std::uint32_t> half() const { return order().first(pages() / 2); }

  // Microseconds of the processor for one of `count` that `work` does in this thread: other programs do not count.
  template <class Work>
  void time(const std::string& name, std::size_t count, Work work) const {
    say(name, metric_.c_str(), processor_seconds(work) * 1e6 / static_cast<double>(count));
  }
  // The same for 256 MiB, of work on all of the memory.
  template <class Work>
  void time_256_mib(const std::string& name, Work work) const {
    const double share = static_cast<double>(bytes_) / (256.0 * (1 << 20));
    say(name, metric_.c_str(), processor_seconds(work) * 1e6 / share);
  }
  // By the clock, of what another thread has a part in.
  template <class Work>
  void time_with_others(const std::string& name, std::size_t count, Work work) const {
    const auto start = Clock::now();
    work();
    say(name, metric_.c_str(), seconds_since(start) * 1e6 / static_cast<double>(count));
  }

 private:
  template <class Work>
  [[nodiscard]] static double processor_seconds(Work work) {
    const auto now = [] {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    };
    const double start = now();
    work();
    return now() - start;
  }

  std::size_t bytes_;
  std::vector<std::uint32_t> order_;
  std::string metric_;
  Beside beside_;
};

// PAGEMAP_SCAN, where the kernel has it (Linux 6.7).
class PageScan {
 public:
  explicit PageScan(std::size_t pages);
  ~PageScan();
  PageScan(const PageScan&) = delete;
  PageScan& operator=(const PageScan&) = delete;

  [[nodiscard]] bool can(const Memory& memory);
  // How many pages have the category (os::abi::kPageIs...).
  std::size_t count(const Memory& memory, std::uint64_t category, std::uint64_t flags = 0);

 private:
  long scan(const Memory& memory, std::uint64_t category, std::uint64_t flags);
  int file_;
  std::vector<std::uint64_t> found_;
};

// Reads the pages and stops the program if one is not what number_pages() made it.
void read_numbered(const Memory& memory, std::span<const std::uint32_t> pages);

// One line that a price is left out, and why.
void leave_out(const char* what, const char* why);

// The prices of ...
void price_file(const PriceList& list,
                bool shared);                        // a file in memory, mapped and watched: its pages leave and return
void price_write_protection(const PriceList& list);  // anonymous memory whose writes are noticed
void price_copy_and_drop(const PriceList& list);
void price_move(const PriceList& list);
void price_handler(const PriceList& list);  // a miss and a rescue through a thread that waits for them

}  // namespace farheap::bench::faults
