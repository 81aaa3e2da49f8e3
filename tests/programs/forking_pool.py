#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Workers forked from a process with a large table work on the table as it was then, while the process changes it.

  forking_pool.py ENTRIES

Three generations of a pool of two: each must see the table of its own time, whatever the parent does meanwhile.
"""

import hashlib
import multiprocessing
import sys

PIECES = 8
table = []


def entry(number, generation):
    word = hashlib.sha256(b"%d %d" % (number, generation)).hexdigest()
    return {"number": number, "generation": generation, "words": [word * 3, word[::-1] * 2], "sum": len(word) + number}


def work(piece):
    """Reads a piece of the table, changes it for itself, and sends back what it found and what it made."""
    mine = range(piece, len(table), PIECES)
    seen = hashlib.sha256()
    for place in mine:
        one = table[place]
        seen.update("".join(one["words"]).encode())
        one["words"][0] = one["words"][1].upper()
        one["sum"] += piece
    made = [table[place]["sum"] for place in mine]
    return piece, seen.hexdigest(), sum(made), [table[place]["words"][0][:16] for place in mine][::50]


def change(generation):
    """Every other entry becomes a new one; the rest loses a word and grows another."""
    for place in range(len(table)):
        if (place + generation) % 2 == 0:
            table[place] = entry(place, generation)
        else:
            table[place]["words"].append(table[place]["words"].pop(0) + str(generation))


def digest():
    total = hashlib.sha256()
    for one in table:
        total.update(repr(sorted(one.items())).encode())
    return total.hexdigest()


def main():
    table.extend(entry(number, 0) for number in range(int(sys.argv[1])))
    context = multiprocessing.get_context("fork")
    for generation in range(1, 4):
        with context.Pool(2) as pool:
            answers = pool.map_async(work, range(PIECES), chunksize=1)
            change(generation)
            for piece, seen, total, some in answers.get():
                print(generation, piece, seen, total, hashlib.sha256("".join(some).encode()).hexdigest())
            pool.close()
            pool.join()
    print("in the end", digest())
    return 0


if __name__ == "__main__":
    sys.exit(main())
