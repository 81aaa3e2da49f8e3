// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All of the C++ interface.
#pragma once

#include <farheap/allocator.hpp>
#include <farheap/heap.hpp>
#include <farheap/heap_facts.hpp>
#include <farheap/result.hpp>
#include <farheap/store.hpp>
