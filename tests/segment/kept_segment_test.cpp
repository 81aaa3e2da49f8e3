// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/kept_segment.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

namespace farheap::segment {
namespace {

constexpr std::size_t kPages = 16'384;  // four times what fits
constexpr std::size_t kWords = base::kPageBytes / 8;
constexpr KeptSegment::Settings kSettings{.memory_bytes = 16 * base::kMiB, .capacity_bytes = 1 * base::kGiB};

class KeptSegmentTest : public testing::Test {
 protected:
  KeptSegmentTest() {
    std::string name = testing::TempDir() + "/farheap-segment-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~KeptSegmentTest() override { std::filesystem::remove_all(folder_); }
  std::unique_ptr<Store> store() const {
    return open_store("file:" + folder_ + "/segment", {.lifetime = Lifetime::kKeep}).value();
  }

 private:
  std::string folder_;
};

// All kinds of commit are of a cut: a removal, too, which once took what had left memory since.
TEST_F(KeptSegmentTest, WhatLeavesMemoryAfterTheCutIsNotInTheCommit) {
  std::uint64_t* last = nullptr;
  {
    auto segment = KeptSegment::create(store(), kSettings).value();
    last = reinterpret_cast<std::uint64_t*>(segment->obtain((kPages + 1) * base::kPageBytes, base::kPageBytes));
    ASSERT_NE(last, nullptr);
    std::uint64_t* const words = last + kWords;
    std::atomic<bool> stop{false};
    std::thread writer([&] {
      std::mt19937 random(5);
      for (std::uint64_t number = 1; !stop; ++number) {
        *last = number;
        words[random() % kPages * kWords] = number;
      }
    });
    for (int i = 0; i < 6; ++i) {
      for (const auto kind : {KeptSegment::Kind::kCommit, KeptSegment::Kind::kSnapshot, KeptSegment::Kind::kRemoval}) {
        // Long enough for pages to leave, if they could.
        const Status done = segment->commit(kind, "one", [] { usleep(30'000); });
        EXPECT_TRUE(done) << done.error().message();
      }
    }
    stop = true;
    writer.join();
  }
  auto segment = KeptSegment::open(store(), kSettings).value();
  const std::uint64_t newest = *last;
  EXPECT_GT(newest, 0u);
  std::size_t too_new = 0;
  for (std::size_t i = 1; i <= kPages; ++i) too_new += last[i * kWords] > newest;
  EXPECT_EQ(too_new, 0u);
}

}  // namespace
}  // namespace farheap::segment
