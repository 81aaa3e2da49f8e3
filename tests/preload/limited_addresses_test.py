# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A limit on addresses that is set in the middle of a run: whoever it hits ends, with the limit's name on standard
error, and the report does not say that it ran without Farheap."""

import argparse
import os
import subprocess
import sys
import unittest

TOOL = ""


def run(script):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FARHEAP_")}
    return subprocess.run([TOOL, "run", "--memory", "64M", "--", "bash", "-c", script], capture_output=True, text=True,
                          env=environment, check=False, timeout=60)


class LimitedAddresses(unittest.TestCase):
    def test_whoever_it_hits_says_so_and_ends(self):
        for kibibytes in (30 << 20, 1 << 30):  # less than the runtime's own arena; less than the heap
            done = run(f"ulimit -v {kibibytes}; /bin/echo ran; exit 7")
            self.assertEqual((done.returncode, done.stdout), (7, ""), done.stderr)
            for text in ("RLIMIT_AS is set", "ulimit -v unlimited", "1 process did not run", "farheap doctor"):
                self.assertIn(text, done.stderr)

    def test_a_limit_on_data_is_named(self):
        done = run(f"ulimit -d {1 << 20}; /bin/echo ran; exit 7")
        self.assertEqual((done.returncode, done.stdout), (7, ""), done.stderr)
        for text in ("RLIMIT_DATA is set", "ulimit -d unlimited", "1 process did not run"):
            self.assertIn(text, done.stderr)

    def test_a_program_that_becomes_one_that_cannot_start(self):
        done = run(f"ulimit -v {1 << 30}; exec /bin/echo ran")
        self.assertEqual((done.returncode, done.stdout), (71, ""), done.stderr)
        self.assertIn("RLIMIT_AS is set", done.stderr)
        self.assertNotIn("WITHOUT FARHEAP", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    known, rest = parser.parse_known_args()
    TOOL = known.tool
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
