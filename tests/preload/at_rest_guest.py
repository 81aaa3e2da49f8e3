# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fills 160 MiB with a text that can be recognised, says so, and waits to be told to end."""

import os
import sys

TEXT = b"farheap-at-rest-plaintext-marker"

parts = [bytearray((TEXT + b"%08x" % number) * 26214) for number in range(160)]  # 1 MiB each
print("KEY SEEN" if "FARHEAP_ENCRYPT_KEY" in os.environ else "no key", os.getpid(), flush=True)
sys.stdin.read()
sys.exit(0 if all(part.startswith(TEXT) for part in parts) else "the data is wrong")
