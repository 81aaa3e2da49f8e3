// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thread-safety: a pure function.
#pragma once

#include <string>
#include <string_view>

namespace farheap::tool {

// The bytes as a gzip file (RFC 1952) without a name or a time, so that equal bytes make equal files. A build without
// zlib answers the bytes themselves, as a lack of memory does: readers tell the two apart by gzip's magic.
[[nodiscard]] std::string gzipped(std::string_view bytes);

}  // namespace farheap::tool
