// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/recorded_order.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "profile/page_trace.hpp"

namespace farheap::profile {
namespace {

std::function<std::size_t(std::span<std::byte>)> bytes_of(const std::vector<std::uint32_t>& words, std::size_t& at) {
  return [&](std::span<std::byte> into) {
    const auto all = std::as_bytes(std::span(words));
    const std::size_t count = std::min(into.size(), all.size() - at);
    std::memcpy(into.data(), all.data() + at, count);
    at += count;
    return count;
  };
}

TEST(RecordedOrder, IsReadFromARecordingUpToItsEnd) {
  const auto header = PageTraceHeader{.base_address = 0, .window_pages = 8}.words();
  std::vector<std::uint32_t> words(header.begin(), header.end());
  for (const PageTraceEntry entry :
       {PageTraceEntry{5, PageEvent::kCameFresh}, {5, PageEvent::kLeftWritten}, {70, PageEvent::kCame}}) {
    words.push_back(pack(entry));
  }
  words.insert(words.end(), {0, pack({200, PageEvent::kCame})});  // behind the end
  std::size_t at = 0;
  const auto order = read_page_order(bytes_of(words, at));
  ASSERT_TRUE(order);
  ASSERT_EQ(order->visits().size(), 2u);
  EXPECT_EQ(order->visits()[1].block, 1u);
  EXPECT_EQ(order->gap(), 8u);
}

TEST(RecordedOrder, WhatIsNoRecordingIsRefused) {
  const std::vector<std::uint32_t> words(100, 7), few(3, 7);
  std::size_t at = 0;
  EXPECT_FALSE(read_page_order(bytes_of(words, at)));
  at = 0;
  EXPECT_FALSE(read_page_order(bytes_of(few, at)));
}

}  // namespace
}  // namespace farheap::profile
