// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <exception>
#include <string>

namespace farheap::testing {

// The message of the exception that `call` throws; of one of another type, that it is another.
template <class Exception, class Call>
std::string thrown_by(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    const std::string what = error.what();
    return dynamic_cast<const Exception*>(&error) != nullptr ? what : "another exception: " + what;
  }
  return "nothing was thrown";
}

}  // namespace farheap::testing
