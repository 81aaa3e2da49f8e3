# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that a hypervisor took back.

A guest with free page reporting (virtio-balloon) tells its host of free memory, two seconds after it was freed, in
pieces of 2 MiB. Who touches such a piece first waits for the host: 3 s/GiB were measured. Huge pages are made of such
pieces, small ones of what is left between them. So the time of a program's first touches depends on what ran before.
"""

import ctypes
import mmap


def bring_back(size):
    """Has the host give so much memory in huge pages, as far as it has not. For a little while it stays there."""
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        address = ctypes.c_char.from_buffer(memory)
        ctypes.memset(ctypes.addressof(address), 1, size)
        del address  # or the mapping cannot be closed
