// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kept stores of file:, from outside. FILE is one if FILE.versions is a table of Farheap; of a folder,
// DIR/farheap.store is the one that file:DIR opens.
//
// A removal first takes the table's name away: a file without its table is opened by nobody. Whoever is killed in the
// middle leaves FILE.versions.removed, and the next one who removes it there ends it.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/uri_path.hpp"
#include "os/named_file.hpp"
#include "store/kept_file.hpp"
#include "store/kinds.hpp"
#include "store/side_table.hpp"

namespace farheap::store {
namespace {

constexpr char kCannotRemove[] = "cannot remove the store";
constexpr std::string_view kTable = ".versions";

namespace fs = std::filesystem;

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }
std::string leaving(const std::string& file) { return file + std::string(kTable) + ".removed"; }

Result<SideTable::Facts> look(const std::string& file) {
  if (!exists(file)) return fail(errno_error(ENOENT, "cannot look at the store", "file:" + file));
  return SideTable::look(file + std::string(kTable));
}

Result<bool> is_there(const std::string& place, const Parameters&, const StoreOptions&) {
  const auto file = kept_file_of(place, "cannot look at the store");
  if (!file) return fail(file.error());
  const auto found = look(*file);
  if (found) return true;
  const auto code = found.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kCorrupt) return false;
  return fail(found.error());
}

Result<std::vector<StoreListing>> list(const std::string& place, const Parameters&, const StoreOptions&) {
  std::vector<StoreListing> all;
  const auto consider = [&](const std::string& file) {
    if (const auto found = look(file))
      all.push_back({.uri = base::path_uri("file", file), .block_bytes = found->block_bytes});
  };
  if (!is_folder(place)) {
    if (!exists(place)) return fail(errno_error(ENOENT, "cannot look for stores", "file:" + place));
    consider(place);
    return all;
  }
  std::error_code why;
  for (const auto& entry : fs::directory_iterator(place, why)) {
    const std::string name = entry.path().string();
    if (name.ends_with(kTable)) consider(name.substr(0, name.size() - kTable.size()));
  }
  if (why) return fail(errno_error(why.value(), "cannot look for stores", "file:" + place));
  std::ranges::sort(all, {}, &StoreListing::uri);
  return all;
}

Status unlink_if_there(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return fail(errno_error(errno, kCannotRemove, path, "its folder has to be writable"));
}

Status remove(const std::string& place, const Parameters&, const StoreOptions&) {
  const auto named = kept_file_of(place, kCannotRemove);
  if (!named) return fail(named.error());
  const std::string& file = *named;
  const std::string table = file + std::string(kTable);
  const bool half_removed = exists(leaving(file));
  if (!half_removed && !exists(file)) return fail(errno_error(ENOENT, kCannotRemove, "file:" + file));
  if (exists(table)) {
    if (const auto found = SideTable::look(table); !found) return fail(found.error());
    if (rename(table.c_str(), leaving(file).c_str()) != 0) {
      return fail(errno_error(errno, kCannotRemove, table, "its folder has to be writable"));
    }
    if (Status durable = os::make_names_durable(file, kCannotRemove); !durable) return durable;
  } else if (!half_removed) {
    return fail(ErrorCode::kConflict, kCannotRemove, "file:" + file,
                fmt::format("it has no {}, so it is not a store of Farheap", table), "rm removes files of any kind");
  }
  if (auto gone = unlink_if_there(file); !gone) return gone;
  if (auto gone = unlink_if_there(leaving(file)); !gone) return gone;
  return os::make_names_durable(file, kCannotRemove);
}

}  // namespace

const Keeper kFileKeeper{.is_there = is_there, .list = list, .remove = remove};

}  // namespace farheap::store
