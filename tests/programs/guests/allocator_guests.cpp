// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that bring an allocator of their own: built once for each (CMakeLists.txt), with the allocator's malloc() in
// the executable, where it wins over Farheap's.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "guests.hpp"
#include "own_allocator.hpp"

using namespace guests;

namespace {

constexpr std::size_t kThreads = 4;

struct Object {
  std::uint64_t* words;
  std::size_t bytes;
  std::uint64_t seed;
};

// Mostly small, and now and then one that gets a mapping of its own.
std::size_t some_size(Random& random) {
  const std::size_t kind = random.below(100);
  const std::size_t most_words = kind < 70 ? 64 : kind < 97 ? 4096 : 80000;
  return (2 + random.below(most_words)) * 8;
}

Object make(std::uint64_t seed, Random& random) {
  const std::size_t bytes = some_size(random);
  auto* words = static_cast<std::uint64_t*>(random.below(4) == 0 ? calloc(1, bytes) : malloc(bytes));
  CHECK(words != nullptr);
  fill(words, bytes, seed);
  return {words, bytes, seed};
}

void drop(const Object& object) {
  CHECK_FILLED(object.words, object.bytes, object.seed);
  free(object.words);
}

using Objects = std::vector<Object>;

// Allocates until `bytes` are alive; one in eight goes again on the way.
Objects allocate(std::size_t bytes, std::uint64_t seed) {
  Objects objects;
  Random random(seed);
  for (std::size_t alive = 0; alive < bytes;) {
    objects.push_back(make(seed++, random));
    alive += objects.back().bytes;
    if (random.below(8) != 0) continue;
    std::swap(objects[random.below(objects.size())], objects.back());
    alive -= objects.back().bytes;
    drop(objects.back());
    objects.pop_back();
  }
  return objects;
}

void check_all(const Objects& objects) {
  for (const Object& object : objects) CHECK_FILLED(object.words, object.bytes, object.seed);
}

std::uint64_t digest_of(const Objects& objects) {
  std::uint64_t sum = 0;
  for (const Object& object : objects) sum += digest(object.words, object.bytes, object.seed);
  return sum;
}

// All at once, so that several ask for the memory that brings the budget near.
std::vector<Objects> allocate_by_threads(std::size_t bytes, std::uint64_t seed) {
  std::vector<Objects> found(kThreads);
  std::atomic<std::size_t> ready{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      own::of_the_program();
      ++ready;
      while (ready.load() < kThreads) std::this_thread::yield();
      found[i] = allocate(bytes / kThreads, seed + (i << 32));
    });
  }
  for (auto& thread : threads) thread.join();
  return found;
}

void free_by_threads(std::vector<Objects>& all) {
  std::vector<std::thread> threads;
  for (Objects& objects : all) {
    threads.emplace_back([&objects] {
      own::of_the_program();
      for (const Object& object : objects) drop(object);
      objects.clear();
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace

CASE(allocates_by_threads) {
  std::vector<Objects> all = allocate_by_threads(data_bytes(), 1);
  for (const Objects& objects : all) print_digest("allocated", digest_of(objects));
  free_by_threads(all);
  all = allocate_by_threads(data_bytes() / 2, 1000);
  for (const Objects& objects : all) print_digest("allocated again", digest_of(objects));
}

// A child works on what its parent allocated, with threads of its own, while the parent goes on.
CASE(allocates_and_forks) {
  std::vector<Objects> all = allocate_by_threads(data_bytes(), 2);
  for (std::uint64_t round = 0; round < 3; ++round) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      for (const Objects& objects : all) check_all(objects);
      free_by_threads(all);
      for (const Objects& objects : allocate_by_threads(data_bytes() / 4, 3000 + round)) check_all(objects);
      _exit(17);
    }
    std::vector<Objects> more = allocate_by_threads(data_bytes() / 8, 2000 + round);
    for (const Objects& objects : more) print_digest("beside a child", digest_of(objects));
    free_by_threads(more);
    CHECK(status_of(child) == 17);
  }
  for (const Objects& objects : all) print_digest("after the children", digest_of(objects));
}

// Quickly past a small budget, and out: to be repeated.
CASE(allocates_once) {
  for (const Objects& objects : allocate_by_threads(data_bytes(), 4)) print_digest("allocated", digest_of(objects));
}
