// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The allocation functions while pages come and go.
#include <errno.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <barrier>
#include <random>
#include <thread>
#include <vector>

#include "cases.hpp"

using namespace cases;

CASE(patterns_of_four_threads) {
  constexpr int kThreads = 4, kRounds = 2;
  constexpr std::size_t kPiece = 256 << 10;
  std::barrier all_hold_theirs(kThreads);  // else a busy machine ran one after the other, and nothing was paged
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&all_hold_theirs, number] {
      std::vector<void*> pieces(kLarge / kThreads / kPiece);
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        pieces[i] = malloc(kPiece);
        CHECK(pieces[i] != nullptr);
        fill(pieces[i], kPiece, static_cast<std::uint64_t>(number) * 1000 + i);
      }
      all_hold_theirs.arrive_and_wait();
      for (int round = 0; round < kRounds; ++round) {
        for (std::size_t i = 0; i < pieces.size(); ++i) {
          const std::uint64_t seed =
              static_cast<std::uint64_t>(number) * 1000 + i + 1'000'000ull * static_cast<unsigned>(round);
          CHECK_FILLED(pieces[i], kPiece, seed);
          fill(pieces[i], kPiece, seed + 1'000'000);
        }
      }
      for (void* piece : pieces) free(piece);
    });
  }
  for (auto& thread : threads) thread.join();
}

CASE(random_words) {
  auto* words = static_cast<std::uint64_t*>(malloc(kLarge / 2));
  CHECK(words != nullptr);
  constexpr std::size_t kWords = kLarge / 2 / 8;
  fill(words, kLarge / 2, 5);
  std::uint64_t random = 88172645463325252;
  for (int i = 0; i < 20'000; ++i) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    const std::size_t at = random % kWords;
    CHECK(words[at] == word(5, at));
    words[at] = 0;
    words[at] = word(5, at);
  }
  CHECK_FILLED(words, kLarge / 2, 5);
}

CASE(threads_that_come_and_go) {
  std::vector<void*> kept(3000);
  std::vector<void*> large(40);
  for (std::size_t i = 0; i < large.size(); ++i) fill(large[i] = malloc(2 * kMebibyte), 2 * kMebibyte, i);
  for (std::size_t i = 0; i < kept.size(); i += 4) {
    std::thread four[4];
    for (std::size_t k = 0; k < 4; ++k) {
      four[k] = std::thread([&, number = i + k] {
        const std::size_t bytes = 64 + number * 8 % 20'000 / 8 * 8;
        kept[number] = malloc(bytes);
        fill(kept[number], bytes, number);
        if (number >= 400) free(kept[number - 400]);
        const std::size_t one = number % large.size();
        CHECK(*static_cast<std::uint64_t*>(large[one]) == word(one, 0));
      });
    }
    for (auto& thread : four) thread.join();
  }
  for (std::size_t i = kept.size() - 400; i < kept.size(); ++i) CHECK_FILLED(kept[i], 64, i);
  for (std::size_t i = 0; i < large.size(); ++i) CHECK_FILLED(large[i], 2 * kMebibyte, i);
}

// The allocator's books for so many threads came from mmap(), which put them into pages that leave: what brings pages
// back then waited for itself.
CASE(books_of_many_threads_at_once) {
  constexpr std::size_t kThreads = 300;
  std::atomic<std::size_t> started{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      void* mine = malloc(256 << 10);
      fill(mine, 256 << 10, number);
      ++started;
      while (!go) std::this_thread::yield();
      CHECK_FILLED(mine, 256 << 10, number);
      free(mine);
    });
    if (number % 50 == 49) push_out();
  }
  while (started != kThreads) std::this_thread::yield();
  push_out();
  go = true;
  for (auto& thread : threads) thread.join();
}

CASE(realloc_grows) {
  std::size_t bytes = kMebibyte;
  char* at = static_cast<char*>(malloc(bytes));
  fill(at, bytes, 1);
  while (bytes < 200 * kMebibyte) {
    const std::size_t grown = bytes + bytes / 2 / kPage * kPage;
    char* const moved = static_cast<char*>(realloc(at, grown));
    CHECK(moved != nullptr);
    at = moved;
    CHECK_FILLED(at, kMebibyte, 1);
    CHECK(*reinterpret_cast<std::uint64_t*>(at + kMebibyte / 2) == word(1, kMebibyte / 16));
    for (std::size_t i = bytes; i < grown; i += kPage) *reinterpret_cast<std::uint64_t*>(at + i) = word(2, i);
    bytes = grown;
  }
  for (std::size_t i = kMebibyte; i < bytes; i += kPage) CHECK(*reinterpret_cast<std::uint64_t*>(at + i) == word(2, i));
  char* const shrunk = static_cast<char*>(realloc(at, kMebibyte / 2));
  CHECK_FILLED(shrunk, kMebibyte / 2, 1);
  free(shrunk);
}

CASE(calloc_reads_zeros_after_reuse) {
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> dirty;
    for (std::size_t bytes = 16; bytes <= 8 * kMebibyte; bytes *= 2) {
      for (std::size_t sum = 0; sum < 5 * kMebibyte; sum += bytes) {
        if (dirty.size() > 400'000) break;
        dirty.push_back(malloc(bytes));
        memset(dirty.back(), 0xaa, bytes);
      }
    }
    for (void* one : dirty) free(one);
    dirty.clear();
    for (std::size_t bytes = 16; bytes <= 8 * kMebibyte; bytes *= 2) {
      for (std::size_t sum = 0; sum < 5 * kMebibyte; sum += bytes * 8) {
        void* one = calloc(bytes / 8, 8);
        CHECK(all_zero(one, bytes));
        memset(one, 0xbb, bytes);
        dirty.push_back(one);
      }
    }
    for (void* one : dirty) free(one);
  }
}

// To be run with a budget that lets plain memory have huge pages: one held what was behind the last piece unseen.
CASE(calloc_reads_zeros_behind_a_huge_page) {
  constexpr std::size_t kPieces = 150, kPage = 4096;
  std::vector<std::pair<char*, std::size_t>> pieces(kPieces);
  std::mt19937_64 random(1);
  for (int round = 0; round < 800; ++round) {
    auto& [piece, bytes] = pieces[random() % kPieces];
    free(piece);
    bytes = (random() % 16 != 0 ? 1 + random() % 96 : 768) * 8 * kPage;
    piece = static_cast<char*>(calloc(1, bytes));
    for (std::size_t at = 0; at < bytes; at += kPage) {
      CHECK(piece[at] == 0);
      piece[at] = 'x';
    }
  }
  for (auto& [piece, bytes] : pieces) free(piece);
}

CASE(aligned_allocations) {
  std::vector<std::pair<char*, std::size_t>> all;
  for (std::size_t alignment = 8; alignment <= 4 * kMebibyte; alignment *= 2) {
    for (std::size_t bytes : {std::size_t{1}, alignment - 8, alignment, 3 * alignment + 8}) {
      void* at = nullptr;
      CHECK(posix_memalign(&at, alignment, bytes) == 0);
      CHECK(reinterpret_cast<std::uintptr_t>(at) % alignment == 0);
      fill(at, bytes, alignment);
      all.emplace_back(static_cast<char*>(at), bytes);
      void* other = aligned_alloc(alignment, alignment);
      CHECK(reinterpret_cast<std::uintptr_t>(other) % alignment == 0);
      free(other);
    }
  }
  std::size_t next = 0;
  for (std::size_t alignment = 8; alignment <= 4 * kMebibyte; alignment *= 2) {
    for (int i = 0; i < 4; ++i, ++next) {
      CHECK_FILLED(all[next].first, all[next].second, alignment);
      CHECK(malloc_usable_size(all[next].first) >= all[next].second);
      free(all[next].first);
    }
  }
  void* at = nullptr;
  void* const itself = static_cast<void*>(&at);
  at = itself;
  CHECK(posix_memalign(&at, 3, 8) == EINVAL && at == itself);
  CHECK(posix_memalign(&at, 4, 8) == EINVAL && at == itself);
  // Of no power of two: rounded up, as the library does that a program of today is built for.
  void* const odd = memalign(48, 100);
  CHECK(odd != nullptr && reinterpret_cast<std::uintptr_t>(odd) % 64 == 0);
  free(odd);
  if (strverscmp(gnu_get_libc_version(), "2.38") < 0) {
    void* const rounded = aligned_alloc(48, 100);
    CHECK(rounded != nullptr && reinterpret_cast<std::uintptr_t>(rounded) % 64 == 0);
    free(rounded);
  }
}

CASE(very_many_small_objects) {
  struct Node {
    Node* next;
    std::uint64_t value;
    char rest[40];
  };
  Node* list = nullptr;
  constexpr std::size_t kNodes = kLarge / 64;
  for (std::size_t i = 0; i < kNodes; ++i) {
    Node* node = static_cast<Node*>(malloc(16 + i % 40 + 8));
    node->next = list;
    node->value = word(9, i);
    list = node;
  }
  std::size_t left = kNodes;
  while (list != nullptr) {
    CHECK(list->value == word(9, --left));
    Node* next = list->next;
    free(list);
    list = next;
  }
  CHECK(left == 0);
}

CASE(frees_by_another_thread) {
  constexpr std::size_t kRing = 256;
  static std::atomic<std::uint64_t*> ring[kRing];
  std::thread consumer([] {
    for (std::size_t i = 0; i < 60'000; ++i) {
      std::uint64_t* one;
      while ((one = ring[i % kRing].exchange(nullptr)) == nullptr) std::this_thread::yield();
      CHECK_FILLED(one, 64 + i % 300 * 8, i);
      free(one);
    }
  });
  void* large = malloc(kLarge);
  for (std::size_t i = 0; i < 60'000; ++i) {
    const std::size_t bytes = 64 + i % 300 * 8;
    auto* one = static_cast<std::uint64_t*>(malloc(bytes));
    fill(one, bytes, i);
    while (ring[i % kRing].load() != nullptr) std::this_thread::yield();
    ring[i % kRing].store(one);
    static_cast<char*>(large)[i * 1601 % kLarge] = 1;
  }
  consumer.join();
}

CASE(errno_and_impossible_sizes) {
  volatile std::size_t half = SIZE_MAX / 2, all = SIZE_MAX;
  for (std::size_t bytes : {std::size_t{half}, std::size_t{all}, all - kPage, all - 15}) {
    errno = 0;
    CHECK(malloc(bytes) == nullptr && errno == ENOMEM);
    errno = 0;
    CHECK(calloc(bytes, 1) == nullptr && errno == ENOMEM);
    void* small = malloc(100);
    fill(small, 100, 3);
    errno = 0;
    CHECK(realloc(small, bytes) == nullptr && errno == ENOMEM);
    CHECK_FILLED(small, 96, 3);
    void* none = nullptr;
    CHECK(posix_memalign(&none, 64, bytes) == ENOMEM);
    errno = 77;
    free(small);
    CHECK(errno == 77);
  }
  errno = 0;
  CHECK(calloc(half, 3) == nullptr && errno == ENOMEM);
  errno = 0;
  CHECK(reallocarray(nullptr, half, 3) == nullptr && errno == ENOMEM);
  push_out();
  void* large = malloc(kLarge);
  memset(large, 1, kLarge);
  errno = 78;
  free(large);
  CHECK(errno == 78);
  void* zero = malloc(0);
  CHECK(zero != nullptr && realloc(zero, 0) == nullptr);
  free(nullptr);
}

CASE(usable_size_is_usable) {
  std::vector<void*> all;
  for (std::size_t bytes = 1; bytes < 5 * kMebibyte; bytes = bytes * 5 / 4 + 1) {
    void* one = malloc(bytes);
    const std::size_t usable = malloc_usable_size(one);
    CHECK(usable >= bytes);
    fill(one, usable, bytes);
    all.push_back(one);
  }
  push_out();
  std::size_t next = 0;
  for (std::size_t bytes = 1; bytes < 5 * kMebibyte; bytes = bytes * 5 / 4 + 1) {
    CHECK_FILLED(all[next], malloc_usable_size(all[next]), bytes);
    ++next;
  }
}

// The kernel marks them when their owner has ended, where nobody can serve a fault any more: what was out of view
// stayed locked for ever.
CASE(robust_locks_of_a_thread_that_ended) {
  constexpr std::size_t kLocks = 1000;
  constexpr std::size_t kApart = 3 * kPage;
  char* at = static_cast<char*>(malloc(kLocks * kApart));
  pthread_mutexattr_t robust;
  pthread_mutexattr_init(&robust);
  pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  const auto lock = [&](std::size_t i) { return reinterpret_cast<pthread_mutex_t*>(at + i * kApart); };
  for (std::size_t i = 0; i < kLocks; ++i) CHECK(pthread_mutex_init(lock(i), &robust) == 0);
  std::thread([&] {
    for (std::size_t i = 0; i < kLocks; ++i) CHECK(pthread_mutex_lock(lock(i)) == 0);
    push_out();
  }).join();
  for (std::size_t i = 0; i < kLocks; ++i) CHECK(pthread_mutex_trylock(lock(i)) == EOWNERDEAD);
}

// A lock that its owner unmapped with the memory it lay in is the kernel's to pass by, and was to be touched.
CASE(robust_lock_in_memory_that_has_gone) {
  void* at = mmap(nullptr, kMebibyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(at != MAP_FAILED);
  pthread_mutexattr_t robust;
  pthread_mutexattr_init(&robust);
  pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  std::thread([&] {
    push_out();
    auto* const lock = static_cast<pthread_mutex_t*>(at);
    CHECK(pthread_mutex_init(lock, &robust) == 0 && pthread_mutex_lock(lock) == 0);
    CHECK(munmap(at, kMebibyte) == 0);
  }).join();
}
