// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The name that a store's URI ends with: on a server that of a namespace, on a disk that of a folder.
//
// Thread-safety: plain functions.
#pragma once

#include <farheap/result.hpp>
#include <string>
#include <string_view>

namespace farheap::store {

// `uri` with `name` in the place of the name it has, or would have if none is written; parameters and decorators stay.
//   redis://h:6379/7/app -> redis://h:6379/7/NAME      redis://h -> redis://h/0/NAME
//   file:/mnt/nvme       -> file:/mnt/nvme/NAME        mem:      -> mem:
// kInvalidArgument if the URI is malformed, or says too little to have a name.
[[nodiscard]] Result<std::string> with_name(std::string_view uri, std::string_view name);

// The folder that is a store's place; empty for engines that are no folders on a disk.
[[nodiscard]] std::string folder_of(std::string_view uri);

// That `place` is a folder, as a store needs that does not outlive its process. `uri` is the store's, for the error.
[[nodiscard]] Status check_scratch_folder(const std::string& place, const std::string& uri);

}  // namespace farheap::store
