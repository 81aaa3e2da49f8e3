// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/context_tree.hpp"

#include <cassert>
#include <utility>

namespace farheap::profile {

ContextIndex ContextTree::add(Context context) {
  assert(context.parent < contexts_.size());
  contexts_.push_back(std::move(context));
  return static_cast<ContextIndex>(contexts_.size() - 1);
}

}  // namespace farheap::profile
