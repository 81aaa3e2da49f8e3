// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counters that are added to once and only once, whatever answers get lost: compare-and-swap of a cell that has the
// value and, behind it, the stamps of the last additions (docs/formats.md).
//
// A request compares the whole cell, and no cell comes twice. So as soon as another one is seen there, a request that
// got no answer has been carried out, or never will be; its stamp says which. (Bigtable's own addition knows no
// conditions: one that is delayed in the network may happen at any time.)
//
// Thread-safety: any thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "engines/bigtable/space.hpp"

namespace farheap::engines::bigtable {

class Counters {
 public:
  explicit Counters(Space& space) : space_(space) {}

  // UNKNOWN: it may have happened. With delta 0 nothing is written.
  [[nodiscard]] Answer<std::int64_t> add(std::string_view counter, std::int64_t delta);

  [[nodiscard]] Answer<std::vector<NamedCounter>> all();

 private:
  [[nodiscard]] Answer<std::int64_t> add_to(std::string& cell, const std::string& key, std::int64_t delta)
      FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Answer<std::string> read(const std::string& key);

  Space& space_;
  base::Mutex mutex_;
  // What each was last, as a first guess: a wrong one costs a request.
  std::unordered_map<std::string, std::string> cells_ FARHEAP_GUARDED_BY(mutex_);
};

}  // namespace farheap::engines::bigtable
