// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "faults/price_list.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "os/uffd_abi.hpp"

namespace farheap::bench::faults {

Beside::Beside(unsigned threads) : memory_(Memory::anonymous(std::size_t{64} << 20)) {
  number_pages(memory_);
  for (unsigned i = 0; i < threads; ++i) {
    threads_.emplace_back([this, i] {
      Random random(i + 1);
      std::uint64_t sum = 0;
      while (!ends_.load(std::memory_order_relaxed)) sum += word_of(memory_.page(random.below(memory_.pages())));
      sum_ += sum;
    });
  }
}

Beside::~Beside() { ends_ = true; }

PriceList::PriceList(std::size_t bytes, unsigned beside, std::uint64_t seed)
    : bytes_(bytes / kHuge * kHuge),
      order_(bytes_ / kPage),
      metric_(beside == 0 ? "us" : "us_beside_" + std::to_string(beside)),
      beside_(beside) {
  for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::uint32_t>(i);
  std::shuffle(order_.begin(), order_.end(), std::mt19937_64(seed));
}

namespace {
constexpr std::size_t kRegionWords = sizeof(os::abi::PageRegion) / sizeof(std::uint64_t);
}

PageScan::PageScan(std::size_t pages)
    : file_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)), found_((pages / 2 + 1) * kRegionWords) {
  if (file_ < 0) stop_errno("open /proc/self/pagemap");
}

PageScan::~PageScan() { close(file_); }

long PageScan::scan(const Memory& memory, std::uint64_t category, std::uint64_t flags) {
  os::abi::PagemapScan argument{};
  argument.size = sizeof argument;
  argument.flags = flags;
  argument.start = reinterpret_cast<std::uintptr_t>(memory.data());
  argument.end = argument.start + memory.bytes();
  argument.vec = reinterpret_cast<std::uintptr_t>(found_.data());
  argument.vec_len = found_.size() / kRegionWords;
  argument.category_mask = category;
  argument.return_mask = category;
  return ioctl(file_, os::abi::kPagemapScan, &argument);
}

bool PageScan::can(const Memory& memory) { return scan(memory, os::abi::kPageIsPresent, 0) >= 0; }

std::size_t PageScan::count(const Memory& memory, std::uint64_t category, std::uint64_t flags) {
  const long regions = scan(memory, category, flags);
  if (regions < 0) stop_errno("scan page tables");
  std::size_t pages = 0;
  for (long i = 0; i < regions; ++i) {
    const std::uint64_t* region = &found_[static_cast<std::size_t>(i) * kRegionWords];
    pages += (region[1] - region[0]) / kPage;
  }
  return pages;
}

void read_numbered(const Memory& memory, std::span<const std::uint32_t> pages) {
  for (const std::uint32_t page : pages) {
    if (word_of(memory.page(page)) != page) stop("page " + std::to_string(page) + " does not hold its number");
  }
}

void leave_out(const char* what, const char* why) { std::fprintf(stderr, "NOT MEASURED: %s: %s\n", what, why); }

}  // namespace farheap::bench::faults
