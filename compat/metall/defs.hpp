// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Metall's settings that mean something here. Those for its segment blocks, object caches and bins are accepted and
// do nothing.
#pragma once

// Of a store that is made without one. A heap takes what it can have at most (docs/moving.md).
#ifndef METALL_MAX_CAPACITY
#define METALL_MAX_CAPACITY (1ULL << 47ULL)
#endif
#ifndef METALL_DEFAULT_CAPACITY
#define METALL_DEFAULT_CAPACITY (1ULL << 43ULL)
#endif
