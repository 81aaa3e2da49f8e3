// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computing: OpenMP, and registers that a page fault in the middle of it must leave alone.
#include <fenv.h>
#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "guests.hpp"

using namespace guests;

namespace {

// Sorted halves by tasks, then merged through a second array.
void sort_by_tasks(std::uint64_t* words, std::uint64_t* spare, std::size_t count) {
  if (count <= 1 << 16) {
    std::sort(words, words + count);
    return;
  }
  const std::size_t half = count / 2;
#pragma omp task
  sort_by_tasks(words, spare, half);
  sort_by_tasks(words + half, spare + half, count - half);
#pragma omp taskwait
  std::merge(words, words + half, words + half, words + count, spare);
  std::copy(spare, spare + count, words);
}

}  // namespace

CASE(openmp_sort) {
  const std::size_t count = data_bytes() / 16;
  std::vector<std::uint64_t> words(count), spare(count);
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < count; ++i) words[i] = word(25, i);
#pragma omp parallel
#pragma omp single
  sort_by_tasks(words.data(), spare.data(), count);
  CHECK(std::is_sorted(words.begin(), words.end()));
  print_digest("sorted", digest(words.data(), count * 8));
}

// Heat in a plate, in whole numbers, so that the order of additions is of no matter.
CASE(openmp_stencil) {
  const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(data_bytes() / 8)));
  std::vector<std::uint32_t> now(side * side), next(side * side);
  for (std::size_t i = 0; i < now.size(); ++i) now[i] = static_cast<std::uint32_t>(word(26, i) & 0xffffff);
  std::uint64_t sum = 0;
  for (int step = 0; step < 4; ++step) {
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : sum)
    for (std::size_t y = 1; y < side - 1; ++y) {
      for (std::size_t x = 1; x < side - 1; ++x) {
        const std::size_t i = y * side + x;
        next[i] = (now[i - 1] + now[i + 1] + now[i - side] + now[i + side]) / 4;
        sum += next[i] * (x ^ y);
      }
    }
    now.swap(next);
  }
  print_digest("sum", sum);
  print_digest("plate", digest(now.data(), now.size() * 4));
}

namespace {

// Sixteen wide registers are in use while words that left are read.
__attribute__((target("avx2"))) void add_wide(const Pieces& data, std::uint64_t (&sums)[4]) {
  __m256i kept[12];
  for (int k = 0; k < 12; ++k) kept[k] = _mm256_set1_epi64x(k);
  for (std::size_t i = 0; i + 12 <= data.count(); i += 12) {
    for (std::size_t place = 0; place < Pieces::kPiece / 8; place += 64) {
      for (std::size_t k = 0; k < 12; ++k) {
        const auto* at = reinterpret_cast<const __m256i*>(data.piece(i + k) + place);
        kept[k] = _mm256_add_epi64(kept[k], _mm256_loadu_si256(at));
      }
    }
  }
  __m256i all = _mm256_setzero_si256();
  for (const __m256i& one : kept) all = _mm256_add_epi64(all, one);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums), all);
}

// The same from what was written, without reading any of it.
void add_by_formula(const Pieces& data, std::uint64_t seed, std::uint64_t (&sums)[4]) {
  for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] = 66;  // 0 + 1 + ... + 11
  for (std::size_t i = 0; i < data.count() / 12 * 12; ++i) {
    for (std::size_t place = 0; place < Pieces::kPiece / 8; place += 64) {
      for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] += word(seed + i, place + lane);
    }
  }
}

// Sums upwards and downwards, of memory that is given and taken meanwhile: the allocator runs with the program's
// rounding, too.
long double sum_with_rounding(const Pieces& data, int rounding) {
  CHECK(fesetround(rounding) == 0);
  long double sum = 0;
  for (std::size_t i = 0; i < data.count(); ++i) {
    void* passing = malloc(100 + i * 991 % 2'000'000);
    for (std::size_t place = 0; place < Pieces::kPiece / 8; place += 512) {
      sum += 1.0L / static_cast<long double>(data.piece(i)[place]);
    }
    free(passing);
    CHECK(fegetround() == rounding);
  }
  CHECK(fesetround(FE_TONEAREST) == 0);
  return sum;
}

}  // namespace

CASE(registers_across_faults) {
  const Pieces data(data_bytes(), 27);
  std::uint64_t expected[4];
  add_by_formula(data, 27, expected);
  if (__builtin_cpu_supports("avx2") != 0) {
    for (int round = 0; round < 2; ++round) {
      std::uint64_t sums[4];
      add_wide(data, sums);
      for (std::size_t lane = 0; lane < 4; ++lane) CHECK(sums[lane] == expected[lane]);
    }
  } else {
    std::fprintf(stderr, "NOT TESTED: this processor has no AVX2\n");
  }
  print_digest("wide", digest(expected, sizeof expected));
  const long double up = sum_with_rounding(data, FE_UPWARD), down = sum_with_rounding(data, FE_DOWNWARD);
  CHECK(up > down);
  std::printf("between %.25Lg and %.25Lg\n", down, up);
}
