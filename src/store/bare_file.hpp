// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The blocks of a kept file store without its table, which may be damaged or gone: all that the file has bytes for
// is there. To read only.
//
// Thread-safety: any thread.
#pragma once

#include <farheap/store.hpp>
#include <memory>
#include <string>

namespace farheap::store {

// Blocks are pages.
[[nodiscard]] Result<std::unique_ptr<Store>> open_bare_file(const std::string& path);

}  // namespace farheap::store
