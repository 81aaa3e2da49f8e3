// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One line on standard error that says how far something long has come: only where that is a terminal. It is gone when
// the work is.
//
// Thread-safety: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/clock.hpp"

namespace farheap::tool {

class Progress {
 public:
  // `what` begins the line: "copying".
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Bytes; `total` 0: nobody knows. Most calls show nothing: it changes a few times a second.
  void show(std::uint64_t done, std::uint64_t total);
  [[nodiscard]] bool is_seen() const { return is_seen_; }

 private:
  using Clock = base::Clock;
  std::string what_;
  bool is_seen_;
  Clock::time_point next_;
};

// "copying: 1.0 GiB of 2.0 GiB, 50 %".
[[nodiscard]] std::string progress_text(const std::string& what, std::uint64_t done, std::uint64_t total);

}  // namespace farheap::tool
