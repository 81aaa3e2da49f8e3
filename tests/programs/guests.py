# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of our own (guests/), each doing one thing that real programs do: see there."""

import os

import programs

QUICK_MIB, FULL_MIB = 144, 288


class Guest(programs.Program):
    """`more`: further arguments. `plain_mib`: a part of its memory that is never far (docs/limits.md), by size.
    `quick_mib`: more for one whose peak lasts so short that samples of it miss some."""

    def __init__(self, name, more=(), plain_mib=None, quick_mib=QUICK_MIB):
        self.name = name
        self._quick_mib = quick_mib
        self._more = more
        self._plain_mib = plain_mib or {}

    def _path(self, name):
        return os.path.join(self.build, "tests", "programs", "guests", name)

    def plain_bytes(self, size):
        return self._plain_mib.get(size, 0) << 20

    def _command(self, size):
        data = {"quick": self._quick_mib, "full": FULL_MIB}[size]
        return [self._path("program_guests"), self.name, str(data), *self._more]

    def prepare(self, folder, size):
        return programs.Job(self._command(size), env=programs.environment(OMP_NUM_THREADS="2"))


class Recursion(Guest):
    """Much of its memory is stack: at a quarter of the peak more than the budget, in the full size."""

    def __init__(self, name):
        super().__init__(name, plain_mib={"quick": 24, "full": 208})

    def _command(self, size):
        data = {"quick": QUICK_MIB, "full": 448}[size]
        stack = self._plain_mib[size]
        # A thread's stack needs no limit; to set one does no harm.
        return ["sh", "-c", f'ulimit -s {(stack + 8) << 10} && exec "$0" "$@"',
                self._path("program_guests"), self.name, str(data), str(stack)]


class Plugins(Guest):
    def _command(self, size):
        return [*super()._command(size), self._path("libguest_plugin.so")]


class WithAllocator(Guest):
    """One of allocator_guests.cpp, with an allocator in the executable."""

    def __init__(self, case, allocator):
        super().__init__(f"{case}_with_{allocator}")
        self._words = [f"guest_with_{allocator}", case]

    def _command(self, size):
        executable, case = self._words
        return [self._path(executable), case, str({"quick": QUICK_MIB, "full": FULL_MIB}[size])]


ALLOCATORS = ("own_allocator", "jemalloc", "tcmalloc", "mimalloc", "sbrk")

ALL = (
    *(WithAllocator(case, one) for case in ("allocates_by_threads", "allocates_and_forks") for one in ALLOCATORS),
    *(Guest(name) for name in (
        "moves_its_mappings", "advises_everything", "locks_what_it_works_on", "files_in_memory",
        "files_over_parts_of_a_mapping", "threads_on_stacks_from_the_heap", "coroutines_by_the_hundred",
        "storms_of_signals", "a_write_barrier_by_faults", "jumps_back_from_faults",
        "starts_programs_from_a_big_heap", "threads_by_the_thousand", "exceptions_through_far_frames", "openmp_sort",
        "openmp_stencil", "registers_across_faults", "vectors_to_files_and_back", "messages_between_threads",
        "sendfile_splice_and_copy", "io_uring_from_user_code", "io_uring_with_a_kernel_thread",
        "io_uring_with_registered_buffers")),
    Guest("jumps_over_frames", quick_mib=192),
    Recursion("deep_recursion"), Recursion("deep_recursion_in_a_thread"), Plugins("opens_and_closes_plugins"))
