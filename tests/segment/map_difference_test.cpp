// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two versions side by side, against the model of what was written in each.
#include "segment/map_difference.hpp"

#include <gtest/gtest.h>

#include <map>

#include "store/decorator.hpp"
#include "versions_worker.hpp"

namespace farheap::segment {
namespace {

class CountingStore final : public store::Decorator {
 public:
  explicit CountingStore(std::unique_ptr<Store> inner) : Decorator("counting", std::move(inner)) {}
  Status get(std::span<Get> batch) override {
    ++gets;
    return inner_->get(batch);
  }
  std::uint64_t gets = 0;
};

std::unique_ptr<CountingStore> counting_store() {
  auto store = open_store("mem:", {.block_bytes = kPageBytes});
  EXPECT_TRUE(store.has_value());
  return std::make_unique<CountingStore>(std::move(*store));
}

struct State {
  MapSide map;
  ModelPages pages;
};

// What the two hold at a page, 0: nothing.
using Values = std::pair<std::uint64_t, std::uint64_t>;
std::map<PageNumber, Values> values_of(const ModelPages& a, const ModelPages& b) {
  std::map<PageNumber, Values> all;
  for (const auto& [page, value] : a) all[page].first = value;
  for (const auto& [page, value] : b) all[page].second = value;
  return all;
}

// Everything that differs in the model is told; what is told besides was written again with what it held.
void expect_like_the_model(const State& a, const State& b) {
  std::map<PageNumber, PageDifference> told;
  PageNumber last = 0;
  ASSERT_TRUE(for_each_difference(a.map, b.map, [&](std::span<const PageDifference> pages) -> Status {
    for (const PageDifference& one : pages) {
      EXPECT_TRUE(told.emplace(one.page, one).second && (one.page > last || last == 0)) << one.page;
      last = one.page;
    }
    return {};
  }));
  for (const auto& [page, values] : values_of(a.pages, b.pages)) {
    const auto found = told.find(page);
    if (values.first != values.second) {
      ASSERT_NE(found, told.end()) << page;
    }
    if (found == told.end()) continue;
    EXPECT_EQ(found->second.a.is_nowhere(), values.first == 0) << page;
    EXPECT_EQ(found->second.b.is_nowhere(), values.second == 0) << page;
    told.erase(found);
  }
  EXPECT_TRUE(told.empty()) << "page " << told.begin()->first << " is in neither";
}

TEST(MapDifferenceTest, EveryPairOfVersionsDiffersAsTheModelSays) {
  auto store = counting_store();
  auto versions = Versions::create(*store, {.base_address = 1ull << 44, .capacity_pages = 1ull << 34});
  ASSERT_TRUE(versions.has_value());
  VersionsWorker worker(7);
  std::size_t pairs = 0;
  for (int i = 0; i < 240; ++i) {
    const std::string what = worker.step(**versions);
    ASSERT_FALSE(what.starts_with("!")) << what;
    if (i % 40 != 39) continue;
    ASSERT_TRUE((*versions)->commit());
    const ModelState& model = worker.written();
    const Superblock newest = (*versions)->last_commit();
    std::vector<State> states{{{store.get(), newest.map, newest.end_slot}, model.pages},
                              {{store.get(), {}, newest.end_slot}, {}}};
    const auto snapshots = (*versions)->snapshots().value();
    ASSERT_EQ(snapshots.size(), model.snapshots.size());
    for (std::size_t k = 0; k < snapshots.size(); ++k) {
      states.push_back({{store.get(), snapshots[k].map, newest.end_slot}, model.snapshots[k].second});
    }
    for (const State& a : states) {
      for (const State& b : states) expect_like_the_model(a, b);
    }
    pairs += states.size() * states.size();
  }
  EXPECT_GT(pairs, 50u);
}

void write(Versions& versions, PageNumber first, std::uint32_t count, std::uint64_t value) {
  Pages pages;
  for (std::uint32_t i = 0; i < count; ++i) pages.set(i, first + i, value);
  const pager::Backing::Write one{{first, count}, pages.data()};
  ASSERT_TRUE(versions.write({&one, 1}));
}

TEST(MapDifferenceTest, WhatBothShareIsNotRead) {
  auto store = counting_store();
  auto versions = Versions::create(*store, {.base_address = 1ull << 44, .capacity_pages = 1ull << 34});
  ASSERT_TRUE(versions.has_value());
  for (PageNumber page = 0; page < 40 * 512; page += kMostPages) write(**versions, page, kMostPages, 1);
  ASSERT_TRUE((*versions)->snapshot("before"));
  write(**versions, 33 * 512 + 5, 1, 2);
  ASSERT_TRUE((*versions)->commit());
  const Superblock newest = (*versions)->last_commit();
  const Snapshot before = (*versions)->snapshots().value().front();
  std::vector<PageNumber> told;
  store->gets = 0;
  ASSERT_TRUE(for_each_difference({store.get(), before.map, newest.end_slot},
                                  {store.get(), newest.map, newest.end_slot},
                                  [&](std::span<const PageDifference> pages) -> Status {
                                    for (const PageDifference& one : pages) told.push_back(one.page);
                                    return {};
                                  }));
  EXPECT_EQ(told, std::vector<PageNumber>{33 * 512 + 5});
  EXPECT_EQ(store->gets, 2 * (1 + newest.map.levels));  // of 40 leaves one on either side, and what is above it
}

// Words of a damaged tree may lead to one block from everywhere: with fitting checksums, 256^4 leaves.
TEST(MapDifferenceTest, ATreeThatIsNoneEnds) {
  auto store = counting_store();
  alignas(kPageBytes) static BlockWords words{};
  words[0] = SlotRef(3, 0).word();
  std::uint64_t checksum = 0;
  SlotRef at;
  for (std::uint64_t slot = 2; slot < 7; ++slot) {
    for (std::size_t i = 0; slot != 2 && i < 256; ++i) {
      words[2 * i] = at.word();
      words[2 * i + 1] = checksum;
    }
    Put put;
    put.block = slot;
    put.from = std::as_bytes(std::span(words));
    ASSERT_TRUE(store->put({&put, 1}));
    checksum = BlockTree::checksum_of(words);
    at = SlotRef(slot, 0);
  }
  const MapSide tree{store.get(), {at, checksum, 4}, 7};
  const Status status = for_each_difference(tree, {store.get(), {}, 7}, [](auto) { return Status{}; });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace farheap::segment
