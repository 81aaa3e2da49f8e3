# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""records.py KEYS ROUNDS: a dict of objects, and skewed look-ups that change every eighth."""

import sys


class Entry:
    __slots__ = ("number", "text", "tags")

    def __init__(self, number):
        self.number = number
        self.text = f"record {number} of the table"
        self.tags = [number, number + 1]


def main():
    keys, rounds = map(int, sys.argv[1:])
    records = {f"key-{i}": Entry(i) for i in range(keys)}
    state, total = 1, 0
    for i in range(rounds):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        u = (state >> 8) & 0xFFFFF
        at = (((u * u >> 20) * u >> 20) * keys) >> 20
        record = records[f"key-{at * 7919 % keys}"]
        if i % 8 == 0:
            record.number += 1
        total = (total + record.number + len(record.text)) & 0x7FFFFFFF
    print(len(records), total)


if __name__ == "__main__":
    main()
