// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Metall, from headers that somebody has: its flush leaves its books in memory, so what makes the graph durable is a
// snapshot or the end of the manager; this is the flush and the snapshot.
#pragma once

#include <cstddef>
#include <metall/metall.hpp>
#include <string>

#include "stop.hpp"

namespace farheap::bench {

class Subject {
 public:
  using Allocator = metall::manager::allocator_type<std::byte>;
  static constexpr bool kKeeps = true;
  Subject(const char* folder, std::size_t)
      : folder_(folder), manager_(metall::create_only, (folder_ + "/metall").c_str()) {}
  template <class T>
  T* construct() {
    return manager_.construct<T>("graph")(manager_.get_allocator<std::byte>());
  }
  void finish() {
    manager_.flush();
    if (!manager_.snapshot((folder_ + "/snapshot").c_str())) stop("Metall cannot make a snapshot");
  }
  void report() {}

 private:
  std::string folder_;
  metall::manager manager_;
};

}  // namespace farheap::bench
