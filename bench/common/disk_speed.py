# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How fast the disk below a folder is: what ratios over a disk are to be judged by. Past the page cache."""

import mmap
import os
import random
import statistics
import tempfile
import time

_PAGE = 4096
_PIECE = 4 << 20


def measure(folder, size=256 << 20, reads=2000):
    """{"single_read_us": median of 4 KiB at random, one at a time; "read_mb_s": 4 MiB after 4 MiB}. Empty where the
    file system has no such reads (tmpfs)."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        for _ in range(size // _PIECE):
            file.write(os.urandom(_PIECE))
        file.flush()
        os.fsync(file.fileno())
        try:
            descriptor = os.open(file.name, os.O_RDONLY | os.O_DIRECT)
        except OSError:
            return {}
        try:
            return {"single_read_us": _single_read(descriptor, size, reads), "read_mb_s": _bandwidth(descriptor, size)}
        finally:
            os.close(descriptor)


def _single_read(descriptor, size, reads):
    source = random.Random(1)
    took = []
    with mmap.mmap(-1, _PAGE) as buffer:
        for _ in range(reads):
            at = source.randrange(size // _PAGE) * _PAGE
            start = time.perf_counter()
            os.preadv(descriptor, [buffer], at)
            took.append(time.perf_counter() - start)
    return statistics.median(took) * 1e6


def _bandwidth(descriptor, size):
    start = time.perf_counter()
    with mmap.mmap(-1, _PIECE) as buffer:
        for at in range(0, size, _PIECE):
            os.preadv(descriptor, [buffer], at)
    return size / 1e6 / (time.perf_counter() - start)
