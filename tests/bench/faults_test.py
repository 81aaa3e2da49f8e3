#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bare program of bench/faults, small and by count: every shape serves every touch with the right page, and keeps to
its share of memory. It checks both itself; here it is run."""

import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "common"), str(ROOT / "bench" / "faults")]
# pylint: disable=wrong-import-position
import run as bench

PROGRAM = ""
SMALL = ["--size", "32M", "--batch", "32", "--touches", "4000"]


def run(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode == 1 and "userfaultfd" in done.stderr:
        raise unittest.SkipTest(done.stderr.strip())
    return done


class Faults(unittest.TestCase):
    def figures(self, *words):
        done = run(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {tuple(line.split()[:2]): float(line.split()[2]) for line in done.stdout.splitlines()}, done.stderr

    def test_every_shape_serves_every_touch(self):
        for row, flags in (("1/1/1/1", []), ("4/3/2/2", []), ("4/2/4/1", []), ("2/2/2/2", ["--ranges", "8"]),
                           ("3/3/1/1", ["--wait", "epoll", "--events", "8"]),
                           ("2/1/1/1", ["--wait", "spin", "--touches", "500"])):
            with self.subTest(row=row, flags=flags):
                found, _ = self.figures("pager", *bench.row_flags(row), *SMALL, *flags)
                name = row.replace("/", "_")
                self.assertGreater(found[name, "misses_per_second"], 0)
                self.assertLess(found[name, "resident_share"], 0.85)

    def test_pages_that_were_moved_out_come_back(self):
        done = run("pager", *bench.row_flags("2/2/2/2"), *SMALL, "--evict", "move")
        if "no UFFDIO_MOVE" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_prices_check_what_they_count(self):
        found, left_out = self.figures("prices", "--size", "4M", "--beside", "1")
        self.assertIn(("refill_read_private", "us_beside_1"), found)
        self.assertIn(("miss_by_copy_handler_sleeps", "us_beside_1"), found)
        if not left_out:
            self.assertIn(("rescue_by_move_handler_sleeps", "us_beside_1"), found)
            self.assertIn(("write_bits_scan", "us_beside_1"), found)

    def test_the_kernel_refills_alone(self):
        for mapping in ("shared", "private"):
            found, _ = self.figures("refill", "--mapping", mapping, "--threads", "2", "--size", "8M", "--seconds", "0.05")
            self.assertIn((f"{mapping}_2", "refills_per_second"), found)

    def test_wrong_words_are_told(self):
        for words in (["pager", "--row", "1"], ["pager", "--wait", "never"], ["prices", "--size", "8T"], [],
                      ["pager", "--threads"]):
            done = run(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn("faults pager", done.stderr)
        self.assertEqual(bench.row_flags("16/8/4/2")[:4], ["--threads", "16", "--handlers", "8"])
        for row in ("16/8/8", "1/0/1/1", "a/b/c/d"):
            self.assertRaises(ValueError, bench.row_flags, row)
        self.assertRaises(ValueError, bench.pager_flags, ["wait"])

    def test_too_many_handlers_for_so_few_pages(self):
        done = run("pager", "--size", "4M", "--handlers", "4")
        self.assertEqual(done.returncode, 1)
        self.assertIn("a larger --size", done.stderr)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
