#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program whose optimum is known by theory, recorded under the real tool: the whole way from a fault to a number."""

import argparse
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

MIB = 1 << 20
PAGE = 4096
TOOL = SWEEP = OPTIMUM = ""


class Recording(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.folder)

    def run_recorded(self, command, window="4M", memory="64M", **variables):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("FARHEAP_")}
        environment.update(variables)
        return subprocess.run([TOOL, "run", "--memory", memory, "--quiet", "--store", f"file:{self.folder}",
                               "--set", f"record_pages={self.folder}/pages", "--set", f"record_window={window}",
                               "--", *command], env=environment, capture_output=True, text=True, check=False)

    def run_expecting(self, path, *command):
        return subprocess.run([TOOL, "run", "--memory", "48M", "--stats=json", "--store", f"file:{self.folder}",
                               "--set", f"expect_pages={path}", "--", *command], capture_output=True, text=True,
                              check=False)

    def test_what_was_recorded_may_be_expected(self):
        command = [SWEEP, "--size", "64M", "--steps", "4", "--verify"]
        done = self.run_recorded(command)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_expecting(self.traces()[0], *command)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(json.loads(done.stdout)["verified"])

    def test_a_wrong_expectation_does_no_harm(self):
        recorded = self.run_recorded([SWEEP, "--size", "24M", "--steps", "1"])
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        rubbish = os.path.join(self.folder, "rubbish")
        pathlib.Path(rubbish).write_bytes(b"no recording" * 100)
        for path in (self.traces()[0], rubbish, "/nowhere"):
            done = self.run_expecting(path, SWEEP, "--size", "64M", "--steps", "2", "--verify")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(json.loads(done.stdout)["verified"])
            self.assertEqual("no expected order" in done.stderr, path != self.traces()[0], done.stderr)

    def traces(self):
        return glob.glob(f"{self.folder}/pages.*")

    def test_sweeps_have_the_optimum_that_theory_says(self):
        megabytes, sweeps = 24, 3
        done = self.run_recorded([SWEEP, "--size", f"{megabytes}M", "--steps", str(sweeps), "--verify"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(json.loads(done.stdout)["verified"])
        self.assertEqual(len(self.traces()), 1)
        os.chmod(self.traces()[0], 0o400)  # for reading only
        budgets = [megabytes * MIB * percent // 100 for percent in (90, 70, 50)]
        found = json.loads(subprocess.run([OPTIMUM, self.traces()[0], *map(str, budgets)], capture_output=True,
                                          check=True).stdout)
        self.assertFalse(found["cut"])
        self.assertLessEqual(found["window_pages"], 4 * MIB // PAGE + 512)
        pages = megabytes * MIB // PAGE
        for budget, one in zip(budgets, found["optima"]):
            # Filled once, swept, then read for the digest and by the verifier: each of these passes but the first
            # misses pages - memory of pages - 1 (Belady, 1966).
            memory = budget // PAGE
            expected = (sweeps + 2) * pages * (pages - memory) / (pages - 1)
            self.assertLess(abs(one["bytes_read"] / PAGE - expected), 0.04 * expected + pages / 50, (budget, one))
            self.assertLessEqual(one["bytes_read"], one["bytes_read_at_most"])
            self.assertLessEqual(one["bytes_written"], one["bytes_read"])
            # Least recently used misses every page of each of these passes, as long as one does not fit.
            lru = one["lru_bytes_read"] / PAGE
            self.assertLess(abs(lru - (sweeps + 2) * pages), 0.04 * lru, (budget, one))
            self.assertLessEqual(one["lru_bytes_read_at_least"], one["lru_bytes_read"])
            self.assertGreaterEqual(one["lru_bytes_read_at_most"], one["lru_bytes_read"])
            # The last two passes change nothing: what they evict was written before.
            self.assertGreater(one["bytes_written"] / PAGE, (sweeps - 1) * (pages - memory))

    def test_two_windows_tell_the_same(self):
        found = []
        for window in ("2M", "6M"):
            done = self.run_recorded([SWEEP, "--size", "24M", "--steps", "2"], window)
            self.assertEqual(done.returncode, 0, done.stderr)
            (trace,) = self.traces()
            found.append(json.loads(subprocess.run([OPTIMUM, trace, str(14 * MIB)], capture_output=True,
                                                   check=True).stdout)["optima"][0])
            os.unlink(trace)
        for one, other in (found, found[::-1]):
            self.assertLessEqual(one["bytes_read"], other["bytes_read_at_most"], "each is below the other's bound")

    def test_a_program_that_forks_goes_on_and_its_children_leave_the_recording_alone(self):
        script = ("import os\nblocks = [bytes([i]) * 300000 for i in range(60)]\n"
                  "child = os.fork()\nsame = all(block == bytes([i]) * 300000 for i, block in enumerate(blocks))\n"
                  "if child == 0: os._exit(0 if same else 1)\n"
                  "print(same, os.waitpid(child, 0)[1])\n")
        # In the plain locale, which takes no memory of the heap: this is about the recording.
        plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
        done = self.run_recorded([sys.executable, "-c", script], **plain)
        self.assertEqual((done.returncode, done.stdout), (0, "True 0\n"), done.stderr)
        (trace,) = self.traces()
        subprocess.run([OPTIMUM, trace, str(8 * MIB)], capture_output=True, check=True)

    def test_a_folder_that_is_not_there_is_told(self):
        done = subprocess.run([TOOL, "run", "--memory", "64M", "--set", f"record_pages={self.folder}/no/pages", "--",
                               SWEEP, "--size", "24M"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn(f"{self.folder}/no/pages", done.stderr)

    def test_what_is_no_trace_is_refused(self):
        path = pathlib.Path(self.folder) / "text"
        path.write_text("no trace" * 100, encoding="ascii")
        for words, status in (([str(path), "4096"], 1), ([str(path)], 2), ([str(path), "many"], 1), ([], 2)):
            done = subprocess.run([OPTIMUM, *words], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, status, words)
            self.assertIn("trace_optimum: ", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("tool", "sweep", "optimum"):
        parser.add_argument(f"--{name}", required=True)
    options, rest = parser.parse_known_args()
    TOOL, SWEEP, OPTIMUM = options.tool, options.sweep, options.optimum
    unittest.main(argv=[sys.argv[0], *rest])
