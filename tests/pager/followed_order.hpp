// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Orders that sweep over blocks, and a program that is followed along one, touch by touch.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "pager/expected_order.hpp"

namespace farheap::pager::testing {

inline constexpr std::uint32_t kBlock = PageOrder::kBlockPages;

class Memory final : public Budget {
 public:
  std::uint64_t page_limit(std::uint64_t, std::uint64_t) override { return pages; }
  std::uint64_t pages = 128 * kBlock;
};

// Sweeps over so many blocks, page by page.
inline std::shared_ptr<const PageOrder> sweeps(unsigned count, std::uint32_t blocks, PageOrder::Moment gap = 16) {
  auto order = std::make_shared<PageOrder>(gap);
  for (unsigned i = 0; i < count; ++i) {
    for (PageNumber page = 0; page < PageNumber{blocks} * kBlock; ++page) order->add_use(page);
  }
  order->finish();
  return order;
}

// Blocks 0 to `once` - 1 in turn, and then again and again those from `first` on, of which each takes 64 moments.
inline std::shared_ptr<const PageOrder> round_of(std::uint32_t once, std::uint32_t first, std::uint32_t blocks,
                                                 PageOrder::Moment gap = 16) {
  auto order = std::make_shared<PageOrder>(gap);
  PageOrder::Moment now = 0;
  const auto add = [&](std::uint32_t block) {
    order->add_visit({.block = block, .first = now, .last = now + kBlock - 1});
    now += kBlock;
  };
  for (std::uint32_t block = 0; block < once; ++block) add(block);
  for (std::uint32_t block = 0; block < blocks; ++block) add(first + block);
  order->finish(once, PageOrder::Moment{blocks} * kBlock);
  return order;
}

class ExpectedOrderTest : public ::testing::Test {
 protected:
  // It is acted on as soon as the program is seen in it.
  void follow(std::shared_ptr<const PageOrder> order) {
    look_at(std::move(order));
    order_->trust();
  }
  void look_at(std::shared_ptr<const PageOrder> order) {
    order_ = std::make_unique<ExpectedOrder>(ExpectedOrder::Tables(std::move(order), false, room_.limit()), table_,
                                             policy_, room_);
  }
  void show(std::uint32_t block, bool fresh = false) {
    const PageRun run{PageNumber{block} * kBlock, kBlock};
    const BlockId id = table_.new_block(run.first, run.count);
    for (std::uint32_t i = 0; i < run.count; ++i) {
      table_.set_state(run.first + i, PageState::kPresent);
      table_.tag(run.first + i) = id;
    }
    policy_.entered(id, false, false);
    room_.came(run.count);
    order_->came(run, fresh);
  }
  void store(std::uint32_t block) {
    for (PageNumber page = PageNumber{block} * kBlock; page < PageNumber{block + 1} * kBlock; ++page) {
      table_.set_state(page, PageState::kStored);
    }
  }
  bool touch_block(std::uint32_t block) { return order_->touched(PageNumber{block} * kBlock); }
  // Its block of the order; leaves.
  PageOrder::Number victim() {
    const BlockId id = order_->take_victim();
    if (id == 0) return PageOrder::kNone;
    const auto block = PageOrder::block_of(table_.block(id).first);
    store(block);
    table_.free_block(id);
    room_.went(kBlock);
    return block;
  }

  Memory memory_;
  PageTable table_ = PageTable::make(1 << 16).value();
  Policy policy_{PolicyKind::kPeriod, table_};
  Room room_{memory_};
  std::unique_ptr<ExpectedOrder> order_;
};

}  // namespace farheap::pager::testing
