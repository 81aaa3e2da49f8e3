// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The process `farheap-engines`: one store of one engine, served to the program that started it and to that program's
// forked children (docs/formats.md, "Messages to farheap-engines").
//
// Thread-safety: one call a socket; the engine's calls come from threads of its own.
#pragma once

#include <span>

#include "engines/engine_table.hpp"

namespace farheap::engines {

// Takes the socket over. Returns when the last client has gone and the store is closed.
void serve(int socket, std::span<const Engine> table);

}  // namespace farheap::engines
