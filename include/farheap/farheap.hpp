// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heaps and stores. Containers, JSON and what else needs Boost's headers have headers of their own
// (docs/containers.md).
#pragma once

#include <farheap/allocator.hpp>
#include <farheap/heap.hpp>
#include <farheap/heap_facts.hpp>
#include <farheap/result.hpp>
#include <farheap/store.hpp>
