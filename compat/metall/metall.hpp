// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Metall 0.30's interface on Farheap's kept heaps: programs written for Metall compile with another include path
// (docs/moving.md says what differs). Needs C++20, Boost's headers, and libfarheap.
#pragma once

#include <metall/basic_manager.hpp>
#include <metall/defs.hpp>
#include <metall/logger.hpp>
#include <metall/version.hpp>

// What programs get with Metall's header without asking for it.
#include <boost/container/list.hpp>
#include <boost/container/string.hpp>
#include <boost/container/vector.hpp>
#include <boost/unordered_map.hpp>
#include <cassert>
#include <fstream>
#include <functional>
#include <iostream>
#include <metall/detail/file.hpp>
#include <metall/detail/hash.hpp>
#include <metall/detail/memory.hpp>
#include <metall/detail/utilities.hpp>
#include <sstream>

namespace metall {

using manager = basic_manager<>;

}  // namespace metall
