// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kept heap in a file.
#pragma once

#include <sys/stat.h>

#include <farheap/farheap.hpp>
#include <string>

#include "stop.hpp"

namespace farheap::bench {

class Subject {
 public:
  using Allocator = farheap::allocator<std::byte>;
  static constexpr bool kKeeps = true;

  Subject(const char* folder, std::size_t) : file_(std::string(folder) + "/heap"), heap_(create()) {}
  template <class T>
  T* construct() {
    return heap_.construct<T>("graph")(heap_.allocator<std::byte>());
  }
  void finish() { must(heap_.commit()); }
  void report() {
    const HeapStatistics found = heap_.statistics();
    std::printf("faults %llu\n", static_cast<unsigned long long>(found.faults));
    must(heap_.compact());
    struct stat file{};
    if (stat(file_.c_str(), &file) != 0) stop("the heap's file is lost");
    const auto live = static_cast<double>(heap_.statistics().allocated_bytes);
    std::printf("file_over_live %.4f\n", static_cast<double>(file.st_blocks) * 512 / live);
    std::printf("length_over_live %.4f\n", static_cast<double>(file.st_size) / live);
    std::printf("live_mib %.1f\n", live / (1 << 20));
  }

 private:
  static void must(const Status& status) {
    if (!status) stop(status.error().message());
  }
  [[nodiscard]] Heap create() const {
    auto heap = Heap::create("file:" + file_);
    if (!heap) stop(heap.error().message());
    return std::move(*heap);
  }
  std::string file_;
  Heap heap_;
};

}  // namespace farheap::bench
