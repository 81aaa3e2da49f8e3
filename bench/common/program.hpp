// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every benchmark program shares: the same flags, the same phases (prepare, kernel, digest, verify), the
// same one line of JSON on stdout. A program says what it is in a `Program` and hands it to benchmark_main();
// kernel, verifier and statistics stay apart, as in GAPBS. main() is in common/main.cpp: a program defines
// this_program() instead, so that the tests can run its phases one by one and break its result.
//
// Thread-safety: benchmark_main() is called once; the callbacks run in the thread that called it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace farheap::bench {

struct Flags {
  std::uint64_t size = 0;   // bytes of data, about; the program rounds it to its shape
  std::uint64_t steps = 0;  // time steps, sweeps or look-ups: the program says which
  unsigned threads = 1;
  std::uint64_t seed = 1;
  bool verify = false;
  std::uint64_t mlock_bytes = 0;        // of the hottest data to lock in memory before the kernel starts
  std::map<std::string, double> extra;  // the program's own flags, with defaults
};

// One way to call the program that the benchmark shows under a name of its own.
struct Case {
  std::string name;
  std::vector<std::string> arguments;        // added to the defaults
  std::vector<std::string> quick_arguments;  // ... and these for a quick run
};

using ByteRange = std::span<std::byte>;

// Work on which the kernel runs. Constructed by Program::prepare, which is not timed.
class Workload {
 public:
  Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  virtual ~Workload() = default;

  virtual void run_kernel() = 0;                          // the timed phase
  [[nodiscard]] virtual std::uint64_t digest();           // of result(), bit for bit the same in every run
  [[nodiscard]] virtual std::string verify() = 0;         // "" or what is wrong: checked against theory, not a run
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;  // allocated for data
  [[nodiscard]] virtual std::uint64_t steps() const = 0;  // done by the kernel

  // After the kernel: every word that verify() judges; one that is changed makes it complain.
  [[nodiscard]] virtual std::vector<ByteRange> result() = 0;
  // Before the kernel: the data, the most used first. What --mlock takes, as much of it as it was told to.
  [[nodiscard]] virtual std::vector<ByteRange> hottest() = 0;
};

// What the targets of the benchmark call it.
enum class Kind { kSweeping, kRandom, kOther };

struct Program {
  std::string name;
  std::string summary;
  Kind kind = Kind::kOther;
  bool random_trace = false;  // whether most pages that a short memory misses are hit at random, one by one
  Flags defaults;
  std::uint64_t tiny_size = 0;  // the smallest shape on which the verifier's theory holds: for the tests
  std::uint64_t tiny_steps = 0;
  std::vector<Case> cases;
  Workload* (*prepare)(const Flags&);  // the caller owns the result
};

// Defined by each program.
[[nodiscard]] Program this_program();

// Parses the flags, runs the phases and prints the line. Exit status: 0, 1 when the result is wrong, 2 on a
// wrong flag. `--describe` prints name, class, defaults and cases instead, which is how the driver finds out what there is.
int benchmark_main(int count, char** arguments, const Program& program);

// 128-bit-multiply mixer over seed + index: the same random numbers whatever the order or the thread.
[[nodiscard]] inline std::uint64_t random_at(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15ULL + (index + 1) * 0xd1342543de82ef95ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// A number below `count` from 64 random bits, without a division.
[[nodiscard]] inline std::uint64_t scale_random(std::uint64_t random, std::uint64_t count) {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(random) * count) >> 64);
}

// An array's bytes, for result() and hottest().
template <typename T>
[[nodiscard]] ByteRange bytes_of(T* first, std::size_t count) {
  return std::as_writable_bytes(std::span<T>(first, count));
}

[[nodiscard]] std::uint64_t digest_bytes(const void* data, std::size_t bytes, std::uint64_t seed = 0);

}  // namespace farheap::bench
