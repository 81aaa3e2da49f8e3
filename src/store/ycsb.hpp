// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// YCSB's workloads over a store, with the counts of seed 000 (2.5): a record is 10 fields of 100 bytes and takes one
// block; keys are chosen by the scrambled Zipfian distribution of YCSB (theta 0.99). One client, one operation at a
// time.
//
//   load   1000 inserts
//   A      1000 operations: half reads, half writes
//   F      1000 operations: half reads, half atomic read-modify-writes. As YCSB counts, which counts the parts of a
//          read-modify-write too, these are 1000 reads, 500 writes and 500 read-modify-writes
//
// A read-modify-write is a get and a put over the version that was got, again if somebody else was faster.
// At the end every record is read and compared with what it must be.
//
// B. F. Cooper et al., Benchmarking cloud serving systems with YCSB, SoCC 2010; J. Gray et al., Quickly generating
// billion-record synthetic databases, SIGMOD 1994 (the Zipfian generator).
//
// Thread-safety: one caller.
#pragma once

#include <cstdint>
#include <farheap/store.hpp>
#include <string>
#include <vector>

namespace farheap::store {

struct YcsbOptions {
  std::uint64_t records = 1000;
  std::uint64_t operations = 1000;
  std::uint64_t first_block = 0;  // Requires: [first_block, + records) holds nothing that matters
  std::uint64_t seed = 1;
};

// Of one kind of operation in one workload, in microseconds.
struct YcsbLatency {
  std::string operation;  // "insert", "read", "write", "read-modify-write"
  std::uint64_t count = 0;
  double lower_quartile = 0, median = 0, upper_quartile = 0;
};
struct YcsbWorkload {
  std::string name;      // "load", "a", "f"
  double median_us = 0;  // over all operations, a read-modify-write being one
  double operations_per_second = 0;
  std::vector<YcsbLatency> latencies;
};

// Load, A and F, in this order; the records are erased afterwards. Without versions (see Capability) a
// read-modify-write is not atomic. kCorrupt if a record is not what it must be.
// Requires: a block holds a record.
[[nodiscard]] Result<std::vector<YcsbWorkload>> run_ycsb(Store& store, const YcsbOptions& options = {});

inline constexpr std::size_t kYcsbRecordBytes = 1000;
inline constexpr std::size_t kYcsbBlockBytes = 1024;  // the smallest that holds one

// The generator of keys, below `count`: the same numbers for the same seed.
class ZipfianKeys {
 public:
  ZipfianKeys(std::uint64_t count, std::uint64_t seed);
  [[nodiscard]] std::uint64_t next();
  // Before they are scrambled: 0 is the most frequent.
  [[nodiscard]] std::uint64_t next_rank();

 private:
  std::uint64_t count_;
  std::uint64_t state_;
  double zeta_, alpha_, eta_, second_;
};

}  // namespace farheap::store
