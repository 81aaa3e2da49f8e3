#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans that sort small objects: what is hot lies together, whatever was allocated beside it."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import unittest

import real_runs
from real_runs import tool

PROGRAM = ""
NAMES = True  # built with libdw
SMALL, LARGE = 48, 128  # MiB
STEPS = 60_000


def plain(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=True).stdout


class Regions(real_runs.InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if cls.why_not:
            return
        cls.plan_file = cls.folder / "mixed.plan"
        cls.planned = cls.plan("mixed", cls.plan_file)

    @classmethod
    def plan(cls, mode, plan):
        profile = cls.folder / f"{mode}.profile"
        done = tool("record", "-o", profile, "--memory", "512M", "--", PROGRAM, SMALL, 20 * STEPS, mode)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return tool("plan", profile, "-o", plan, "--explain")

    def run_with(self, plan, *words, memory="64M"):
        """The report; what the program prints must be right."""
        done = tool("run", "--memory", memory, *(["--plan", plan] if plan else []), "--stats=json", "--", PROGRAM, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        *said, report = done.stderr.splitlines()
        self.assertEqual(said, [])
        self.assertEqual(sorted(done.stdout.splitlines()), sorted(plain(*words).splitlines()))
        return json.loads(report)

    def test_the_plan_says_which_objects_lie_together(self):
        self.assertEqual(self.planned.returncode, 0, self.planned.stderr)
        self.assertIn("1 region of small ones", self.planned.stderr)
        first = next(line for line in self.planned.stdout.splitlines() if line.startswith("1: "))
        print(first, file=sys.stderr)
        if NAMES:
            self.assertIn("make_entry", first)
        self.assertNotIn("make_value", self.planned.stdout)
        self.assertRegex(self.planned.stdout, r"With 50 % of what small objects take, at least \d+ % of their misses are saved")

    def test_a_larger_run_with_little_memory_reads_much_less(self):
        words = (LARGE, STEPS, "mixed")
        without, sorted_ = self.run_with(None, *words), self.run_with(self.plan_file, *words)
        print(f"from the store: {without['faults_store']} faults without the plan, {sorted_['faults_store']} with it",
              file=sys.stderr)
        self.assertEqual(without["region_bytes"], 0)
        self.assertGreater(sorted_["region_bytes"], LARGE / 8 * 2**20)
        self.assertLess(sorted_["region_spare_bytes"], sorted_["region_bytes"] / 4)
        self.assertGreater(without["faults_store"], STEPS / 8, "the test tests nothing")
        self.assertLess(sorted_["faults_store"], without["faults_store"] / 2)

    def test_with_enough_memory_it_does_no_harm(self):
        report = self.run_with(self.plan_file, SMALL, STEPS, "mixed", memory="512M")
        self.assertEqual(report["paging_processes"], 0)
        self.assertGreater(report["region_bytes"], 0)

    def test_what_is_used_in_turns_lies_apart_and_comes_as_a_whole(self):
        plan = self.folder / "phases.plan"
        planned = self.plan("phases", plan)
        self.assertEqual(planned.returncode, 0, planned.stderr)
        self.assertRegex(planned.stdout, r"Small objects are used in \d phases")
        print("".join(line + "\n" for line in planned.stdout.splitlines() if "%" in line), file=sys.stderr)
        words = (LARGE, 5 * STEPS, "phases")
        without, sorted_ = (self.run_with(which, *words, memory="90M") for which in (None, plan))
        print(f"from the store: {without['faults_store']} faults without the plan, {sorted_['faults_store']} with it",
              file=sys.stderr)
        self.assertGreater(without["faults_store"], LARGE * 256, "the test tests nothing")
        self.assertLess(sorted_["faults_store"], without["faults_store"] / 2)

    def test_others_fill_what_a_region_does_not_use_any_more(self):
        report = self.run_with(self.plan_file, LARGE, STEPS, "churn")
        self.assertGreater(report["region_bytes"], LARGE / 8 * 2**20)

    def test_objects_that_grow_leave_it_when_they_are_large(self):
        self.run_with(self.plan_file, LARGE, STEPS, "grow")

    def test_a_forked_child_goes_its_own_way(self):
        report = self.run_with(self.plan_file, SMALL, STEPS, "fork", memory="48M")
        self.assertEqual(report["processes"], 2)

    def test_a_handler_of_a_signal_may_end_the_program_in_the_middle_of_an_allocation(self):
        """It hung: the end of a process waited for the lock of the heap that the handler had interrupted."""
        for microseconds in range(3000, 13000, 400):
            self.run_with(self.plan_file, 4, microseconds, "exit", memory="200M")

    def test_the_text_report_tells_of_them(self):
        done = tool("run", "--memory", "64M", "--plan", self.plan_file, "--", PROGRAM, LARGE, STEPS, "mixed")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"small objects that the plan lays together had up to \S+ MiB, up to .* of it free")

    def test_aligned_objects_lie_together_too(self):
        plan = self.folder / "aligned.plan"
        self.assertEqual(self.plan("aligned", plan).returncode, 0)
        words = (LARGE, STEPS, "aligned")
        without, sorted_ = self.run_with(None, *words), self.run_with(plan, *words)
        self.assertGreater(sorted_["region_bytes"], LARGE / 8 * 2**20)
        self.assertLess(sorted_["faults_store"], without["faults_store"] / 2)

    def test_what_is_touched_alike_gets_none(self):
        done = self.plan("alike", self.folder / "alike.plan")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("cannot make a plan", done.stderr)

    def test_another_build_is_refused(self):
        other = self.folder / "other"
        other.write_bytes(pathlib.Path(PROGRAM).read_bytes())
        other.chmod(0o755)
        real_runs.change_build(other)
        profile = self.folder / "other.profile"
        self.assertEqual(tool("record", "-o", profile, "--memory", "512M", "--", other, SMALL, 20 * STEPS,
                              "mixed").returncode, 0)
        plan = self.folder / "other.plan"
        self.assertEqual(tool("plan", profile, "-o", plan).returncode, 0)
        other.write_bytes(pathlib.Path(PROGRAM).read_bytes())
        done = tool("run", "--memory", "64M", "--plan", plan, "--", other, SMALL, STEPS, "mixed")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("another build of", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--no-names", action="store_true")
    options = parser.parse_args()
    PROGRAM = os.path.abspath(options.program)
    real_runs.use(options.tool)
    NAMES = not options.no_names
    unittest.main(argv=sys.argv[:1], verbosity=2)
