// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether the directory of a heap agrees with itself. It may be damaged: nothing outside of the kept range is read.
//
// Thread-safety: none; nobody changes the directory meanwhile.
#pragma once

#include <fmt/format.h>

#include <string>
#include <unordered_set>
#include <utility>

#include "api/directory.hpp"

namespace farheap::api {

class DirectoryCheck {
 public:
  DirectoryCheck(const Directory& directory, const heap::KeptRange& kept, std::string& why)
      : directory_(directory), kept_(kept), why_(why) {}

  [[nodiscard]] bool all();
  // What it says of itself.
  [[nodiscard]] bool head();
  // One record, without those it is linked to.
  [[nodiscard]] bool record(const ObjectRecord& one);

  // False, for this reason.
  template <class... Args>
  [[nodiscard]] bool wrong(fmt::format_string<Args...> text, Args&&... args) {
    why_ = "the directory of objects: " + fmt::format(text, std::forward<Args>(args)...);
    return false;
  }

 private:
  [[nodiscard]] bool is_text(const char* text, std::size_t longest) const;
  [[nodiscard]] bool records();
  [[nodiscard]] bool chains();

  const Directory& directory_;
  const heap::KeptRange kept_;
  std::string& why_;
  std::unordered_set<const ObjectRecord*> records_;
  std::size_t named_ = 0;
};

}  // namespace farheap::api
