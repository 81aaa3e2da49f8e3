// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/units.hpp"
#include "terminal.hpp"

namespace farheap::tool {
namespace {

constexpr std::chrono::milliseconds kFirst(300);  // what is done by then needs no line
constexpr std::chrono::milliseconds kBetweenLines(100);
constexpr std::string_view kEraseLine = "\r\033[K";

}  // namespace

std::string progress_text(const std::string& what, std::uint64_t done, std::uint64_t total) {
  if (total == 0) return fmt::format("{}: {}", what, base::format_size(done));
  return fmt::format("{}: {} of {}, {} %", what, base::format_size(done), base::format_size(total),
                     static_cast<int>(static_cast<double>(done) * 100 / static_cast<double>(total)));
}

Progress::Progress(std::string what)
    : what_(std::move(what)), is_seen_(isatty(STDERR_FILENO) != 0), next_(Clock::now() + kFirst) {}

Progress::~Progress() {
  if (is_seen_) put_error(kEraseLine);
}

void Progress::show(std::uint64_t done, std::uint64_t total) {
  if (!is_seen_) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + kBetweenLines;
  put_error(std::string(kEraseLine) + progress_text(what_, done, total));
}

}  // namespace farheap::tool
