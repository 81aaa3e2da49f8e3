// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/context_tree.hpp"

#include <gtest/gtest.h>

namespace farheap::profile {
namespace {

TEST(ContextTree, HasParentsBeforeTheirChildren) {
  ContextTree tree;
  EXPECT_EQ(tree.size(), 1u);
  EXPECT_EQ(tree[kRoot].entries, 1u);
  const ContextIndex loop = tree.add({.entries = 3, .seconds = 2});
  const ContextIndex call = tree.add({.parent = loop, .entries = 30});
  EXPECT_EQ(tree[loop].parent, kRoot);
  EXPECT_EQ(tree[call].parent, loop);
  for (ContextIndex next = 1; next < tree.size(); ++next) EXPECT_LT(tree[next].parent, next);
  EXPECT_EQ(tree.contexts().size(), 3u);
}

}  // namespace
}  // namespace farheap::profile
