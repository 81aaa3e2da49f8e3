// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts that are inside every page of a report, made at build time from page/ and third_party/web/.
#pragma once

#include <string_view>

namespace farheap::tool {

extern const std::string_view kPageStyle, kPageScript, kPageLicences;

}  // namespace farheap::tool
