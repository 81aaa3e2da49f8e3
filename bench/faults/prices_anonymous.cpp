// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private anonymous memory: writes that are noticed, pages that are copied in, moved in and out, and dropped.
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>
#include <vector>

#include "faults/price_list.hpp"
#include "os/kernel_features.hpp"
#include "os/uffd_abi.hpp"

namespace farheap::bench::faults {
namespace {

constexpr std::size_t kBatches[] = {16, 256};
constexpr std::size_t kHandled = 4096;  // touches through a handler

void write_half(const PriceList& list, const Memory& memory) {
  for (const std::uint32_t page : list.half()) word_of(memory.page(page)) = page;
}

// -1: this kernel does not resolve writes to protected pages by itself.
int open_asynchronous(const Memory& memory) {
  const auto opened = os::open_userfault_descriptor(true);
  if (!opened) stop(opened.error().message());
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = os::abi::kFeatureWpAsync | os::abi::kFeatureWpUnpopulated;
  uffdio_register range{};
  range.range = {reinterpret_cast<std::uintptr_t>(memory.data()), memory.bytes()};
  range.mode = UFFDIO_REGISTER_MODE_WP;
  if (ioctl(*opened, UFFDIO_API, &api) == 0 && ioctl(*opened, UFFDIO_REGISTER, &range) == 0) return *opened;
  close(*opened);
  return -1;
}

void copy(os::Userfault& faults, std::byte* to, const std::byte* from, std::size_t bytes) {
  std::size_t done = 0;
  if (const int why = faults.copy(to, from, bytes, done); why != 0) stop("UFFDIO_COPY: errno " + std::to_string(why));
}

void move(os::Userfault& faults, std::byte* to, std::byte* from, std::size_t bytes) {
  std::size_t moved = 0;
  while (moved < bytes) {
    std::size_t done = 0;
    const int why = faults.move(to + moved, from + moved, bytes - moved, done);
    moved += done;
    if (why != 0 && why != EAGAIN) stop("UFFDIO_MOVE: errno " + std::to_string(why));
  }
}

void drop_scattered(int self, const PriceList& list, const Memory& memory, std::size_t batch) {
  std::vector<iovec> pages(batch);
  for (std::size_t at = 0; at < list.pages(); at += batch) {
    for (std::size_t i = 0; i < batch; ++i) pages[i] = {memory.page(list.order()[at + i]), kPage};
    if (syscall(SYS_process_madvise, self, pages.data(), batch, MADV_DONTNEED, 0) < 0) stop_errno("drop many pages");
  }
}

// Brings in what is touched, from memory beside: by a copy or by a move. Ends with the scope.
class FaultHandler {
 public:
  FaultHandler(os::Userfault& faults, const Memory& memory, const Memory& beside, bool moves, bool spins)
      : faults_(faults), memory_(memory), beside_(beside), moves_(moves), spins_(spins) {}
  ~FaultHandler() {
    const std::uint64_t one = 1;
    (void)!write(ends_, &one, sizeof one);
    thread_.join();
    close(ends_);
  }
  FaultHandler(const FaultHandler&) = delete;
  FaultHandler& operator=(const FaultHandler&) = delete;

 private:
  void serve() {
    os::FaultEvent event;
    pollfd both[2] = {{faults_.descriptor(), POLLIN, 0}, {ends_, POLLIN, 0}};
    while (poll(both, 2, spins_ ? 0 : -1) >= 0 && both[1].revents == 0) {
      if (!faults_.read_event(event)) continue;
      const std::size_t page = (event.address - reinterpret_cast<std::uintptr_t>(memory_.data())) / kPage;
      if (moves_)
        move(faults_, memory_.page(page), beside_.page(page), kPage);
      else
        copy(faults_, memory_.page(page), beside_.page(page), kPage);
    }
  }

  os::Userfault& faults_;
  const Memory& memory_;
  const Memory& beside_;
  const bool moves_;
  const bool spins_;
  int ends_ = eventfd(0, EFD_CLOEXEC);
  std::thread thread_{[this] { serve(); }};
};

}  // namespace

void price_write_protection(const PriceList& list) {
  const Memory memory = Memory::anonymous(list.bytes());
  list.time("fresh_touch", list.pages(), [&] {
    for (const std::uint32_t page : list.order()) word_of(memory.page(page)) = page;
  });
  PageScan scan(list.pages());
  const int file = open_asynchronous(memory);
  if (file < 0 || !scan.can(memory)) {
    leave_out("write bits of anonymous memory", "this kernel has no asynchronous write protection");
  } else {
    constexpr std::uint64_t kArm = os::abi::kScanWpMatching | os::abi::kScanCheckWpAsync;
    const auto count = [&](std::size_t expected, std::uint64_t flags) {
      const std::size_t found = scan.count(memory, os::abi::kPageIsWritten, flags);
      if (found != expected) stop(std::to_string(found) + " pages are written, not " + std::to_string(expected));
    };
    list.time_256_mib("write_bits_arm", [&] { count(list.pages(), kArm); });
    list.time("write_bits_first_write", list.half().size(), [&] { write_half(list, memory); });
    list.time_256_mib("write_bits_scan", [&] { count(list.pages() / 2, 0); });
    list.time_256_mib("write_bits_scan_and_arm", [&] { count(list.pages() / 2, kArm); });
  }
  if (file >= 0) close(file);

  const Memory guarded = Memory::anonymous(list.bytes());
  os::Userfault faults = open_userfault();
  watch(faults, guarded.data(), guarded.bytes());
  const std::vector<std::byte> content(kHuge);
  for (std::size_t at = 0; at < list.bytes(); at += kHuge) copy(faults, guarded.data() + at, content.data(), kHuge);
  const auto protect = [&](std::byte* at, std::size_t bytes, bool on) {
    if (const int why = faults.write_protect(at, bytes, on); why != 0) stop("protect: errno " + std::to_string(why));
  };
  list.time("protect_page", list.half().size(), [&] {
    for (const std::uint32_t page : list.half()) protect(guarded.page(page), kPage, true);
  });
  list.time("unprotect_page", list.half().size(), [&] {
    for (const std::uint32_t page : list.half()) protect(guarded.page(page), kPage, false);
  });
  list.time("protect_2mib", list.bytes() / kHuge, [&] {
    for (std::size_t at = 0; at < list.bytes(); at += kHuge) protect(guarded.data() + at, kHuge, true);
  });
}

void price_copy_and_drop(const PriceList& list) {
  const Memory source = Memory::anonymous(list.bytes());
  const Memory memory = Memory::anonymous(list.bytes());
  number_pages(source);
  os::Userfault faults = open_userfault();
  watch(faults, memory.data(), memory.bytes());
  list.time("copy_page", list.pages(), [&] {
    for (const std::uint32_t page : list.order()) copy(faults, memory.page(page), source.page(page), kPage);
  });
  read_numbered(memory, list.order());
  list.time("drop_page", list.pages(), [&] {
    for (const std::uint32_t page : list.order()) zap(memory.page(page), kPage);
  });
  for (const std::size_t batch : kBatches) {
    list.time("copy_page_of_" + std::to_string(batch), list.pages(), [&] {
      for (std::size_t page = 0; page < list.pages(); page += batch) {
        copy(faults, memory.page(page), source.page(page), batch * kPage);
      }
    });
    if (batch == kBatches[0]) zap(memory.data(), memory.bytes());
  }
  const int self = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  iovec one{memory.data(), kPage};
  if (syscall(SYS_process_madvise, self, &one, 1, MADV_DONTNEED, 0) < 0) {
    leave_out("drop_page_of_256_scattered", "this kernel drops no pages by process_madvise()");
  } else {
    list.time("drop_page_of_256_scattered", list.pages(), [&] { drop_scattered(self, list, memory, 256); });
  }
  close(self);
}

void price_move(const PriceList& list) {
  const Memory memory = Memory::anonymous(list.bytes());
  const Memory aside = Memory::anonymous(list.bytes());
  number_pages(memory);
  os::Userfault faults = open_userfault(true);
  if (!faults.features().move) return leave_out("moves", "this kernel has no UFFDIO_MOVE");
  watch(faults, memory.data(), memory.bytes());
  watch(faults, aside.data(), aside.bytes());
  list.time("move_out_page", list.pages(), [&] {
    for (const std::uint32_t page : list.order()) move(faults, aside.page(page), memory.page(page), kPage);
  });
  list.time("move_in_page", list.pages(), [&] {
    for (const std::uint32_t page : list.order()) move(faults, memory.page(page), aside.page(page), kPage);
  });
  for (const std::size_t batch : kBatches) {
    const auto in_batches = [&](const Memory& to, const Memory& from) {
      for (std::size_t page = 0; page < list.pages(); page += batch) {
        move(faults, to.page(page), from.page(page), batch * kPage);
      }
    };
    list.time("move_out_page_of_" + std::to_string(batch), list.pages(), [&] { in_batches(aside, memory); });
    list.time("move_in_page_of_" + std::to_string(batch), list.pages(), [&] { in_batches(memory, aside); });
  }
  read_numbered(memory, list.order());
}

void price_handler(const PriceList& list) {
  const Memory memory = Memory::anonymous(list.bytes());
  const Memory beside = Memory::anonymous(list.bytes());
  number_pages(beside);
  os::Userfault faults = open_userfault(true);
  watch(faults, memory.data(), memory.bytes());
  const auto touched = list.order().first(std::min(kHandled, list.pages()));
  const auto price = [&](const char* name, bool moves, bool spins) {
    {
      const FaultHandler handler(faults, memory, beside, moves, spins);
      list.time_with_others(name, touched.size(), [&] { read_numbered(memory, touched); });
    }
    for (const std::uint32_t page : touched) {
      if (moves) word_of(beside.page(page)) = page;
    }
    zap(memory.data(), memory.bytes());
  };
  price("miss_by_copy_handler_sleeps", false, false);
  price("miss_by_copy_handler_spins", false, true);
  if (!faults.features().move) return leave_out("a rescue by move", "this kernel has no UFFDIO_MOVE");
  price("rescue_by_move_handler_sleeps", true, false);
  price("rescue_by_move_handler_spins", true, true);
}

}  // namespace farheap::bench::faults
