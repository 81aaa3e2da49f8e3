// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file descriptors of the runtime. Programs close descriptors they did not open (daemons: all from 3 on), and
// expect the lowest number to be free: the runtime's own stay high, and the preload library keeps the program's
// close() away from them. (A userfaultfd that is closed leaves zeros where pages were.)
//
// Thread-safety: any thread.
#pragma once

namespace farheap::os {

// Moves a descriptor up and marks it as the runtime's own until release_descriptor(). Returns the new number; the
// old one is closed. Returns `file` unchanged, and marked, if there is no higher number to be had.
[[nodiscard]] int keep_descriptor(int file);
// Marks it as it is.
void adopt_descriptor(int file);
// Closes it. Negative numbers are ignored.
void release_descriptor(int file);
// Leaves it open, and no longer the runtime's own: somebody else is about to close it.
void disown_descriptor(int file);
[[nodiscard]] bool is_own_descriptor(int file);
// What leads into this process's memory, or speaks for it: a forked child shall not have it. (A userfaultfd writes to
// the memory of who made it, and a ring carries out in its owner what is written into it.)
void keep_from_children(int file);
[[nodiscard]] bool is_kept_from_children(int file);
// While it lives, all that this thread gives to keep_descriptor().
class ForUsAlone {
 public:
  ForUsAlone();
  ~ForUsAlone();
  ForUsAlone(const ForUsAlone&) = delete;
  ForUsAlone& operator=(const ForUsAlone&) = delete;
};
// In a forked child, the earlier the better: the numbers of the parent's stay taken, by an empty file, so that who
// still knows one of them closes nobody else's. Does nothing a second time.
void leave_parents_descriptors();
// How many forks this process is away from the first: what was made at another count is a parent's.
[[nodiscard]] unsigned fork_generation();
// The lowest and one past the highest the runtime ever had, for range operations; equal when it has none.
struct DescriptorRange {
  int first;
  int end;
};
[[nodiscard]] DescriptorRange own_descriptor_range();

}  // namespace farheap::os
