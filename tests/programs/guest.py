#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The guest of the fault tests: fills memory with blocks that follow from their number, then checks every byte.

  guest.py MEBIBYTES PASSES [SIGN]

Touches the file SIGN when all memory is filled. Prints one line and ends with 0; wrong data is said loudly and
ends with 99, a status that nothing else here uses.
"""

import hashlib
import sys

BLOCK = 64 << 10
WRONG_DATA = 99


def content(number, turn):
    return hashlib.shake_128(f"{number} {turn}".encode()).digest(BLOCK)


def main():
    count = int(sys.argv[1]) * (1 << 20) // BLOCK
    passes = int(sys.argv[2])
    blocks = [bytearray(content(number, 0)) for number in range(count)]
    if len(sys.argv) > 3:
        open(sys.argv[3], "w", encoding="ascii").close()
    for turn in range(passes):
        for number, block in enumerate(blocks):
            if block != content(number, turn):
                print(f"WRONG DATA in block {number}, pass {turn}", flush=True)
                return WRONG_DATA
            block[:] = content(number, turn + 1)
    print(f"{count} blocks right in {passes} passes", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
