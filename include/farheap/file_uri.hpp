// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The URI of a heap or store in a file of any name. A URI written by hand is "file:" and the path, as long as there is
// no '?', '@', '#', ',', '&' or '%' in it; those are written %3F, %40, %23, %2C, %26 and %25.
//
//   auto heap = farheap::Heap::open_or_create(farheap::file_uri("/tmp/what?now/graph"));
//
// Thread-safety: a plain function.
#pragma once

#include <string>
#include <string_view>

namespace farheap {

[[nodiscard]] std::string file_uri(std::string_view path);

}  // namespace farheap
