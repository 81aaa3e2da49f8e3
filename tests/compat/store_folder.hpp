// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A folder for a test's datastores.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace farheap::testing {

// Small, so that sanitizers have room.
inline constexpr std::size_t kCapacity = std::size_t{1} << 30;

class StoreFolder {
 public:
  StoreFolder() {
    std::string name = ::testing::TempDir() + "/farheap-metall-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~StoreFolder() {
    if (owner_ == getpid()) std::filesystem::remove_all(path_);
  }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
  const pid_t owner_ = getpid();
};

}  // namespace farheap::testing
