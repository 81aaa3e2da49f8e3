// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The words for a disk that is full: one wording, wherever it is met.
//
// Thread-safety: plain functions.
#pragma once

#include <farheap/result.hpp>
#include <string>
#include <string_view>

namespace farheap::base {

// The remedy: "make room, and AGAIN; `df FOLDER` shows what there is". Both may be empty.
[[nodiscard]] std::string make_room(std::string_view again = {}, std::string_view folder = {});

// Whether the remedy is that one: memory and addresses that are short have the same code and others.
[[nodiscard]] bool is_full_disk(const Error& error);

}  // namespace farheap::base
