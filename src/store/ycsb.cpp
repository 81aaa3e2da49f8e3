// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/ycsb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>

#include "base/clock.hpp"
#include "store/aligned_buffer.hpp"

namespace farheap::store {
namespace {

using base::Clock;

constexpr char kCannotRunYcsb[] = "cannot run YCSB";
constexpr std::size_t kFields = 10, kFieldBytes = kYcsbRecordBytes / kFields;
constexpr double kTheta = 0.99;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

std::uint64_t next_random(std::uint64_t& state) {  // SplitMix64
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

// What one workload took, by kind of operation.
class Times {
 public:
  // A part of another operation is not one of the workload's.
  void note_part(const char* operation, double us) { times_[operation].push_back(us); }
  void note(const char* operation, double us) {
    note_part(operation, us);
    all_.push_back(us);
  }
  YcsbWorkload summary(std::string name, double seconds) {
    YcsbWorkload result{.name = std::move(name), .operations_per_second = static_cast<double>(all_.size()) / seconds};
    std::ranges::sort(all_);
    result.median_us = quantile(all_, 0.5);
    for (auto& [operation, times] : times_) {
      std::ranges::sort(times);
      result.latencies.push_back(
          {operation, times.size(), quantile(times, 0.25), quantile(times, 0.5), quantile(times, 0.75)});
    }
    return result;
  }

 private:
  std::map<std::string, std::vector<double>> times_;
  std::vector<double> all_;
};

class Run {
 public:
  Run(Store& store, const YcsbOptions& options)
      : store_(store),
        options_(options),
        block_bytes_(store.limits().block_bytes),
        atomic_(has(store.capabilities(), Capability::kVersions)),
        random_(options.seed),
        keys_(options.records, options.seed),
        writes_(options.records * kFields),
        buffer_(block_bytes_) {}

  Result<std::vector<YcsbWorkload>> all() {
    if (block_bytes_ < kYcsbRecordBytes || !buffer_.is_there()) {
      return fail(ErrorCode::kInvalidArgument, kCannotRunYcsb, store_.describe(),
                  fmt::format("a record of {} bytes does not fit a block of {}", kYcsbRecordBytes, block_bytes_));
    }
    auto done = workloads();
    auto erased = store_.erase(options_.first_block, options_.records);
    if (!done) return done;
    if (!erased) return fail(std::move(erased.error()));
    return done;
  }

 private:
  Result<std::vector<YcsbWorkload>> workloads() {
    std::vector<YcsbWorkload> all;
    Status ok =
        timed("load", options_.records, all, [&](std::uint64_t key, Times& times) { return insert(key, times); });
    if (ok) ok = timed("a", options_.operations, all, [&](std::uint64_t, Times& times) { return mixed(times, false); });
    if (ok) ok = timed("f", options_.operations, all, [&](std::uint64_t, Times& times) { return mixed(times, true); });
    if (ok) ok = verify();
    if (!ok) return fail(std::move(ok.error()));
    return all;
  }

  template <class Operation>
  Status timed(const char* name, std::uint64_t count, std::vector<YcsbWorkload>& all, Operation operation) {
    Times times;
    const auto start = Clock::now();
    for (std::uint64_t i = 0; i < count; ++i) {
      if (Status ok = operation(i, times); !ok) return ok;
    }
    all.push_back(times.summary(name, us_since(start) / 1e6));
    return {};
  }

  // Half reads, half writes or read-modify-writes.
  Status mixed(Times& times, bool modifies) {
    const std::uint64_t key = keys_.next();
    const std::uint64_t dice = next_random(random_);
    if (dice % 2 == 0) return read(key, times);
    const std::size_t field = dice / 2 % kFields;
    return modifies ? modify(key, field, times) : write(key, field, times);
  }

  // The whole record, as its fields are after so many writes each.
  void fill(std::uint64_t key) {
    for (std::size_t field = 0; field < kFields; ++field) fill_field(key, field);
  }
  void fill_field(std::uint64_t key, std::size_t field) {
    std::uint64_t state = (key * kFields + field) * 1000003 + writes_[key * kFields + field];
    std::byte* const to = record().data() + field * kFieldBytes;
    for (std::size_t i = 0; i < kFieldBytes; ++i) {
      if (i % 8 == 0) word_ = next_random(state);
      to[i] = static_cast<std::byte>(' ' + (word_ >> i % 8 * 8 & 63));
    }
  }
  std::span<std::byte> record() { return buffer_.part(0, block_bytes_); }

  Status insert(std::uint64_t key, Times& times) {
    fill(key);
    const auto start = Clock::now();
    Put put{.block = options_.first_block + key, .from = record()};
    Status ok = store_.put({&put, 1});
    times.note("insert", us_since(start));
    return ok;
  }

  Status get(std::uint64_t key, Version* version = nullptr) {
    Get get{.block = options_.first_block + key, .into = record()};
    if (Status ok = store_.get({&get, 1}); !ok) return ok;
    if (get.outcome != Outcome::kOk)
      return fail(ErrorCode::kCorrupt, kCannotRunYcsb, store_.describe(), "a record is gone");
    if (version != nullptr) *version = get.version;
    return {};
  }

  Status read(std::uint64_t key, Times& times) {
    const auto start = Clock::now();
    Status ok = get(key);
    times.note("read", us_since(start));
    return ok;
  }

  // A block is written whole; who writes without reading knows what the other fields are.
  Status write(std::uint64_t key, std::size_t field, Times& times) {
    ++writes_[key * kFields + field];
    fill(key);
    const auto start = Clock::now();
    Put put{.block = options_.first_block + key, .from = record()};
    Status ok = store_.put({&put, 1});
    times.note("write", us_since(start));
    return ok;
  }

  Status modify(std::uint64_t key, std::size_t field, Times& times) {
    ++writes_[key * kFields + field];
    const auto start = Clock::now();
    for (;;) {
      Version version = 0;
      if (Status ok = read_for(key, version, times); !ok) return ok;
      fill_field(key, field);
      const auto written = Clock::now();
      Put put{.block = options_.first_block + key, .from = record()};
      if (atomic_) put.expected = version;
      if (Status ok = store_.put({&put, 1}); !ok) return ok;
      times.note_part("write", us_since(written));
      if (put.outcome == Outcome::kConflict) continue;
      times.note("read-modify-write", us_since(start));
      return {};
    }
  }

  Status read_for(std::uint64_t key, Version& version, Times& times) {
    const auto start = Clock::now();
    Status ok = get(key, &version);
    times.note_part("read", us_since(start));
    return ok;
  }

  Status verify() {
    std::vector<std::byte> found(kYcsbRecordBytes);
    for (std::uint64_t key = 0; key < options_.records; ++key) {
      if (Status ok = get(key); !ok) return ok;
      std::memcpy(found.data(), record().data(), found.size());
      fill(key);
      if (std::memcmp(found.data(), record().data(), found.size()) == 0) continue;
      return fail(ErrorCode::kCorrupt, kCannotRunYcsb, store_.describe(),
                  fmt::format("record {} is not what it must be", key));
    }
    return {};
  }

  Store& store_;
  const YcsbOptions& options_;
  std::size_t block_bytes_;
  bool atomic_;
  std::uint64_t random_;
  std::uint64_t word_ = 0;
  ZipfianKeys keys_;
  std::vector<std::uint32_t> writes_;  // of each field of each record
  AlignedBuffer buffer_;
};

double zeta(std::uint64_t count) {
  double sum = 0;
  for (std::uint64_t i = 1; i <= count; ++i) sum += 1 / std::pow(static_cast<double>(i), kTheta);
  return sum;
}

}  // namespace

ZipfianKeys::ZipfianKeys(std::uint64_t count, std::uint64_t seed)
    : count_(count),
      state_(seed ^ 0x5bd1e995),
      zeta_(zeta(count)),
      alpha_(1 / (1 - kTheta)),
      eta_((1 - std::pow(2.0 / static_cast<double>(count), 1 - kTheta)) / (1 - zeta(2) / zeta_)),
      second_(1 + std::pow(0.5, kTheta)) {}

std::uint64_t ZipfianKeys::next_rank() {
  const double u = static_cast<double>(next_random(state_) >> 11) * 0x1p-53;
  if (u * zeta_ < 1) return 0;
  if (u * zeta_ < second_) return std::min<std::uint64_t>(1, count_ - 1);
  const double rank = static_cast<double>(count_) * std::pow(eta_ * u - eta_ + 1, alpha_);
  return std::min(static_cast<std::uint64_t>(rank), count_ - 1);
}

std::uint64_t ZipfianKeys::next() {  // FNV-1a, as YCSB scrambles
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::uint64_t rank = next_rank(), i = 0; i < 8; ++i, rank >>= 8) hash = (hash ^ (rank & 0xff)) * 0x100000001b3u;
  return hash % count_;
}

Result<std::vector<YcsbWorkload>> run_ycsb(Store& store, const YcsbOptions& options) {
  return Run(store, options).all();
}

}  // namespace farheap::store
