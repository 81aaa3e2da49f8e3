// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads that come and go by the thousand: each reads data that left, has variables of its own, and hands what it
// allocated to others, who free it.
#include <mutex>
#include <thread>
#include <unordered_map>

#include "guests.hpp"

using namespace guests;

namespace {

constexpr std::size_t kThreads = 1600, kAtATime = 8;

struct Parcel {
  std::uint64_t* words;
  std::size_t bytes;
  std::uint64_t seed;
};

// What threads that ended have left behind, for those that come.
class Shelf {
 public:
  explicit Shelf(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  void put(const Parcel& parcel) {
    std::lock_guard lock(mutex_);
    bytes_ += parcel.bytes;
    parcels_.push_back(parcel);
  }
  // One that lies there, if there are too many.
  [[nodiscard]] Parcel take(Random& random) {
    std::lock_guard lock(mutex_);
    if (bytes_ <= most_bytes_) return {};
    std::swap(parcels_[random.below(parcels_.size())], parcels_.back());
    const Parcel parcel = parcels_.back();
    parcels_.pop_back();
    bytes_ -= parcel.bytes;
    return parcel;
  }

 private:
  std::mutex mutex_;
  std::vector<Parcel> parcels_;
  std::size_t bytes_ = 0;
  const std::size_t most_bytes_;
};

// In every thread: made at its first use, freed when the thread has all but gone.
struct Own {
  std::unordered_map<std::uint64_t, std::uint64_t> counts;
  ~Own() { CHECK(counts.size() == 100); }
};
thread_local Own t_own;
thread_local std::uint64_t t_block[512];

void check_and_free(const Parcel& parcel) {
  if (parcel.words == nullptr) return;
  CHECK_FILLED(parcel.words, parcel.bytes, parcel.seed);
  free(parcel.words);
}

std::uint64_t live_once(std::uint64_t number, const Pieces& data, Shelf& shelf) {
  Random random(number);
  for (std::uint64_t i = 0; i < 100; ++i) t_own.counts[word(number, i)] = i;
  fill(t_block, sizeof t_block, number);
  for (int k = 0; k < 4; ++k) data.check_a_word(random);
  for (int k = 0; k < 3; ++k) {
    const std::size_t bytes = (8 + random.below(k == 0 ? 400 : 3000)) * 8 * (k == 2 ? 4 : 1);
    auto* words = static_cast<std::uint64_t*>(malloc(bytes));
    CHECK(words != nullptr);
    fill(words, bytes, number * 3);
    shelf.put({words, bytes, number * 3});
    check_and_free(shelf.take(random));
  }
  CHECK_FILLED(t_block, sizeof t_block, number);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < 100; ++i) sum += t_own.counts.at(word(number, i)) * word(number, i);
  return sum;
}

}  // namespace

CASE(threads_by_the_thousand) {
  const Pieces data(data_bytes() * 3 / 4, 21);
  Shelf shelf(data_bytes() / 4);
  std::vector<std::uint64_t> sums(kThreads);
  std::thread threads[kAtATime];
  for (std::size_t number = 0; number < kThreads; ++number) {
    std::thread& place = threads[number % kAtATime];
    if (place.joinable()) place.join();
    place = std::thread([&, number] { sums[number] = live_once(number, data, shelf); });
  }
  for (auto& thread : threads) thread.join();
  Random random(22);
  Shelf* rest = &shelf;
  for (Parcel parcel; (parcel = rest->take(random)).words != nullptr;) check_and_free(parcel);
  data.check_all();
  print_digest("threads", digest(sums.data(), kThreads * sizeof sums[0]));
}
