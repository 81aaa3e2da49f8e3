// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which file a kept store's place means: FILE, or in a folder the one of a fixed name. A symbolic link to it is
// followed, so that what stands beside it (FILE.versions, FILE-lock) is found beside the file itself.
//
// Thread-safety: any thread.
#pragma once

#include <farheap/result.hpp>
#include <string>

namespace farheap::store {

inline constexpr char kNameInFolder[] = "farheap.store";
inline constexpr char kLmdbNameInFolder[] = "farheap.mdb";

[[nodiscard]] bool is_folder(const std::string& path);

// kPermission for a symbolic link of a stranger (os::follow_links()).
[[nodiscard]] Result<std::string> kept_file_of(const std::string& place, const char* what,
                                               const char* name_in_folder = kNameInFolder);

// kCorrupt if the file is not there and its table tells of blocks that were in it: it was removed, or moved alone.
[[nodiscard]] Status check_for_lost_file(const std::string& file, const char* what);

}  // namespace farheap::store
