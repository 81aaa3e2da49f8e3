// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which file file: means. The lifetime decides: a scratch store has no name (or loses it at once), a kept one is
// FILE, or DIR/farheap.store, with FILE.versions beside it. Mode 0600, whatever the umask.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/log.hpp"
#include "os/named_file.hpp"
#include "store/batch.hpp"
#include "store/file_store.hpp"
#include "store/kept_file.hpp"
#include "store/kinds.hpp"
#include "store/side_table.hpp"

namespace farheap::store {
namespace {

constexpr char kCannotOpenFile[] = "cannot open the store";
constexpr char kRemedy[] = "name a folder you may write, as file:DIR";

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The same file twice: to be written, and to be read only, for forked children. That one may be missing (-1).
struct Nameless {
  int file = -1;
  int reader = -1;
};

Nameless with_reader(int file) {
  return {file, open(fmt::format("/proc/thread-self/fd/{}", file).c_str(), O_RDONLY | O_CLOEXEC)};
}

Result<Nameless> open_nameless(const std::string& folder) {
  int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0) return with_reader(file);
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL) {
    return fail(errno_error(errno, kCannotOpenFile, "file:" + folder, kRemedy));
  }
  base::log(base::LogLevel::kInfo, "file:{}: no nameless files here: one is made and unlinked", folder);
  std::string name = folder + "/.farheap-XXXXXX";
  file = mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) return fail(errno_error(errno, kCannotOpenFile, "file:" + folder, kRemedy));
  unlink(name.c_str());
  return with_reader(file);
}

// A file whose name was wished for, and that must still not outlive us.
Result<Nameless> open_and_unlink(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0 && errno == EEXIST) {
    return fail(ErrorCode::kInvalidArgument, kCannotOpenFile, "file:" + path,
                "it exists, and a store that does not outlive its process would overwrite and unlink it",
                fmt::format("name a folder, as file:{}", folder_of(path)));
  }
  if (file < 0) return fail(errno_error(errno, kCannotOpenFile, "file:" + path, kRemedy));
  unlink(path.c_str());
  return with_reader(file);
}

// For a process that has given up its rights, or shut itself in, and forks. The alternatives are worse: a file that two
// processes write to, or no child.
Result<Nameless> open_in_memory(const Error& refused) {
  const int file = memfd_create("farheap-store", MFD_CLOEXEC);
  if (file < 0) return fail(refused);
  base::log(base::LogLevel::kWarn, "{}: from this fork on, what leaves stays in memory", refused.message());
  return with_reader(file);
}

// The name that was wished for is the first file's; those of forks are made beside it.
StoreResult open_scratch(const std::string& place, const StoreOptions& options) {
  const bool folder = is_folder(place);
  return make_scratch_file_store(place, options, [=, first = true]() mutable -> Result<std::unique_ptr<FileDevice>> {
    const bool of_a_fork = !std::exchange(first, false);
    auto file = folder || of_a_fork ? open_nameless(folder ? place : folder_of(place)) : open_and_unlink(place);
    if (!file && of_a_fork) file = open_in_memory(file.error());
    if (!file) return fail(std::move(file.error()));
    (void)fchmod(file->file, 0600);
    return FileDevice::take(file->file, "file:" + place, options, file->reader);
  });
}

Result<os::NamedFile> open_to_read(const std::string& path) {
  const auto opened = os::open_file_to_read(path, kCannotOpenFile);
  if (!opened) return fail(opened.error());
  return os::NamedFile{*opened, false};
}

StoreResult open_kept(const std::string& place, const StoreOptions& options, bool read_only) {
  const auto file_name = kept_file_of(place, kCannotOpenFile);
  if (!file_name) return fail(file_name.error());
  const std::string& path = *file_name;
  const std::string table_path = path + ".versions";
  struct stat data{};
  struct stat side{};
  if (lstat(path.c_str(), &data) == 0 && data.st_size != 0 && lstat(table_path.c_str(), &side) != 0) {
    return fail(ErrorCode::kInvalidArgument, kCannotOpenFile, "file:" + path,
                fmt::format("it has no {}, so it is not a store", table_path), "name a file that is not there yet");
  }
  if (Status lost = check_for_lost_file(path, kCannotOpenFile); !lost) return fail(std::move(lost.error()));
  // The table first: with it, a file of blocks is known to be ours.
  auto use = SideTable::Use::kWrite;
  auto table_file = os::open_own_file(table_path, 0600, kCannotOpenFile);
  auto file = table_file ? os::open_own_file(path, 0600, kCannotOpenFile) : fail(table_file.error());
  const auto& refusal = table_file ? file : table_file;
  if (read_only && !refusal && refusal.error().code == ErrorCode::kPermission) {
    use = SideTable::Use::kRead;
    if (table_file) close(table_file->file);
    table_file = open_to_read(table_path);
    file = table_file ? open_to_read(path) : fail(table_file.error());
  }
  if (!file) {
    if (table_file) close(table_file->file);
    return fail(std::move(file.error()));
  }
  auto table = SideTable::open(table_file->file, options.block_bytes, table_path, use);
  if (!table) {
    close(file->file);
    return fail(std::move(table.error()));
  }
  auto device = FileDevice::take(file->file, "file:" + path, options);
  // As long as nothing is in it: whoever made the names may have been killed before they were durable.
  if (use == SideTable::Use::kWrite && (*table)->blocks_present().load() == 0) {
    if (Status durable = os::make_names_durable(path, kCannotOpenFile); !durable)
      return fail(std::move(durable.error()));
  }
  return make_kept_file_store(place, std::move(device), std::move(*table));
}

}  // namespace

StoreResult open_file(const std::string& place, const Parameters& parameters, const StoreOptions& options) {
  const std::string subject = "file:" + place;
  if (place.empty()) {
    return fail(ErrorCode::kInvalidArgument, kCannotOpenFile, subject, "the folder or file is missing",
                "write it as file:DIR or file:FILE");
  }
  if (auto ok = check_block_bytes(options.block_bytes, subject); !ok) return fail(std::move(ok.error()));
  const auto read_only = parameters.word("read_only", "no");
  if (read_only != "yes" && read_only != "no")
    return parameters.wrong("read_only", "it is yes or no", "write yes or no");
  if (options.lifetime == Lifetime::kKeep) return open_kept(place, options, read_only == "yes");
  return open_scratch(place, options);
}

}  // namespace farheap::store
