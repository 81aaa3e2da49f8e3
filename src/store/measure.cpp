// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/measure.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace farheap::store {
namespace {

using base::Clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class Measure {
 public:
  Measure(Store& store, const MeasureOptions& options)
      : store_(store), options_(options), limits_(store.limits()), start_(Clock::now()) {
    blocks_ = std::max<std::uint64_t>(options.bytes / limits_.block_bytes, kLeastBlocks);
    buffer_bytes_ = std::max<std::size_t>(8 * base::kMiB, 8 * limits_.block_bytes);
    void* at = mmap(nullptr, buffer_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    buffer_ = at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
  }
  ~Measure() {
    if (buffer_ != nullptr) munmap(buffer_, buffer_bytes_);
  }
  Measure(const Measure&) = delete;
  Measure& operator=(const Measure&) = delete;

  Result<std::vector<Measurement>> all() {
    if (buffer_ == nullptr) return fail(ErrorCode::kNoSpace, "cannot measure", store_.describe(), "no memory");
    fill_buffer();
    const std::uint64_t range = blocks_;
    auto done = in_order();
    auto erased = store_.erase(options_.first_block, range);
    if (!done) return fail(std::move(done.error()));
    if (!erased) return fail(std::move(erased.error()));
    return std::move(found_);
  }

 private:
  static constexpr std::size_t kInFlight = 8;  // entries of one batch
  static constexpr std::uint64_t kLeastBlocks = 64;

  // Numbers, small differences, zeros: neither constant nor noise, so that compress+ is shown fairly.
  void fill_buffer() {
    std::uint64_t state = 1;
    for (std::size_t i = 0; i < buffer_bytes_; i += 8) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const std::uint64_t word = i % 512 < 256 ? state >> 40 : i;
      std::memcpy(buffer_ + i, &word, 8);
    }
  }

  Status in_order() {
    if (auto ok = fill(); !ok) return ok;
    if (auto ok = runs(true); !ok) return ok;
    if (auto ok = runs(false); !ok) return ok;
    if (auto ok = singles(); !ok) return ok;
    return has(store_.capabilities(), Capability::kCounters) ? counters() : Status{};
  }

  // Writes the range once, in large runs, and makes it smaller if that takes too long.
  Status fill() {
    const std::size_t bytes = std::min({base::kMiB / limits_.block_bytes * limits_.block_bytes,
                                        limits_.largest_value_bytes, blocks_ * limits_.block_bytes});
    const std::uint64_t run = std::max<std::size_t>(bytes, limits_.block_bytes) / limits_.block_bytes;
    for (std::uint64_t block = 0; block < blocks_; block += run) {
      if (seconds_since(start_) > options_.seconds / 4 && block >= kLeastBlocks) blocks_ = block;
      if (block >= blocks_) break;
      const std::uint64_t place = block;
      const auto count = std::min(run, blocks_ - block);
      if (auto ok = transfer(true, {&place, 1}, count * limits_.block_bytes); !ok) return ok;
    }
    return {};
  }

  // Runs from one block (4 KiB at least) to 1 MiB, in batches of eight, one after the other and at random places.
  Status runs(bool write) {
    for (std::size_t bytes = std::max(limits_.block_bytes, base::kPageBytes); bytes <= base::kMiB; bytes *= 4) {
      if (bytes > limits_.largest_value_bytes || bytes / limits_.block_bytes > blocks_) break;
      for (bool random : {false, true}) {
        auto ok = rounds(std::string(write ? "put " : "get ") + base::format_size(bytes) +
                             (random ? ", random, batch" : ", sequential, batch"),
                         "MB/s", [&] { return throughput(write, random, bytes); });
        if (!ok) return ok;
      }
    }
    return {};
  }

  Status singles() {
    for (bool write : {false, true}) {
      auto ok = rounds((write ? "put " : "get ") + base::format_size(limits_.block_bytes) + ", single", "us",
                       [&] { return latency(write); });
      if (!ok) return ok;
    }
    return {};
  }

  Status counters() {
    return rounds("counter add", "us", [&]() -> Result<double> {
      std::vector<double> times;
      for (int i = 0; i < 100; ++i) {
        const auto start = Clock::now();
        auto sum = store_.add("farheap.bench", i % 2 == 0 ? 1 : -1);
        if (!sum) return fail(std::move(sum.error()));
        times.push_back(seconds_since(start) * 1e6);
      }
      return median(times);
    });
  }

  template <class Round>
  Status rounds(std::string name, std::string unit, Round round) {
    std::vector<double> values;
    for (int i = 0; i < options_.rounds; ++i) {
      if (seconds_since(start_) > options_.seconds) break;
      auto value = round();
      if (!value) return fail(std::move(value.error()));
      values.push_back(*value);
    }
    if (values.empty()) return {};
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const double lowest = *low;
    const double highest = *high;
    found_.push_back({std::move(name), std::move(unit), median(values), lowest, highest});
    return {};
  }

  static double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
  }

  Status transfer(bool write, std::span<const std::uint64_t> places, std::size_t bytes) {
    gets_.clear();
    puts_.clear();
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::span<std::byte> part(buffer_ + i * bytes, bytes);
      if (write) {
        puts_.push_back({.block = options_.first_block + places[i], .from = part});
      } else {
        gets_.push_back({.block = options_.first_block + places[i], .into = part});
      }
    }
    return write ? store_.put(puts_) : store_.get(gets_);
  }

  // One round moves a quarter of the range at most.
  Result<double> throughput(bool write, bool random, std::size_t bytes) {
    const std::uint64_t per_run = bytes / limits_.block_bytes;
    const std::uint64_t runs = blocks_ / per_run;
    const std::uint64_t wanted = std::max<std::uint64_t>(runs / 4, 1);
    std::vector<std::uint64_t> order(runs);
    for (std::uint64_t i = 0; i < runs; ++i) order[i] = i * per_run;
    if (random) std::shuffle(order.begin(), order.end(), random_);
    const std::size_t batch = std::min(
        {kInFlight, limits_.largest_batch_operations, buffer_bytes_ / bytes, limits_.largest_batch_bytes / bytes});
    const auto start = Clock::now();
    std::uint64_t done = 0;
    while (done < wanted) {
      const std::size_t count = std::min<std::uint64_t>(batch, wanted - done);
      auto ok = transfer(write, std::span(order).subspan(done, count), bytes);
      if (!ok) return fail(std::move(ok.error()));
      done += count;
      if (seconds_since(start) > options_.seconds / 100) break;
    }
    return static_cast<double>(done * bytes) / 1e6 / std::max(seconds_since(start), 1e-9);
  }

  Result<double> latency(bool write) {
    std::vector<double> times;
    std::uniform_int_distribution<std::uint64_t> any(0, blocks_ - 1);
    const auto begin = Clock::now();
    for (int i = 0; i < 200 && seconds_since(begin) < options_.seconds / 50; ++i) {
      const std::uint64_t place = any(random_);
      const auto start = Clock::now();
      auto ok = transfer(write, {&place, 1}, limits_.block_bytes);
      if (!ok) return fail(std::move(ok.error()));
      times.push_back(seconds_since(start) * 1e6);
    }
    return median(times);
  }

  Store& store_;
  const MeasureOptions& options_;
  Limits limits_;
  Clock::time_point start_;
  std::uint64_t blocks_ = 0;
  std::byte* buffer_ = nullptr;
  std::size_t buffer_bytes_ = 0;
  std::mt19937_64 random_{1};
  std::vector<Get> gets_;
  std::vector<Put> puts_;
  std::vector<Measurement> found_;
};

}  // namespace

Result<std::vector<Measurement>> measure_store(Store& store, const MeasureOptions& options) {
  return Measure(store, options).all();
}

}  // namespace farheap::store
