// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `farheap run --hints` hands to the program's processes: a file in memory with the hints, and with counters that
// the processes write and the tool reads. Tool and library are of one build.
//
// Thread-safety: the counters are atomic.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <farheap/result.hpp>
#include <string>

#include "plan/kernel_hints.hpp"

namespace farheap::plan {

inline constexpr char kHintsVariable[] = "FARHEAP_HINTS";  // the path of the file

struct HintPage {
  static constexpr std::array<char, 8> kMagic = {'F', 'H', 'H', 'I', 'N', 'T', 'S', '1'};

  std::array<char, 8> magic;
  HintKind kind;
  std::uint32_t unused;
  std::uint64_t room_bytes;  // to lock; of what comes next, an eighth of it is asked for ahead
  std::uint64_t objects, plan_bytes;
  std::atomic<std::uint64_t> recognised;         // planned objects that were allocated
  std::atomic<std::uint64_t> most_locked_bytes;  // by one process at once
  std::atomic<std::uint64_t> advised_bytes;      // in all
  std::atomic<std::uint64_t> refusals;           // of the kernel
  // Behind it: accesses of each object, and the plan.
};

class HintFile {
 public:
  // Close-on-exec; lives as long as this object. kNoSpace.
  [[nodiscard]] static Result<HintFile> make(const HintPlan& hints, HintKind kind, std::uint64_t room_bytes);
  // As path() of it has it, in a process of the same user. kCorrupt for what is none.
  [[nodiscard]] static Result<HintFile> open(const std::string& path);
  HintFile(HintFile&& other) noexcept;
  HintFile& operator=(HintFile&&) = delete;
  ~HintFile();

  // By which other processes open it while this one lives.
  [[nodiscard]] std::string path() const;
  [[nodiscard]] HintPage& page() const { return *page_; }
  [[nodiscard]] Result<HintPlan> hints() const;

 private:
  HintFile(int file, HintPage* page, std::size_t bytes) : file_(file), page_(page), bytes_(bytes) {}
  [[nodiscard]] static Result<HintFile> map(int file, std::size_t bytes);

  int file_ = -1;
  HintPage* page_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace farheap::plan
