// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A folder for a test's heaps, and the options they are opened with.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <farheap/farheap.hpp>
#include <filesystem>
#include <string>

namespace farheap::testing {

class HeapFolder {
 public:
  HeapFolder() {
    std::string name = ::testing::TempDir() + "/farheap-kept-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~HeapFolder() {
    if (owner_ == getpid()) std::filesystem::remove_all(path_);
  }
  [[nodiscard]] std::string uri(const std::string& name = "heap") const { return "file:" + file(name); }
  [[nodiscard]] std::string file(const std::string& name = "heap") const { return path_ + "/" + name; }

 private:
  std::string path_;
  const pid_t owner_ = getpid();
};

// Small, so that much leaves memory, and that sanitizers have room.
inline const HeapOptions kSmall{.memory = 32_MiB, .capacity = 4_GiB};

inline Heap must(Result<Heap> heap) {
  if (!heap) {
    ADD_FAILURE() << heap.error().message();
    abort();
  }
  return std::move(*heap);
}

}  // namespace farheap::testing
