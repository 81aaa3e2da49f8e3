// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The power fails at any moment: what is left opens at the last commit that returned, or at the one under way.
#include <gtest/gtest.h>

#include "power_loss_store.hpp"
#include "versions_worker.hpp"

namespace farheap::segment {
namespace {

std::unique_ptr<Store> store_with(const PowerLossStore::Image& image) {
  auto store = open_store("mem:", {.block_bytes = kPageBytes});
  EXPECT_TRUE(store.has_value());
  std::vector<Put> batch;
  for (const auto& [number, block] : image) {
    Put put;
    put.block = number;
    put.from = *block;
    batch.push_back(put);
    if (batch.size() == 64) {
      EXPECT_TRUE((*store)->put(batch).has_value());
      batch.clear();
    }
  }
  EXPECT_TRUE((*store)->put(batch).has_value());
  return std::move(*store);
}

// Empty if the image opens at one of the states; then `checked` is what check() says.
std::string opens_at_one_of(const PowerLossStore::Image& image, VersionsWorker& worker,
                            const std::vector<const ModelState*>& states) {
  auto store = store_with(image);
  auto versions = Versions::open(*store);
  if (!versions) return versions.error().message();
  std::string wrong;
  for (const ModelState* state : states) {
    wrong = worker.compare(**versions, *state);
    if (!wrong.empty()) continue;
    const Status books = (*versions)->check();
    return books ? "" : books.error().message();
  }
  return wrong;
}

TEST(VersionsPowerLoss, EveryImageOpensAtACommit) {
  std::mt19937_64 random(1);
  std::size_t images = 0;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    PowerLossStore store;
    auto versions = Versions::create(store, {});
    ASSERT_TRUE(versions.has_value());
    VersionsWorker worker(seed);
    std::vector<PowerLossStore::Image> left;
    store.changed = [&] {
      if (random() % 64 != 0) return;
      for (const auto kind : {PowerLossStore::Left::kAll, PowerLossStore::Left::kSome, PowerLossStore::Left::kNone}) {
        left.push_back(store.lost(kind, random));
      }
    };
    for (int i = 0; i < 150; ++i) {
      const ModelState before = worker.committed(), written = worker.written();
      const std::string what = worker.step(**versions);
      ASSERT_FALSE(what.starts_with("!")) << what;
      for (const auto& image : left) {
        const std::string wrong = opens_at_one_of(image, worker, {&before, &worker.committed(), &written});
        ASSERT_EQ(wrong, "") << "seed " << seed << ", in step " << i << ", " << what;
        ++images;
      }
      left.clear();
      if (i % 15 != 14) continue;
      versions = Versions::open(store);  // a process that was killed, and the next one
      ASSERT_TRUE(versions.has_value()) << versions.error().message();
      worker.reopened(worker.committed());
    }
  }
  EXPECT_GT(images, 500u);
}

}  // namespace
}  // namespace farheap::segment
