// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kept_store.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <farheap/store.hpp>
#include <filesystem>

#include "os/small_file.hpp"
#include "store/kinds.hpp"
#include "store/uri.hpp"
#include "terminal.hpp"

namespace farheap::tool {
namespace {

constexpr char kCannotKeep[] = "cannot keep the store for cores";
constexpr int kShellSignals = 128;  // a shell's own status, when what it ran was ended by a signal

}  // namespace

Result<KeptStore> KeptStore::make(base::Options& options) {
  const auto uri = store::parse_uri(options.store, store::vocabulary());
  if (!uri) return fail(uri.error());
  std::error_code ignored;
  if (uri->place.empty() || !std::filesystem::is_directory(uri->place, ignored)) {
    return fail(ErrorCode::kInvalidArgument, kCannotKeep, options.store, "its place is no folder",
                "name one, as --store file:/var/tmp");
  }
  std::string folder = uri->place + "/farheap-core-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return fail(errno_error(errno, kCannotKeep, uri->place));
  (void)chmod(folder.c_str(), 0700);  // a umask may have taken bits away
  options.store = store::place_inside(options.store, folder.substr(folder.rfind('/') + 1));
  return KeptStore(std::move(folder), options.store);
}

KeptStore::~KeptStore() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

Status KeptStore::check(const base::Options& options) const {
  StoreOptions how;
  how.lifetime = Lifetime::kKeep;
  how.use_io_uring = !options.disable.has(base::Feature::kIoUring);
  how.encrypt_key_file = options.encrypt_key_file;
  how.password_file = options.store_password_file;
  const auto opened = open_store(store::place_inside(options.store, "check"), how);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    std::filesystem::remove(entry.path(), ignored);
  }
  if (!opened) return fail(opened.error());
  return {};
}

void KeptStore::program_ended(const ChildEnd& end) {
  std::error_code ignored;
  const bool by_signal = end.signal != 0 || end.exit_status > kShellSignals;
  if (!by_signal || std::filesystem::is_empty(folder_, ignored)) return;
  say(fmt::format(
      "its store stays: `farheap core CORE --store {} --out WHOLE` makes a core of it whole; then remove {}", store_,
      folder_));
  folder_.clear();
}

std::string why_no_core() {
  rlimit limit{};
  if (getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_cur != 0) return {};
  const auto pattern = os::read_small_file("/proc/sys/kernel/core_pattern");
  if (pattern && pattern->front() == '|') return {};  // what takes cores through a pipe does not heed the limit
  return "`ulimit -c` is 0, so the program will leave no core: ulimit -c unlimited";
}

}  // namespace farheap::tool
