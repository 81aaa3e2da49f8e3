#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The replay of recorded uses on traces whose counts are known.  recency_test.py REPLAY_USES"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

REPLAY = sys.argv.pop(1) if len(sys.argv) > 1 else sys.exit(__doc__)
PAGES, ROUNDS, MEMORY = 100, 5, 70
DROPPED = 0xFFFFFFFF


def use(page, written=False):
    """A window of one use, so that the order is known."""
    return struct.pack("<III", 1, page, 1 << 1 | written)


def replay(frames):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "uses.trace")
        with open(path, "wb") as out:
            out.write(b"".join(frames))
        output = subprocess.run([REPLAY, path, str(MEMORY)], check=True, capture_output=True, text=True).stdout
    return {line["policy"]: line for line in map(json.loads, output.splitlines())}


class Replay(unittest.TestCase):
    def test_a_cyclic_sweep_is_the_worst_for_lru(self):
        found = replay([use(page) for _ in range(ROUNDS) for page in range(PAGES)])
        self.assertEqual(found["lru"]["pages"], PAGES)
        self.assertEqual(found["lru"]["misses"], (ROUNDS - 1) * PAGES)
        self.assertLess(found["optimum"]["misses"], (ROUNDS - 1) * PAGES / 2)
        self.assertGreaterEqual(found["optimum"]["misses"], (ROUNDS - 1) * (PAGES - MEMORY))

    def test_hot_pages_stay_for_whoever_sees_them(self):
        hot, frames = 20, [use(page) for page in range(PAGES)]
        for i in range(2000):
            frames += [use(page, True) for page in range(hot)] if i % 5 == 0 else [use(hot + i * 7 % (PAGES - hot))]
        found = replay(frames)
        hot_uses = 400 * hot
        for policy in ("lru", "clock", "written 5"):
            self.assertLess(found[policy]["misses"], 1700, policy)
        self.assertGreater(found["nothing 25"]["rescues"], found["written 25"]["rescues"])
        self.assertLess(found["nothing 25"]["rescues"], hot_uses)
        self.assertEqual(found["clock"]["rescues"], 0)
        self.assertGreater(found["clock"]["refills"], 0)

    def test_what_was_dropped_is_not_read_again(self):
        frames = []
        for _ in range(ROUNDS):
            frames += [use(page) for page in range(PAGES)] + [struct.pack("<III", DROPPED, 0, PAGES)]
        for policy, line in replay(frames).items():
            self.assertEqual(line["misses"], 0, policy)

    def test_no_trace_is_told(self):
        done = subprocess.run([REPLAY, "/nonexistent", "70"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot open", done.stderr)


if __name__ == "__main__":
    unittest.main()
