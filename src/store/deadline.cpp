// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/deadline.hpp"

#include <algorithm>

namespace farheap::store {
namespace {

thread_local constinit Deadline t_deadline __attribute__((tls_model("initial-exec")));

}  // namespace

Deadline Deadline::of_this_call() { return t_deadline; }

CallDeadline::CallDeadline(Deadline deadline) : outer_(t_deadline) { t_deadline = std::min(outer_, deadline); }
CallDeadline::~CallDeadline() { t_deadline = outer_; }

}  // namespace farheap::store
