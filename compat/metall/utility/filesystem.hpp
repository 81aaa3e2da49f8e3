// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <metall/detail/file.hpp>
#include <string_view>

namespace metall::utility::filesystem {

// A file, or a folder with all in it. True if there is none.
inline bool remove(std::string_view path) { return mtlldetail::remove_file(path); }

}  // namespace metall::utility::filesystem
