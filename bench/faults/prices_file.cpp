// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file in memory, mapped and registered with a userfaultfd. MADV_DONTNEED takes a page out of the page tables and
// leaves it in the file; the next touch is served by the kernel alone, and no event is raised. That the mapping is
// registered for write protection, too, keeps the kernel from mapping neighbours of what is touched.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "faults/price_list.hpp"
#include "os/uffd_abi.hpp"

namespace farheap::bench::faults {
namespace {

using os::abi::kPageIsPresent;

void check_count(const char* what, std::size_t found, std::size_t expected) {
  if (found != expected) stop(std::string(what) + ": " + std::to_string(found) + ", not " + std::to_string(expected));
}

void punch(int file, std::size_t offset, std::size_t bytes) {
  const int how = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  if (fallocate(file, how, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) stop_errno("punch a hole");
}

// What of the memory is in the page tables, as every kernel tells it.
void read_page_map(const Memory& memory, std::vector<std::uint64_t>& entries) {
  const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const std::size_t bytes = entries.size() * sizeof entries[0];
  const auto at = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(memory.data()) / kPage * sizeof entries[0]);
  if (file < 0 || pread(file, entries.data(), bytes, at) != static_cast<ssize_t>(bytes)) stop_errno("read pagemap");
  close(file);
}

// All pages are present, then half of them are not, then all leave in pieces of 2 MiB.
void price_leaving(const PriceList& list, const Memory& view, const std::string& kind) {
  PageScan scan(list.pages());
  std::vector<std::uint64_t> entries(list.pages());
  const bool can_scan = scan.can(view);
  if (!can_scan) leave_out("scan_present", "this kernel has no PAGEMAP_SCAN");
  if (can_scan) {
    list.time_256_mib("scan_all_present_" + kind,
                      [&] { check_count("present", scan.count(view, kPageIsPresent), list.pages()); });
  }
  list.time_256_mib("pagemap_read_" + kind, [&] { read_page_map(view, entries); });
  list.time("zap_page_" + kind, list.half().size(), [&] {
    for (const std::uint32_t page : list.half()) zap(view.page(page), kPage);
  });
  if (can_scan) {
    list.time_256_mib("scan_half_present_" + kind,
                      [&] { check_count("present", scan.count(view, kPageIsPresent), list.pages() / 2); });
  }
  read_numbered(view, list.half());
  list.time("zap_2mib_" + kind, list.bytes() / kHuge, [&] {
    for (std::size_t at = 0; at < list.bytes(); at += kHuge) zap(view.data() + at, kHuge);
  });
  if (can_scan) check_count("present after the zap", scan.count(view, kPageIsPresent), 0);
}

void write_all(const PriceList& list, const Memory& view) {
  for (const std::uint32_t page : list.order()) word_of(view.page(page)) = page;
}

}  // namespace

void price_file(const PriceList& list, bool shared) {
  const std::string kind = shared ? "shared" : "private";
  const int file = open_memory_file(list.bytes());
  const Memory store = Memory::of_file(file, list.bytes(), true);
  number_pages(store);
  const Memory view = Memory::of_file(file, list.bytes(), shared);
  os::Userfault faults = open_userfault();
  watch(faults, view.data(), view.bytes());

  list.time("refill_read_" + kind, list.pages(), [&] { read_numbered(view, list.order()); });
  price_leaving(list, view, kind);
  list.time("refill_write_" + kind, list.pages(), [&] { write_all(list, view); });
  if (!shared) {
    zap(view.data(), view.bytes());
    read_numbered(view, list.order());
    list.time("write_after_read_private", list.pages(), [&] { write_all(list, view); });
  }

  zap(view.data(), view.bytes());  // a private mapping's own copies are gone with this
  read_numbered(view, list.order());
  const std::size_t middle = list.bytes() / 2 / kHuge * kHuge;
  list.time("hole_2mib_" + kind, middle / kHuge, [&] {
    for (std::size_t at = 0; at < middle; at += kHuge) punch(file, at, kHuge);
  });
  list.time("hole_page_" + kind, (list.bytes() - middle) / kPage, [&] {
    for (const std::uint32_t page : list.order()) {
      if (page >= middle / kPage) punch(file, page * kPage, kPage);
    }
  });
  os::FaultEvent event;
  if (faults.read_event(event)) stop("the kernel raised an event for a page that was in the file");
  close(file);
}

}  // namespace farheap::bench::faults
