#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds an inverted index of package records in memory and answers a few questions from it.

  index.py FILE

An ordinary program: it knows nothing of Farheap, and holds more in memory than the file is long. As search engines
do, it indexes in segments: a segment that is full is closed, and touched again only when a question is asked. What it
prints depends on every posting, so two runs with the same output built the same index.
"""

import array
import bisect
import gc
import hashlib
import re
import sys

WORD = re.compile(r"[A-Za-z][A-Za-z0-9.+-]*")
QUESTIONS = (("library", "python"), ("compression", "fast"), ("database", "server"), ("kernel", "module"),
             ("games", "puzzle"), ("font", "unicode"))
SEGMENT_PACKAGES = 2000


class Segment:
    """The words of some packages, sorted, and for each its places: (package number << 16) + position, in order."""

    def __init__(self, records, first):
        places = {}
        self.names = []
        for lines in records:
            number, position = first + len(self.names), 0
            self.names.append(lines[0].split()[1])
            for line in lines:
                for word in WORD.findall(line):
                    key = word.lower()
                    found = places.get(key)
                    if found is None:
                        found = places[key] = array.array("Q")
                    found.append((number << 16) + position)
                    position += 1
        self.words = sorted(places)
        self.places = [places[word] for word in self.words]

    def packages_with(self, word):
        at = bisect.bisect_left(self.words, word)
        if at == len(self.words) or self.words[at] != word:
            return set()
        return {place >> 16 for place in self.places[at]}

    def size(self):
        return sum(map(len, self.places))

    def add_to(self, digest):
        for word, places in zip(self.words, self.places):
            digest.update(f"{word} {len(places)}\n".encode())
            digest.update(places)


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
    segments, waiting, number = [], [], 0

    def close():
        nonlocal number
        segments.append(Segment(waiting, number))
        number += len(waiting)
        waiting.clear()
        gc.freeze()  # no garbage in there: the collector need not walk through it ever again

    for lines in read_records(path):
        waiting.append(lines)
        if len(waiting) == SEGMENT_PACKAGES:
            close()
    if waiting:
        close()
    return segments


def main():
    if len(sys.argv) != 2:
        print("usage: index.py FILE", file=sys.stderr)
        return 2
    segments = build(sys.argv[1])
    digest = hashlib.sha256()
    for segment in segments:
        segment.add_to(digest)
    print(f"{sum(len(segment.names) for segment in segments)} packages, "
          f"{sum(len(segment.words) for segment in segments)} words in {len(segments)} segments, "
          f"{sum(segment.size() for segment in segments)} places")
    for words in QUESTIONS:
        found = [segment.names[number - index * SEGMENT_PACKAGES] for index, segment in enumerate(segments)
                 for number in sorted(set.intersection(*map(segment.packages_with, words)))]
        print(f"{' and '.join(words):24} {len(found):6} packages: {', '.join(found[:3])}")
    print(f"index {digest.hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
