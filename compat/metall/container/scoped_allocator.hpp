// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <boost/container/scoped_allocator.hpp>

namespace metall::container {

template <class Outer, class... Inner>
using scoped_allocator_adaptor = boost::container::scoped_allocator_adaptor<Outer, Inner...>;

}  // namespace metall::container
