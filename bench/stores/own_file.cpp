// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// pread and pwrite past the page cache, 1 MiB each.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "stores/own.hpp"

namespace farheap::bench {
namespace {

class File final : public OwnClient {
 public:
  explicit File(int file) : file_(file) {}
  ~File() override { close(file_); }
  std::size_t batch() const override { return 256; }
  bool write(std::uint64_t first, std::size_t count, const char* bytes) override {
    return is_whole(pwrite(file_, bytes, count * kPage, static_cast<off_t>(first * kPage)), count);
  }
  bool read(std::uint64_t first, std::size_t count, char* into) override {
    return is_whole(pread(file_, into, count * kPage, static_cast<off_t>(first * kPage)), count);
  }

 private:
  static bool is_whole(ssize_t done, std::size_t count) {
    if (done == static_cast<ssize_t>(count * kPage)) return true;
    std::perror("stores_own: the file");
    return false;
  }
  int file_;
};

}  // namespace

std::unique_ptr<OwnClient> own_file(const std::string& place) {
  const int file = open(place.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
  if (file >= 0) return std::make_unique<File>(file);
  std::perror("stores_own: a file past the page cache");
  return nullptr;
}

}  // namespace farheap::bench
