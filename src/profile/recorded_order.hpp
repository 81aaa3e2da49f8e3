// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order in which a program will use its pages, as the recording of an earlier run says (profile/page_trace.hpp).
//
// Thread-safety: pure functions, but for the file.
#pragma once

#include <cstddef>
#include <farheap/result.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "pager/page_order.hpp"

namespace farheap::profile {

// The recording's window hides uses; so long a block may still be in use. `read` fills as much of the bytes as there
// is, and says how much: nothing at the end. Piece by piece, because the whole of it may be more than there is memory
// for. kCorrupt, kUnavailable: as read_page_trace().
[[nodiscard]] Result<pager::PageOrder> read_page_order(const std::function<std::size_t(std::span<std::byte>)>& read);

// Of a file. It is advice: without it, or with a wrong one, the program runs as ever; so what cannot be read is a line
// in the log, and nullptr.
[[nodiscard]] std::shared_ptr<const pager::PageOrder> recorded_order(const std::string& path);

}  // namespace farheap::profile
