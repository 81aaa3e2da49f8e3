// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counters: a key for each, whose value is a number in decimal, added to once and only once.
//
// Thread-safety: any thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "engines/etcd/space.hpp"

namespace farheap::engines::etcd {

class Counters {
 public:
  explicit Counters(Space& space) : space_(space) {}

  // UNKNOWN: it may have happened. With delta 0 nothing is written.
  [[nodiscard]] Answer<std::int64_t> add(std::string_view counter, std::int64_t delta);
  [[nodiscard]] Answer<std::vector<NamedCounter>> all();

 private:
  struct Counter {
    std::int64_t value = 0;
    std::int64_t revision = 0;  // of its key; 0: absent
  };
  [[nodiscard]] Answer<std::int64_t> read(const std::string& key);
  [[nodiscard]] Answer<std::int64_t> add_to(Counter& counter, const std::string& key, std::int64_t delta)
      FARHEAP_REQUIRES(mutex_);

  Space& space_;
  base::Mutex mutex_;
  // What each was last, as a first guess: a wrong one is answered with the truth.
  std::unordered_map<std::string, Counter> counters_ FARHEAP_GUARDED_BY(mutex_);
};

}  // namespace farheap::engines::etcd
