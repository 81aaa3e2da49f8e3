// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <grpcpp/grpcpp.h>

#include <tl/expected.hpp>

namespace farheap::engines {

// What a server said, or why it said nothing; Result is for what a user is told.
template <class T>
using Answer = tl::expected<T, grpc::Status>;

}  // namespace farheap::engines
