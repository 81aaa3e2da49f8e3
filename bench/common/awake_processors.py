# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Idle processors that poll instead of sleeping, for the time of a run: what `keep_awake` of Farheap asks the kernel
for (tool/keep_awake.hpp), for those that run without Farheap. Needs root."""

import contextlib
import os

DEVICE = "/dev/cpu_dma_latency"


def unavailable():
    """None, or why processors cannot be kept awake here."""
    return None if os.access(DEVICE, os.W_OK) else f"{DEVICE} is not there, or not ours to write to (root may)"


@contextlib.contextmanager
def awake_processors(wanted):
    """Only for what is wanted; unavailable() says nothing against it then."""
    if not wanted:
        yield
        return
    device = os.open(DEVICE, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(device, (0).to_bytes(4, "little"))
        yield
    finally:
        os.close(device)
