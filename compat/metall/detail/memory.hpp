// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <unistd.h>

namespace metall::mtlldetail {

inline ssize_t get_page_size() noexcept { return ::sysconf(_SC_PAGE_SIZE); }

}  // namespace metall::mtlldetail
