// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <metall/detail/hash.hpp>

namespace metall::utility {

template <class T = void, unsigned int kSeed = 123>
using hash = mtlldetail::hash<kSeed>;
template <unsigned int kSeed = 123>
using str_hash = mtlldetail::str_hash<kSeed>;

}  // namespace metall::utility
