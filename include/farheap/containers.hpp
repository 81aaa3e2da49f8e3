// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names for the containers that live in a heap; docs/containers.md says which to take. This header brings all of them;
// each of those it includes stands alone.
#pragma once

#include <farheap/containers/boost.hpp>
#include <farheap/containers/flat.hpp>
#include <farheap/containers/offset.hpp>
#include <farheap/containers/std.hpp>
#include <farheap/containers/unordered.hpp>
