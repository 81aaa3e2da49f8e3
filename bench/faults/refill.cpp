// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "faults/refill.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "faults/kernel.hpp"

namespace farheap::bench::faults {
namespace {

constexpr std::uint64_t kLook = 256;  // touches between two looks at the flag

std::uint64_t minor_faults() {
  rusage now{};
  getrusage(RUSAGE_THREAD, &now);
  return static_cast<std::uint64_t>(now.ru_minflt);
}

}  // namespace

void run_refill(const RefillShape& shape) {
  const std::size_t bytes = shape.bytes / kHuge * kHuge;
  const int file = open_memory_file(bytes);
  const Memory store = Memory::of_file(file, bytes, true);
  number_pages(store);
  const Memory view = Memory::of_file(file, bytes, shape.shared);
  os::Userfault faults = open_userfault();
  watch(faults, view.data(), view.bytes());

  std::atomic<bool> ends{false};
  std::atomic<std::uint64_t> touches{0};
  std::atomic<std::uint64_t> refills{0};
  std::uint64_t zaps = 0;
  const auto start = Clock::now();
  {
    std::vector<std::jthread> threads;
    threads.reserve(shape.threads);
    for (unsigned i = 0; i < shape.threads; ++i) {
      threads.emplace_back([&, i] {
        Random random(shape.seed * 1000 + i);
        std::uint64_t done = 0;
        const std::uint64_t before = minor_faults();
        while (!ends.load(std::memory_order_relaxed)) {
          for (std::uint64_t k = 0; k < kLook; ++k, ++done) {
            const std::size_t page = random.below(view.pages());
            if (word_of(view.page(page)) != page) stop("page " + std::to_string(page) + " does not hold its number");
          }
        }
        touches += done;
        refills += minor_faults() - before;
      });
    }
    os::FaultEvent event;
    for (std::size_t at = 0; seconds_since(start) < shape.seconds; at = (at + kHuge) % bytes, ++zaps) {
      zap(view.data() + at, kHuge);
      if (faults.read_event(event)) stop("the kernel raised an event for a page that was in the file");
    }
    ends = true;
  }
  const double took = seconds_since(start);
  close(file);
  const std::string name = (shape.shared ? "shared_" : "private_") + std::to_string(shape.threads);
  say(name, "touches_per_second", static_cast<double>(touches) / took);
  say(name, "refills_per_second", static_cast<double>(refills) / took);
  say(name, "zap_2mib_us", took * 1e6 / static_cast<double>(zaps));
}

}  // namespace farheap::bench::faults
