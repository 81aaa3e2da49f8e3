// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <metall/container/fallback_allocator.hpp>

namespace metall::utility {

template <class StatefulAllocator>
using fallback_allocator_adaptor = container::fallback_allocator_adaptor<StatefulAllocator>;

}  // namespace metall::utility
