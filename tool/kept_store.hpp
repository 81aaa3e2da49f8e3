// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For whole_core=on: a folder for the stores of one run, which stays if the program is ended by a signal and goes
// otherwise.
//
// Thread-safety: the tool has one thread.
#pragma once

#include <farheap/result.hpp>
#include <string>

#include "base/options.hpp"
#include "child.hpp"

namespace farheap::tool {

class KeptStore {
 public:
  // Makes the folder in the place of `options.store`, which then names it. kInvalidArgument if the place is no folder
  // or the store cannot be kept.
  [[nodiscard]] static Result<KeptStore> make(base::Options& options);
  KeptStore(KeptStore&& other) noexcept : folder_(std::exchange(other.folder_, {})), store_(std::move(other.store_)) {}
  KeptStore& operator=(KeptStore&&) = delete;
  ~KeptStore();

  // Opens and closes a store there, as the runtime will.
  [[nodiscard]] Status check(const base::Options& options) const;
  // Says what is left and what to do with it.
  void program_ended(const ChildEnd& end);

 private:
  KeptStore(std::string folder, std::string store) : folder_(std::move(folder)), store_(std::move(store)) {}
  std::string folder_;  // empty: not ours any more
  std::string store_;   // its URI
};

// Why the kernel will write no core; empty if it will.
[[nodiscard]] std::string why_no_core();

}  // namespace farheap::tool
