// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the programs of this folder ask of the kernel: memory by mmap, files in memory, userfaultfds, and the clock.
// Whatever the kernel refuses ends the program with a sentence that says what it was.
//
// Thread-safety: functions may be called from any thread; Memory is a plain value.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "os/userfault.hpp"

namespace farheap::bench::faults {

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kHuge = std::size_t{2} << 20;

using Clock = std::chrono::steady_clock;
[[nodiscard]] inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void stop(const std::string& why);
[[noreturn]] void stop_errno(const std::string& what);

// A file that lives in memory and has no name. The caller closes it, or the end of the program.
[[nodiscard]] int open_memory_file(std::size_t bytes);

class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept : at_(std::exchange(other.at_, nullptr)), bytes_(other.bytes_) {}
  Memory& operator=(Memory&&) = delete;
  ~Memory();

  // In small pages; nothing of it is there yet.
  [[nodiscard]] static Memory anonymous(std::size_t bytes);
  [[nodiscard]] static Memory of_file(int file, std::size_t bytes, bool shared);

  [[nodiscard]] std::byte* data() const { return at_; }
  [[nodiscard]] std::byte* page(std::size_t number) const { return at_ + number * kPage; }
  [[nodiscard]] std::size_t pages() const { return bytes_ / kPage; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  Memory(std::byte* at, std::size_t bytes) : at_(at), bytes_(bytes) {}
  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
};

// The word by which a page is known again: every page begins with its number.
[[nodiscard]] inline volatile std::uint64_t& word_of(std::byte* page) {
  return *reinterpret_cast<volatile std::uint64_t*>(page);
}
void number_pages(const Memory& memory);

// Missing pages of what is registered raise events, and so do writes to write-protected ones.
[[nodiscard]] os::Userfault open_userfault(bool move = false);
void watch(os::Userfault& faults, std::byte* at, std::size_t bytes);

// MADV_DONTNEED.
void zap(std::byte* at, std::size_t bytes);

// xorshift64*: cheap beside what is measured.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1du;
  }
  std::size_t below(std::size_t limit) { return ((next() >> 32) * limit) >> 32; }

 private:
  std::uint64_t state_;
};

// One figure, as a line that run.py reads: NAME METRIC VALUE.
void say(const std::string& name, const char* metric, double value);

}  // namespace farheap::bench::faults
