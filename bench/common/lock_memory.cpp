// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/lock_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace farheap::bench {
namespace {

std::string refusal(std::uint64_t wanted, std::uint64_t locked, int error) {
  const std::string what =
      fmt::format("--mlock: cannot lock {} bytes more than the {} that are locked", wanted, locked);
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if ((error == ENOMEM || error == EPERM || error == EAGAIN) && limit.rlim_cur != RLIM_INFINITY) {
    return fmt::format("{}: RLIMIT_MEMLOCK is {} bytes ({}); raise it with ulimit -l, or run as root", what,
                       limit.rlim_cur, std::strerror(error));
  }
  return fmt::format("{}: {}; ask for less than the memory that the program may use", what, std::strerror(error));
}

}  // namespace

tl::expected<std::uint64_t, std::string> lock_memory(const std::vector<std::span<std::byte>>& ranges,
                                                     std::uint64_t most) {
  const std::uint64_t page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::uint64_t locked = 0;
  std::uint64_t previous_end = 0;  // of the pages locked last
  for (const std::span<std::byte> range : ranges) {
    const auto address = reinterpret_cast<std::uint64_t>(range.data());
    std::uint64_t start = address & ~(page - 1);
    if (start + page == previous_end) start = previous_end;
    const std::uint64_t range_end = (address + range.size() + page - 1) & ~(page - 1);
    const std::uint64_t end = std::min(range_end, start + ((most - locked) & ~(page - 1)));
    if (end <= start) continue;
    if (mlock(reinterpret_cast<void*>(start), end - start) != 0) {
      return tl::unexpected(refusal(end - start, locked, errno));
    }
    locked += end - start;
    previous_end = end;
  }
  return locked;
}

}  // namespace farheap::bench
