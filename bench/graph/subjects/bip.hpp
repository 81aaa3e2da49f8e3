// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Boost.Interprocess: a mapped file, as long from the beginning as it may become (it is sparse). Its flush() begins the
// writing (MS_ASYNC) and waits for nothing: what a commit promises is only there after the msync() behind it.
#pragma once

#include <sys/mman.h>

#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/managed_mapped_file.hpp>
#include <cstddef>
#include <string>

#include "stop.hpp"

namespace farheap::bench {

class Subject {
  using File = boost::interprocess::managed_mapped_file;

 public:
  using Allocator = boost::interprocess::allocator<std::byte, File::segment_manager>;
  static constexpr bool kKeeps = true;
  Subject(const char* folder, std::size_t most_bytes)
      : file_(boost::interprocess::create_only, (std::string(folder) + "/bip").c_str(), most_bytes) {}
  template <class T>
  T* construct() {
    return file_.construct<T>("graph")(Allocator(file_.get_segment_manager()));
  }
  void finish() {
    if (!file_.flush() || msync(file_.get_address(), file_.get_size(), MS_SYNC) != 0) {
      stop("Boost.Interprocess cannot flush");
    }
  }
  void report() {}

 private:
  File file_;
};

}  // namespace farheap::bench
