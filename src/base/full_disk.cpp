// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/full_disk.hpp"

namespace farheap::base {

static constexpr std::string_view kMakeRoom = "make room";

std::string make_room(std::string_view again, std::string_view folder) {
  std::string text(kMakeRoom);
  if (!again.empty()) text.append(", and ").append(again);
  text += "; `df";
  if (!folder.empty()) text.append(" ").append(folder);
  return text + "` shows what there is";
}

bool is_full_disk(const Error& error) {
  return error.code == ErrorCode::kNoSpace && error.remedy.starts_with(kMakeRoom);
}

}  // namespace farheap::base
