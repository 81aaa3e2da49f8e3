// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The older name of metall::json.
#pragma once

#include <metall/json/json.hpp>

namespace metall::container::experimental::json {
using namespace metall::json;
}
