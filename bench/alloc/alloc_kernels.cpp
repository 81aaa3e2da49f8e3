// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that time malloc and free, whichever library provides them (LD_PRELOAD). Objects are written at both ends
// by whoever gets them and checked when they are freed.
//
//   alloc_kernels pairs|remote|fill|overhead|shrunk THREADS SEED     prints one line: VALUE CHECKED_OBJECTS
//
// pairs     ns for one free and one malloc of a random size, 8 B to 4 KiB, at a random place of a working set
// remote    ns for one object that one thread allocates and another one frees
// fill      ns for one malloc of a random size and the first touch of all its pages
// overhead  resident bytes over live bytes after the working set was churned: all objects replaced five times
// shrunk    the same, when then half of the objects are freed and the rest is churned again
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

namespace {

constexpr std::size_t kLargest = 4096;
constexpr std::size_t kSmallest = 8;

class Random {  // xorshift64*: cheap beside what is measured
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1du;
  }
  std::size_t below(std::size_t limit) { return ((next() >> 32) * limit) >> 32; }
  std::size_t size() { return kSmallest + below(kLargest - kSmallest + 1); }

 private:
  std::uint64_t state_;
};

struct Object {
  unsigned char* at;
  std::size_t bytes;
};

// Memory of the benchmark itself: not from the malloc under test.
template <class T>
T* table(std::size_t count) {
  void* at =
      mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) {
    std::perror("mmap");
    std::exit(1);
  }
  return static_cast<T*>(at);
}

std::uint64_t seal_of(const Object& object) { return reinterpret_cast<std::uintptr_t>(object.at) * 31 + object.bytes; }

Object make(Random& random) {
  std::size_t bytes = random.size();
  Object object{static_cast<unsigned char*>(std::malloc(bytes)), bytes};
  if (object.at == nullptr) {
    std::fprintf(stderr, "malloc(%zu) failed\n", bytes);
    std::exit(1);
  }
  std::uint64_t seal = seal_of(object);
  std::memcpy(object.at, &seal, sizeof seal);
  std::memcpy(object.at + bytes - sizeof seal, &seal, sizeof seal);
  return object;
}

std::atomic<std::uint64_t> g_checked{0};

void check(const Object& object) {
  std::uint64_t seal = seal_of(object);
  bool both_ends = object.bytes >= 2 * sizeof seal;  // in a smaller object the second seal lies over the first
  if ((both_ends && std::memcmp(object.at, &seal, sizeof seal) != 0) ||
      std::memcmp(object.at + object.bytes - sizeof seal, &seal, sizeof seal) != 0) {
    std::fprintf(stderr, "an object of %zu bytes at %p is damaged\n", object.bytes, static_cast<void*>(object.at));
    std::exit(1);
  }
}

void check_and_free(const Object& object) {
  check(object);
  std::free(object.at);
}

double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Barrier {
 public:
  explicit Barrier(int threads) : left_(threads) {}
  void wait() {
    left_.fetch_sub(1);
    while (left_.load() > 0) std::this_thread::yield();
  }

 private:
  std::atomic<int> left_;
};

// Runs work(thread, barrier) in `threads` threads; the mean of what they return.
template <class Work>
double run_threads(int threads, Work work) {
  Barrier barrier(threads);
  double results[64] = {};
  std::thread others[64];
  for (int i = 1; i < threads; ++i) others[i] = std::thread([&, i] { results[i] = work(i, barrier); });
  results[0] = work(0, barrier);
  double sum = results[0];
  for (int i = 1; i < threads; ++i) {
    others[i].join();
    sum += results[i];
  }
  return sum / threads;
}

constexpr std::size_t kWorkingSet = 50'000;  // objects a thread: about 100 MB
constexpr std::size_t kPairs = 2'000'000;

double pairs(int thread, Barrier& barrier, std::uint64_t seed) {
  Random random(seed * 100 + static_cast<std::uint64_t>(thread));
  auto* objects = table<Object>(kWorkingSet);
  for (std::size_t i = 0; i < kWorkingSet; ++i) objects[i] = make(random);
  barrier.wait();
  double start = now_ns();
  for (std::size_t i = 0; i < kPairs; ++i) {
    Object& object = objects[random.below(kWorkingSet)];
    check_and_free(object);
    object = make(random);
  }
  double elapsed = now_ns() - start;
  for (std::size_t i = 0; i < kWorkingSet; ++i) check_and_free(objects[i]);
  g_checked += kPairs + kWorkingSet;
  return elapsed / kPairs;
}

double fill(int thread, Barrier& barrier, std::uint64_t seed) {
  constexpr std::size_t kObjects = 100'000;
  Random random(seed * 100 + static_cast<std::uint64_t>(thread));
  auto* objects = table<Object>(kObjects);
  barrier.wait();
  double start = now_ns();
  for (std::size_t i = 0; i < kObjects; ++i) objects[i] = make(random);
  double elapsed = now_ns() - start;
  for (std::size_t i = 0; i < kObjects; ++i) check_and_free(objects[i]);
  g_checked += kObjects;
  return elapsed / kObjects;
}

// A ring of batches between a producer and its consumer. Threads come in couples.
struct Ring {
  static constexpr std::size_t kBatch = 256;
  static constexpr std::size_t kBatches = 16;
  Object batches[kBatches][kBatch];
  alignas(64) std::atomic<std::size_t> produced{0};
  alignas(64) std::atomic<std::size_t> consumed{0};
};
constexpr std::size_t kRemoteObjects = 2'000'000;

void produce(Ring& ring, Random& random) {
  for (std::size_t batch = 0; batch < kRemoteObjects / Ring::kBatch; ++batch) {
    while (batch - ring.consumed.load(std::memory_order_acquire) == Ring::kBatches) std::this_thread::yield();
    for (Object& object : ring.batches[batch % Ring::kBatches]) object = make(random);
    ring.produced.store(batch + 1, std::memory_order_release);
  }
}

void consume(Ring& ring) {
  for (std::size_t batch = 0; batch < kRemoteObjects / Ring::kBatch; ++batch) {
    while (ring.produced.load(std::memory_order_acquire) == batch) std::this_thread::yield();
    for (Object& object : ring.batches[batch % Ring::kBatches]) check_and_free(object);
    ring.consumed.store(batch + 1, std::memory_order_release);
  }
}

double remote(int threads, std::uint64_t seed) {
  auto* rings = table<Ring>(static_cast<std::size_t>(threads) / 2);
  g_checked += kRemoteObjects * static_cast<std::uint64_t>(threads) / 2;
  return run_threads(threads, [&](int thread, Barrier& barrier) {
    Random random(seed * 100 + static_cast<std::uint64_t>(thread));
    barrier.wait();
    double start = now_ns();
    if (thread % 2 == 0) {
      produce(rings[thread / 2], random);
    } else {
      consume(rings[thread / 2]);
    }
    return (now_ns() - start) / kRemoteObjects;
  });
}

std::size_t resident_bytes() {
  std::size_t total = 0;
  std::size_t resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu %zu", &total, &resident) != 2) {
    std::perror("/proc/self/statm");
    std::exit(1);
  }
  std::fclose(file);
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void churn(Object* objects, std::size_t count, std::size_t steps, Random& random) {
  for (std::size_t i = 0; i < steps; ++i) {
    Object& object = objects[random.below(count)];
    check_and_free(object);
    object = make(random);
  }
}

// Every thread churns its share; with `shrink`, it then frees half of it and churns the rest.
double overhead(int threads, std::uint64_t seed, bool shrink) {
  constexpr std::size_t kObjects = 100'000;
  std::size_t per_thread = kObjects / static_cast<std::size_t>(threads);
  std::size_t kept = shrink ? per_thread / 2 : per_thread;
  auto* objects = table<Object>(kObjects);
  std::size_t before = resident_bytes();
  run_threads(threads, [&](int thread, Barrier& barrier) {
    Random random(seed * 100 + static_cast<std::uint64_t>(thread));
    Object* mine = objects + static_cast<std::size_t>(thread) * per_thread;
    barrier.wait();
    for (std::size_t i = 0; i < per_thread; ++i) mine[i] = make(random);
    churn(mine, per_thread, 5 * per_thread, random);
    for (std::size_t i = kept; i < per_thread; ++i) check_and_free(mine[i]);
    if (shrink) churn(mine, kept, 5 * kept, random);
    return 0.0;
  });
  std::size_t resident = resident_bytes() - before;
  std::size_t live = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(threads) * per_thread; ++i) {
    if (i % per_thread >= kept) continue;
    check(objects[i]);
    live += objects[i].bytes;
    ++g_checked;
  }
  return static_cast<double>(resident) / static_cast<double>(live);
}

}  // namespace

int main(int count, char** arguments) {
  std::string_view kernel = count > 1 ? arguments[1] : "";
  int threads = count > 2 ? std::atoi(arguments[2]) : 0;
  std::uint64_t seed = count > 3 ? std::strtoull(arguments[3], nullptr, 10) : 1;
  bool couples = kernel == "remote";
  if (threads < 1 || threads > 64 || (couples && threads % 2 != 0)) {
    std::fprintf(stderr,
                 "usage: alloc_kernels pairs|remote|fill|overhead|shrunk THREADS [SEED]   (remote: an even number)\n");
    return 2;
  }
  double value = 0;
  if (kernel == "pairs") {
    value = run_threads(threads, [&](int thread, Barrier& barrier) { return pairs(thread, barrier, seed); });
  } else if (kernel == "fill") {
    value = run_threads(threads, [&](int thread, Barrier& barrier) { return fill(thread, barrier, seed); });
  } else if (kernel == "remote") {
    value = remote(threads, seed);
  } else if (kernel == "overhead" || kernel == "shrunk") {
    value = overhead(threads, seed, kernel == "shrunk");
  } else {
    std::fprintf(stderr, "no kernel '%s': pairs, remote, fill, overhead, shrunk\n", arguments[1]);
    return 2;
  }
  std::printf("%.4f %llu\n", value, static_cast<unsigned long long>(g_checked.load()));
  return 0;
}
