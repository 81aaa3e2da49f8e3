// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of engines that write in a way of their own, so that nobody can write again what a failed sync may have lost: the
// first failure is their answer for ever.
//
// Thread-safety: a plain function.
#pragma once

#include <farheap/result.hpp>

namespace farheap::store {

[[nodiscard]] inline tl::unexpected<Error> cannot_sync_any_more(Error why) {
  why.why += "; what was written since the last sync may be lost, and no later one would tell";
  why.remedy = "see to the device, copy what is there elsewhere (farheap store copy), and go on with the copy";
  return fail(std::move(why));
}

}  // namespace farheap::store
