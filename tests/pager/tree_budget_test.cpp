// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/tree_budget.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/units.hpp"

namespace farheap::pager {
namespace {

using base::kMiB;

// The other process of the run is this test's parent: all that counts of it is that it lives.
class TreeBudgetTest : public testing::Test {
 protected:
  void SetUp() override {
    run_page_->budget_bytes.store(1024 * kMiB);
    other_ = &run_page_->claim(getppid());
    budget_ = std::make_unique<TreeBudget>(*run_page_);
  }
  std::unique_ptr<base::RunPage> run_page_ = std::make_unique<base::RunPage>();
  base::RunSlot* other_ = nullptr;
  std::unique_ptr<TreeBudget> budget_;
};

TEST_F(TreeBudgetTest, WhatWasPromisedToAnotherIsNotPromisedAgain) {
  EXPECT_TRUE(budget_->promise(600 * kMiB));
  other_->promised_bytes.store(600 * kMiB);  // it has not touched any of it
  EXPECT_FALSE(budget_->promise(600 * kMiB));
  other_->promised_bytes.store(0);
  other_->bytes.store(600 * kMiB);
  EXPECT_FALSE(budget_->promise(600 * kMiB)) << "what is used counts, too";
  other_->bytes.store(100 * kMiB);
  EXPECT_TRUE(budget_->promise(600 * kMiB));
}

TEST_F(TreeBudgetTest, AProcessThatPagesIsPromisedOneStep) {
  ASSERT_TRUE(budget_->promise(600 * kMiB));
  const base::RunSlot& own = run_page_->claim(getpid());
  EXPECT_EQ(own.promised_bytes.load(), 0u) << "claimed anew, as after an exec";
  ASSERT_TRUE(budget_->promise(600 * kMiB));
  EXPECT_GE(own.promised_bytes.load(), 600 * kMiB);
  (void)budget_->page_limit(0, 0);
  EXPECT_LT(own.promised_bytes.load(), 100 * kMiB) << "what it holds and a step";
}

TEST_F(TreeBudgetTest, TheDeadHaveNothing) {
  other_->pid.store(0x7ffffffe);  // no process has this number
  other_->promised_bytes.store(1000 * kMiB);
  EXPECT_TRUE(budget_->promise(600 * kMiB));
}

}  // namespace
}  // namespace farheap::pager
