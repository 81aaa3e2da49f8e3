// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The profile that a program of `-ffar=record` leaves (docs/formats.md, "A profile"), in the file of $FARCC_PROFILE, or
// in PROGRAM.profile in its folder; of a forked child in that file's name with .PID behind it.
//
// How much the contexts of a thread take at the most is in $FARCC_CONTEXTS_MEMORY (kMostTreeBytes).
//
// Thread-safety: threads go on counting while it is written; what they count then may be missing.
#pragma once

namespace farheap::contexts {

// As often as the program may end: what was written before is replaced.
void write_profile();

// The same; but what forked children do before they become another program is nobody's.
void write_before_exec();

// When the process begins, and when it was forked.
void name_process(bool is_child);

}  // namespace farheap::contexts
