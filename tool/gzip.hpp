// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thread-safety: a pure function.
#pragma once

#include <string>
#include <string_view>

namespace farheap::tool {

// The bytes as a gzip file (RFC 1952) without a name or a time, so that equal bytes make equal files. In a build
// without zlib, and for want of memory, the bytes themselves: who reads gzip of others tells the two apart by its
// magic.
[[nodiscard]] std::string gzipped(std::string_view bytes);

}  // namespace farheap::tool
