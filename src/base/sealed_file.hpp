// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that is handed from process to process as a file without a name (memfd_create(2)), where the receiver need not
// trust who hands it on: the kernel's seals say what nobody can do to it any more, and its owner says who made it,
// because no user can make a file that belongs to another one.
//
// Thread-safety: pure functions over descriptors. Nothing is allocated but where a Result is answered.
#pragma once

#include <cstddef>
#include <farheap/result.hpp>
#include <string>

namespace farheap::base {

enum class Sealed {
  kLength,   // its bytes may be written by who has it; it can be neither cut nor made longer
  kContent,  // nothing about it changes
};

// A close-on-exec descriptor; the file can be opened anew by its owner only (mode 0600). Holds `bytes` of `content`,
// or zeros where that is null. `number_from`: the descriptor's number is no less where the limit of open files allows.
[[nodiscard]] Result<int> make_sealed_file(const char* name, const void* content, std::size_t bytes, Sealed sealed,
                                           int number_from = 0);

// Why it is not to be trusted; null if it is such a file of this length, made by this process's user or by root.
[[nodiscard]] const char* distrust_of(int file, std::size_t bytes, Sealed sealed);
// The same for what somebody made who may be anybody; `owner` is told.
[[nodiscard]] const char* distrust_of_stranger(int file, std::size_t bytes, Sealed sealed, unsigned& owner);

// Opens what `path` leads to with O_RDONLY or O_RDWR, close-on-exec, if it is a plain file: no device or pipe is
// touched, whatever stands there. -1 and errno if it cannot be had.
[[nodiscard]] int open_plain_file(const char* path, int access);

}  // namespace farheap::base
