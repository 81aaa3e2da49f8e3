// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The virtual tables of registered types (farheap/polymorphic.hpp), as they lie in this process.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <farheap/result.hpp>
#include <string_view>
#include <vector>

namespace farheap::api {

// An object of the type has, at `offset` bytes from its beginning, a pointer to `table`.
struct VirtualTable {
  std::size_t offset = 0;
  const void* table = nullptr;
};

// kUnavailable: the type (as type_info names it) is not registered. kInvalidArgument: it has another size than
// `element_bytes`, or its tables cannot be told. The result lives as long as the process.
[[nodiscard]] Result<const std::vector<VirtualTable>*> virtual_tables(std::string_view type, std::size_t element_bytes);

// Puts the pointers of `length` objects in a row right.
void set_virtual_tables(const std::vector<VirtualTable>& tables, void* first, std::size_t length,
                        std::size_t element_bytes);

}  // namespace farheap::api
