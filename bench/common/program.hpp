// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every benchmark program shares: the same flags, the same phases (prepare, kernel, digest, verify), the
// same one line of JSON on stdout. A program says what it is in a `Program` and hands it to benchmark_main();
// kernel, verifier and statistics stay apart, as in GAPBS.
//
// Thread-safety: benchmark_main() is called once; the callbacks run in the thread that called it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace farheap::bench {

struct Flags {
  std::uint64_t size = 0;   // bytes of data, about; the program rounds it to its shape
  std::uint64_t steps = 0;  // time steps, sweeps or look-ups: the program says which
  unsigned threads = 1;
  std::uint64_t seed = 1;
  bool verify = false;
  std::map<std::string, double> extra;  // the program's own flags, with defaults
};

// One way to call the program that the benchmark shows under a name of its own.
struct Case {
  std::string name;
  std::vector<std::string> arguments;        // added to the defaults
  std::vector<std::string> quick_arguments;  // ... and these for a quick run
};

// Work on which the kernel runs. Constructed by Program::prepare, which is not timed.
class Workload {
 public:
  Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  virtual ~Workload() = default;

  virtual void run_kernel() = 0;                          // the timed phase
  [[nodiscard]] virtual std::uint64_t digest() = 0;       // of the result, bit for bit the same in every run
  [[nodiscard]] virtual std::string verify() = 0;         // "" or what is wrong: checked against theory, not a run
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;  // allocated for data
  [[nodiscard]] virtual std::uint64_t steps() const = 0;  // done by the kernel
};

struct Program {
  std::string name;
  std::string summary;
  Flags defaults;
  std::vector<Case> cases;
  Workload* (*prepare)(const Flags&);  // the caller owns the result
};

// Parses the flags, runs the phases and prints the line. Exit status: 0, 1 when the result is wrong, 2 on a
// wrong flag. `--describe` prints name and cases instead, which is how the driver finds out what there is.
int benchmark_main(int count, char** arguments, const Program& program);

// 128-bit-multiply mixer over seed + index: the same random numbers whatever the order or the thread.
[[nodiscard]] inline std::uint64_t random_at(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15ULL + (index + 1) * 0xd1342543de82ef95ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

[[nodiscard]] std::uint64_t digest_bytes(const void* data, std::size_t bytes, std::uint64_t seed = 0);

}  // namespace farheap::bench
