// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whatever a core holds, it is made whole or refused; its length stays, and nothing crashes or goes on for ever. The
// input is the core; 16 KiB of zeros stand behind it, for the pages that it talks of.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "tool/whole_core.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace farheap;
  const int file = memfd_create("core", MFD_CLOEXEC);
  if (file < 0 || write(file, data, bytes) != static_cast<ssize_t>(bytes)) std::abort();
  const auto length = static_cast<off_t>(bytes + (16 << 10));
  if (ftruncate(file, length) != 0) std::abort();
  const int same = dup(file);
  {
    auto core = tool::CoreFile::take(file, "fuzz");
    const auto notes = core ? tool::find_notes(*core) : tl::unexpected(core.error());
    std::uint64_t read = 0;
    if (notes) {
      auto filled = tool::fill_in(*core, *notes, [&](std::span<Get> batch) -> Status {
        for (auto& entry : batch) {
          std::memset(entry.into.data(), 'y', entry.into.size());
          entry.outcome = entry.block % 3 == 0 ? Outcome::kAbsent : Outcome::kOk;
          ++read;
        }
        return {};
      });
      if (filled && filled->from_store + filled->missing != read) std::abort();
    }
  }
  struct stat status{};
  if (fstat(same, &status) != 0 || status.st_size != length) std::abort();
  close(same);
  return 0;
}
