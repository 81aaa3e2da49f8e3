// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/recorded_order.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/log.hpp"
#include "profile/page_trace.hpp"

namespace farheap::profile {

using pager::PageOrder;

namespace {
constexpr std::size_t kWordsAtOnce = 1 << 14;
constexpr std::uint64_t kMostGap = 1 << 20;
}  // namespace

Result<PageOrder> read_page_order(const std::function<std::size_t(std::span<std::byte>)>& read) {
  std::array<std::byte, PageTraceHeader::kBytes> head;
  const auto begun = read_page_trace(std::span(head).first(read(head)));
  if (!begun) return fail(begun.error());
  PageOrder order(static_cast<PageOrder::Moment>(std::min<std::uint64_t>(begun->header.window_pages, kMostGap)));
  std::vector<std::uint32_t> words(kWordsAtOnce);
  for (std::size_t bytes; (bytes = read(std::as_writable_bytes(std::span(words)))) != 0;) {
    for (const std::uint32_t word : std::span(words).first(bytes / sizeof(std::uint32_t))) {
      const auto entry = unpack_entry(word);
      if (!entry || entry->event == PageEvent::kCut) break;  // the end of what was written
      if (entry->event == PageEvent::kCame || entry->event == PageEvent::kCameFresh) order.add_use(entry->page);
    }
  }
  order.finish();
  return order;
}

std::shared_ptr<const PageOrder> recorded_order(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  auto order = read_page_order([&](std::span<std::byte> into) -> std::size_t {
    std::size_t done = 0;
    for (ssize_t got; done < into.size(); done += static_cast<std::size_t>(got)) {
      got = read(file, into.data() + done, into.size() - done);
      if (got <= 0) break;
    }
    return done;
  });
  if (file >= 0) close(file);
  if (order) return std::make_shared<const PageOrder>(std::move(*order));
  base::log(base::LogLevel::kWarn, "{}: {}; pages are used in no expected order", path, order.error().message());
  return nullptr;
}

}  // namespace farheap::profile
