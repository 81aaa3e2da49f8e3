// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The blocks that are left out are so from the first moment on: no state of the new file has them.
#include "store/clone_file.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.hpp"
#include "base/units.hpp"
#include "os/named_file.hpp"
#include "store/side_table.hpp"

namespace farheap::store {
namespace {

class File {
 public:
  File(const std::string& path, int flags) : file_(open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0600)) {}
  ~File() {
    if (file_ >= 0) close(file_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int get() const { return file_; }
  [[nodiscard]] int release() { return std::exchange(file_, -1); }

 private:
  int file_;
};

constexpr int kFresh = O_RDWR | O_CREAT | O_EXCL;

// From `offset` to the end.
bool share(int from, int to, std::uint64_t offset) {
  struct file_clone_range range{};
  range.src_fd = from;
  range.src_offset = offset;
  range.dest_offset = offset;
  return ioctl(to, FICLONERANGE, &range) == 0;
}

bool clone_table(const std::string& from, const std::string& to, std::uint64_t without) {
  const File old(from, O_RDONLY);
  File fresh(to, kFresh);
  if (old.get() < 0 || fresh.get() < 0 || !share(old.get(), fresh.get(), 0)) return false;
  (void)fchmod(fresh.get(), 0600);
  auto table = SideTable::open(fresh.release(), base::kPageBytes, to);
  if (!table) return false;
  for (std::uint64_t block = 0; block < without; ++block) {
    Word* const word = (*table)->find(block);
    if (word != nullptr && word->exchange(0) != 0) (*table)->blocks_present().fetch_sub(1);
  }
  return (*table)->sync().has_value();
}

bool clone_blocks(const std::string& from, const std::string& to, std::uint64_t without) {
  const File old(from, O_RDONLY), fresh(to, kFresh);
  if (old.get() < 0 || fresh.get() < 0 || !share(old.get(), fresh.get(), without * base::kPageBytes)) return false;
  (void)fchmod(fresh.get(), 0600);
  return fsync(fresh.get()) == 0 && os::make_names_durable(to, "cannot copy the file").has_value();
}

}  // namespace

bool clone_kept_file(const std::string& from, const std::string& to, std::uint64_t without) {
  const std::string table = to + ".versions";
  if (access(to.c_str(), F_OK) == 0 || access(table.c_str(), F_OK) == 0) return false;
  // Without its table a file is no store; with the table alone it is an empty one.
  if (clone_table(from + ".versions", table, without) && clone_blocks(from, to, without)) return true;
  base::log(base::LogLevel::kInfo, "file:{}: its bytes cannot be shared with file:{}: {}", from, to, strerror(errno));
  unlink(to.c_str());
  unlink(table.c_str());
  return false;
}

}  // namespace farheap::store
