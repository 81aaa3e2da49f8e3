#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds an inverted index of package records in memory and answers a few questions from it.

  index.py FILE

An ordinary program: it knows nothing of Farheap, and holds far more in memory than the file is long. What it
prints depends on every posting, so two runs with the same output built the same index.
"""

import hashlib
import re
import sys

WORD = re.compile(r"[A-Za-z][A-Za-z0-9.+-]*")
QUESTIONS = (("library", "python"), ("compression", "fast"), ("database", "server"), ("kernel", "module"),
             ("games", "puzzle"), ("font", "unicode"))


def read_records(path):
    with open(path, encoding="utf-8") as file:
        lines = []
        for line in file:
            if line != "\n":
                lines.append(line)
            elif lines:
                yield lines
                lines = []


def build(path):
    """(names, index): index[word] is a list of (package number << 16) + position, in order."""
    names, index = [], {}
    for number, lines in enumerate(read_records(path)):
        names.append(lines[0].split()[1])
        position = 0
        for line in lines:
            for word in WORD.findall(line):
                index.setdefault(word.lower(), []).append((number << 16) + position)
                position += 1
    return names, index


def packages_with(index, word):
    return {place >> 16 for place in index.get(word, ())}


def digest(index):
    """Of all words and all their places."""
    total = hashlib.sha256()
    for word in sorted(index):
        places = index[word]
        total.update(f"{word} {len(places)} {hash(tuple(places))}\n".encode())
    return total.hexdigest()


def main():
    if len(sys.argv) != 2:
        print("usage: index.py FILE", file=sys.stderr)
        return 2
    names, index = build(sys.argv[1])
    print(f"{len(names)} packages, {len(index)} words, {sum(map(len, index.values()))} places")
    for words in QUESTIONS:
        found = set.intersection(*(packages_with(index, word) for word in words))
        first = ", ".join(names[number] for number in sorted(found)[:3])
        print(f"{' and '.join(words):24} {len(found):6} packages: {first}")
    print(f"index {digest(index)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
