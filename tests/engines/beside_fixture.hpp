// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stores in a process farheap-engines of the tests' own, and what the tests want to know of that process.
//
// Thread-safety: plain functions.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "store/kinds.hpp"
#include "tests/store/store_fixture.hpp"

namespace farheap::test {

// As open_store() would, if this engine were one of those beside.
inline store::StoreResult open_beside(const std::string& scheme, const std::string& place,
                                      const StoreOptions& options = {}, std::vector<store::Parameter> parameters = {}) {
  const store::StoreUri uri{.engine = scheme, .place = place, .parameters = std::move(parameters)};
  return store::open_beside(place, store::Parameters(uri, scheme), options);
}

inline std::string line_of(const std::string& path, const std::string& begin) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(begin)) return line.substr(begin.size());
  }
  return {};
}

// Processes that run `program` for this test or a forked child of it: told by a variable that ServedBy gives them.
inline std::vector<pid_t> processes_of(const std::string& program) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process <= 0) continue;
    const auto target = std::filesystem::read_symlink(entry.path() / "exe", error);
    if (error || target != std::filesystem::path(program)) continue;
    std::ifstream in(entry.path() / "environ", std::ios::binary);
    const std::string all((std::istreambuf_iterator<char>(in)), {});
    if (all.find(std::string("BESIDE_TEST=") + getenv("BESIDE_TEST")) != std::string::npos) found.push_back(process);
  }
  return found;
}

// The processes end by themselves, soon; this waits as long as it takes (the test's own time-out ends it).
inline void wait_until_all_ended(const std::string& program) {
  while (!processes_of(program).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

// For the length of a test, stores beside are served by this program.
class ServedBy {
 public:
  explicit ServedBy(const std::string& program) {
    setenv("FARHEAP_ENGINES", program.c_str(), 1);
    setenv("BESIDE_TEST", std::to_string(getpid()).c_str(), 1);
  }
  ~ServedBy() { unsetenv("FARHEAP_ENGINES"); }
  ServedBy(const ServedBy&) = delete;
  ServedBy& operator=(const ServedBy&) = delete;
};

}  // namespace farheap::test
