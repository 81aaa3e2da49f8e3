#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/plan from end to end with the smallest sizes: recorded, planned, run in all ways, resumed, shown again. What
its figures are worth is not tested, nor any time."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "plan", "run.py")
BUILD = ""


class PlanBench(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = os.path.join(self.folder, "plan.json")

    def run_bench(self, *words):
        done = subprocess.run([sys.executable, BENCH, *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def measure(self, *words):
        # Kernel swap is one for the whole machine: tests leave it alone.
        return self.run_bench("--build", BUILD, "--quick", "--no-swap", "--folder", self.folder, "--size", "64M",
                              "--resume", self.file, *words)

    def measured(self):
        with open(self.file, encoding="utf-8") as lines:
            return json.load(lines)

    def figures(self):
        return {(one["name"], one["metric"]): one["value"] for one in self.measured()["results"]}

    def test_a_sweep_is_planned_and_measured_once(self):
        self.measure("--programs", "sweep", "--oracle")
        figures = self.figures()
        for metric in ("speedup_over_planless_70", "plan_over_oracle_70", "recovered_over_ceiling_70",
                       "read_over_optimum_70", "hint_bytes", "slowdown_full_memory"):
            self.assertGreater(figures["sweep", metric], 0, metric)
            self.assertIn(("sweeping", metric), figures)
        self.assertGreater(figures["sweep", "expected_touches_70"], 0, "the plan was not followed at all")
        self.assertNotIn(("sweep", "speedup_over_swap_70"), figures)

        before = self.measured()
        self.assertEqual({run["way"] for run in before["runs"]}, {"plain", "farheap", "plan", "oracle"})
        self.measure("--programs", "sweep", "--oracle")
        after = self.measured()
        self.assertEqual((after["runs"], after["programs"]), (before["runs"], before["programs"]), "nothing ran again")
        self.assertEqual(os.listdir(self.folder), ["plan.json"], "nothing is left behind")

        shown = self.run_bench("--from-json", self.file, "--markdown").stdout
        self.assertIn("**What a plan gains, at 70 % of the memory**", shown)
        self.assertIn("| sweep | ", shown)

    def test_a_program_that_no_plan_helps_runs_without_one(self):
        # It looks words of one large object up at random: that has no order.
        done = self.measure("--programs", "lookup_1")
        self.assertIn("no plan for lookup_1: ", done.stderr)
        self.assertIn("run it without one", done.stdout)
        self.assertEqual({run["way"] for run in self.measured()["runs"]}, {"plain", "farheap"})
        self.assertNotIn(("lookup_1", "hint_bytes"), self.figures())

    def test_a_training_with_too_little_data_is_no_result(self):
        done = subprocess.run([sys.executable, BENCH, "--build", BUILD, "--quick", "--no-swap", "--folder", self.folder,
                               "--programs", "sweep", "--size", "64M", "--train-part", "100000000", "--json", self.file],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("FAILED: sweep: farheap plan ended with status 1", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    options, rest = parser.parse_known_args()
    BUILD = options.build
    unittest.main(argv=[sys.argv[0], *rest])
