// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What versions of a kept heap cost, each beside what the disk does with the same bytes in one piece.
//
//   commit_bench FOLDER MIB       one round; a line `NAME METRIC VALUE` for each figure
//
// The heap holds MIB in 1 MiB arrays and 100,000 named objects. What it wrote is compared when it is opened again.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <farheap/farheap.hpp>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

using namespace farheap::literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPiece = 1_MiB;
constexpr int kNames = 100'000;

double seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

void say(const char* name, const char* metric, double value) { std::printf("%s %s %.9g\n", name, metric, value); }

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "commit_bench: %s\n", why.c_str());
  std::exit(1);
}

void must(const farheap::Status& status) {
  if (!status) stop(status.error().message());
}

farheap::Heap must(farheap::Result<farheap::Heap> heap) {
  if (!heap) stop(heap.error().message());
  return std::move(*heap);
}

std::uint64_t& word_of(std::byte* page) { return *reinterpret_cast<std::uint64_t*>(page); }

// The bound: the same bytes in one sequential piece, made durable.
double raw_write(const std::string& file, std::size_t bytes) {
  std::vector<std::byte> data(std::min<std::size_t>(bytes, 8_MiB), std::byte{0x5a});
  const int descriptor = open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  if (descriptor < 0) stop("cannot write " + file);
  const auto since = Clock::now();
  for (std::size_t at = 0; at < bytes; at += data.size()) {
    const std::size_t part = std::min(data.size(), bytes - at);
    if (write(descriptor, data.data(), part) != static_cast<ssize_t>(part)) stop("cannot write " + file);
  }
  if (fdatasync(descriptor) != 0) stop("cannot sync " + file);
  const double took = seconds(since);
  close(descriptor);
  unlink(file.c_str());
  return took;
}

// Of the file as it lies there, past the page cache. 0: the file system has no such reads.
double raw_read_mb_s(const std::string& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_DIRECT);
  if (descriptor < 0) return 0;
  auto* const buffer = static_cast<std::byte*>(std::aligned_alloc(kPage, kPiece));
  const auto since = Clock::now();
  std::size_t bytes = 0;
  for (ssize_t got; (got = read(descriptor, buffer, kPiece)) > 0;) bytes += static_cast<std::size_t>(got);
  const double took = seconds(since);
  close(descriptor);
  std::free(buffer);
  return static_cast<double>(bytes) / 1e6 / took;
}

// Of all words of all pieces.
std::uint64_t sum_of(const std::vector<std::byte*>& pieces) {
  std::uint64_t sum = 0;
  for (const std::byte* piece : pieces) {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(piece);
    for (std::size_t i = 0; i < kPiece / sizeof *words; ++i) sum += words[i];
  }
  return sum;
}

// The longest that one write of a thread takes that goes on writing meanwhile.
class WriterBeside {
 public:
  explicit WriterBeside(std::byte* pages) : thread_([this, pages] { write_on(pages); }) {}
  double stop() {
    stop_ = true;
    thread_.join();
    return longest_;
  }

 private:
  void write_on(std::byte* pages) {
    std::mt19937 random(3);
    while (!stop_) {
      const auto since = Clock::now();
      ++word_of(pages + random() % (kPiece / kPage) * kPage);
      longest_ = std::max(longest_, seconds(since));
    }
  }
  std::atomic<bool> stop_{false};
  double longest_ = 0;
  std::thread thread_;
};

class Bench {
 public:
  Bench(std::string folder, std::size_t mib)
      : folder_(std::move(folder)), mib_(mib), uri_("file:" + folder_ + "/heap") {}

  void run() {
    options_.memory = (mib_ + 512) * 1_MiB;
    heap_ = std::make_unique<farheap::Heap>(must(farheap::Heap::create(uri_, options_)));
    fill();
    for (const double percent : {0.01, 0.1, 1.0, 10.0, 100.0}) commit_part(percent);
    measure_pause();
    measure_clean();
    check_and_reopen();
    compare_with_malloc();
    free_most("", false);
    free_most("_random", true);
    heap_.reset();
    must(farheap::Heap::remove(uri_));
  }

 private:
  void fill() {
    for (std::size_t i = 0; i < mib_; ++i) {
      auto* const piece = static_cast<std::byte*>(heap_->allocate(kPiece, kPage));
      if (piece == nullptr) stop("the heap is full");
      for (std::size_t at = 0; at < kPiece; at += kPage) word_of(piece + at) = ++written_;
      pieces_.push_back(piece);
    }
    for (int i = 0; i < kNames; ++i) (void)heap_->construct<int>("object " + std::to_string(i))(i);
    auto** const kept = heap_->construct<std::byte*>("pieces")[pieces_.size()](nullptr);
    std::copy(pieces_.begin(), pieces_.end(), kept);
    must(heap_->commit());
  }

  std::byte* page(std::size_t number) const { return pages_of(number * kPage); }
  std::byte* pages_of(std::size_t offset) const { return pieces_[offset / kPiece] + offset % kPiece; }

  void commit_part(double percent) {
    const std::size_t all = mib_ * (kPiece / kPage);
    const auto wanted = static_cast<std::size_t>(static_cast<double>(all) * percent / 100);
    std::vector<std::size_t> numbers(all);
    for (std::size_t i = 0; i < all; ++i) numbers[i] = i;
    std::shuffle(numbers.begin(), numbers.end(), random_);
    numbers.resize(wanted);
    for (const std::size_t number : numbers) word_of(page(number)) += all;
    const double raw = raw_write(folder_ + "/raw", wanted * kPage);
    const auto since = Clock::now();
    must(heap_->commit());
    const double took = seconds(since);
    char metric[64];
    std::snprintf(metric, sizeof metric, "seconds_%gpct", percent);
    say("all", metric, took);
    std::snprintf(metric, sizeof metric, "raw_seconds_%gpct", percent);
    say("disk", metric, raw);
    std::snprintf(metric, sizeof metric, "over_raw_%gpct", percent);
    say("all", metric, took / raw);
  }

  void measure_pause() {
    for (std::size_t i = 0; i < mib_ * (kPiece / kPage); i += 100) ++word_of(page(i));
    WriterBeside writer(pieces_[0]);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    must(heap_->commit());
    say("all", "pause_seconds", writer.stop());
    must(heap_->commit());
  }

  void measure_clean() {
    auto since = Clock::now();
    must(heap_->commit());
    say("all", "seconds_clean", seconds(since));
    since = Clock::now();
    must(heap_->snapshot("clean"));
    say("all", "snapshot_seconds", seconds(since));
    must(heap_->remove_snapshot("clean"));
  }

  void check_and_reopen() {
    std::vector<std::uint64_t> expected;
    expected.reserve(mib_ * (kPiece / kPage));
    for (std::size_t i = 0; i < mib_ * (kPiece / kPage); ++i) expected.push_back(word_of(page(i)));
    must(heap_->commit());
    heap_.reset();
    const double raw = raw_read_mb_s(folder_ + "/heap");
    auto since = Clock::now();
    heap_ = std::make_unique<farheap::Heap>(must(farheap::Heap::open(uri_, options_)));
    say("all", "open_seconds", seconds(since));
    say("all", "open_kib_read", static_cast<double>(heap_->statistics().bytes_read) / 1024);
    since = Clock::now();
    if (heap_->find<int>("object 7") == nullptr) stop("a name is lost");
    say("all", "first_find_seconds", seconds(since));
    measure_find();
    since = Clock::now();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) wrong += word_of(page(i)) != expected[i];
    if (wrong != 0) stop(std::to_string(wrong) + " pages came back wrong");
    const double read_again = static_cast<double>(mib_ * kPiece) / 1e6 / seconds(since);
    say("all", "read_again_mb_s", read_again);
    if (raw > 0) say("disk", "raw_read_mb_s", raw);
    if (raw > 0) say("all", "read_again_over_raw", read_again / raw);
  }

  void measure_find() {
    std::vector<std::string> names;
    names.reserve(kNames);
    for (int i = 0; i < kNames; ++i) names.push_back("object " + std::to_string(i));
    std::shuffle(names.begin(), names.end(), random_);
    for (const auto& name : names) (void)heap_->find<int>(name);
    const auto since = Clock::now();
    std::int64_t sum = 0;
    for (const auto& name : names) sum += *heap_->find<int>(name);
    if (sum != std::int64_t{kNames} * (kNames - 1) / 2) stop("names lead to other objects");
    say("all", "find_ns", seconds(since) / kNames * 1e9);
  }

  // What was read again beside the same bytes from malloc, in turns.
  void compare_with_malloc() {
    std::vector<std::byte*> others;
    for (const std::byte* piece : pieces_) {
      others.push_back(static_cast<std::byte*>(std::aligned_alloc(kPage, kPiece)));
      std::memcpy(others.back(), piece, kPiece);
    }
    double ours = 1e9, theirs = 1e9;
    for (int turn = 0; turn < 5; ++turn) {
      auto since = Clock::now();
      const std::uint64_t sum = sum_of(pieces_);
      ours = std::min(ours, seconds(since));
      since = Clock::now();
      if (sum_of(others) != sum) stop("what was read again differs");
      theirs = std::min(theirs, seconds(since));
    }
    say("all", "second_pass_over_malloc", ours / theirs);
    for (std::byte* other : others) std::free(other);
  }

  // 2 million small objects, of which 99 % are freed: in the order in which they came, or any. Pages that hold nothing
  // any more should leave the store.
  void free_most(const std::string& how, bool at_random) {
    constexpr std::size_t kObjects = 2'000'000;
    std::vector<void*> objects(kObjects);
    const auto pages = [&] { return static_cast<double>(heap_->versions().value().back().pages); };
    must(heap_->commit());
    const double before = pages();
    for (auto& one : objects) {
      one = heap_->allocate(64);
      std::memset(one, 1, 64);
    }
    must(heap_->commit());
    const double full = pages();
    if (at_random) std::shuffle(objects.begin(), objects.end(), random_);
    constexpr std::size_t kFreed = kObjects * 99 / 100;
    for (std::size_t i = 0; i < kFreed; ++i) heap_->deallocate(objects[i]);
    std::unordered_set<std::uintptr_t> in_use;
    for (std::size_t i = kFreed; i < kObjects; ++i) in_use.insert(reinterpret_cast<std::uintptr_t>(objects[i]) / kPage);
    must(heap_->compact());
    const double hold_nothing = kObjects * 64.0 / kPage - static_cast<double>(in_use.size());
    say("all", ("space_returned" + how).c_str(), (full - pages()) / hold_nothing);
    say("all", ("pages_left" + how).c_str(), pages() - before);
    say("all", ("pages_in_use" + how).c_str(), static_cast<double>(in_use.size()));
    for (std::size_t i = kFreed; i < kObjects; ++i) heap_->deallocate(objects[i]);
  }

  const std::string folder_;
  const std::size_t mib_;
  const std::string uri_;
  farheap::HeapOptions options_;
  std::unique_ptr<farheap::Heap> heap_;
  std::vector<std::byte*> pieces_;
  std::uint64_t written_ = 0;
  std::mt19937_64 random_{11};
};

}  // namespace

int main(int count, char** words) {
  if (count != 3) stop("usage: commit_bench FOLDER MIB");
  Bench(words[1], std::strtoull(words[2], nullptr, 10)).run();
}
