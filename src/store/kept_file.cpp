// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/kept_file.hpp"

#include <sys/stat.h>

#include "os/named_file.hpp"

namespace farheap::store {

Result<std::string> kept_file_of(const std::string& place, const char* what, const char* name_in_folder) {
  auto file = os::follow_links(place, what);
  struct stat status{};
  if (!file || stat(file->c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return file;
  return os::follow_links(*file + "/" + name_in_folder, what);
}

}  // namespace farheap::store
