// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/kept_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/uri_path.hpp"
#include "os/named_file.hpp"
#include "store/side_table.hpp"

namespace farheap::store {

bool is_folder(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

Result<std::string> kept_file_of(const std::string& place, const char* what, const char* name_in_folder) {
  auto file = os::follow_links(place, what);
  if (!file || !is_folder(*file)) return file;
  return os::follow_links(*file + "/" + name_in_folder, what);
}

Status check_for_lost_file(const std::string& file, const char* what) {
  struct stat status{};
  if (stat(file.c_str(), &status) == 0 || errno != ENOENT) return {};
  const std::string table = file + ".versions";
  const auto left = SideTable::look(table);
  if (!left || left->blocks == 0) return {};
  return fail(
      ErrorCode::kCorrupt, what, base::path_uri("file", file),
      fmt::format("{} is missing, with all the data; what is left is {}, the table of its {} blocks", file, table,
                  left->blocks),
      fmt::format("bring {} back from where it was moved or copied to; if it is lost, `rm {}` makes the name free",
                  file, table));
}

}  // namespace farheap::store
