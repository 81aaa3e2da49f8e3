#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of real runs: `farheap record`, `farheap plan` and `farheap run --plan`, with the real runtime."""

import argparse
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import unittest

import real_runs
from real_runs import ENVIRONMENT, change_build, tool

PROGRAM = OTHER = ""
NAMES = True  # built with libdw
SMALL_MIB, LARGE_MIB = 32, 96
RECORDED_ROUNDS, ROUNDS = 6, 3


def plain(*words, program=None):
    return subprocess.run([program or PROGRAM, *map(str, words)], capture_output=True, text=True, check=True).stdout


class Planning(real_runs.InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if cls.why_not:
            return
        cls.profile, cls.plan_file = cls.folder / "sweeps.profile", cls.folder / "sweeps.plan"
        cls.record(cls.profile, "sweeps")
        cls.planned = tool("plan", cls.profile, "-o", cls.plan_file)

    @classmethod
    def plan_mode(cls, mode):
        if cls.why_not:
            return
        cls.profile, cls.plan_file = cls.folder / f"{mode}.profile", cls.folder / f"{mode}.plan"
        cls.record(cls.profile, mode)
        cls.planned = tool("plan", cls.profile, "-o", cls.plan_file, "--explain")

    @staticmethod
    def record(profile, mode, program=None, rounds=RECORDED_ROUNDS):
        done = tool("record", "-o", profile, "--memory", "512M", "--", program or PROGRAM, SMALL_MIB, rounds, mode)
        if done.returncode != 0:
            raise AssertionError(done.stderr)

    def run_planned(self, plan, *words, memory="64M", program=None):
        """The output, the report and what else was said."""
        done = tool("run", "--memory", memory, *(["--plan", plan] if plan else []), "--stats=json", "--",
                    program or PROGRAM, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        *said, report = done.stderr.splitlines()
        return done.stdout, json.loads(report), "\n".join(said)


class WhatIsFollowed(Planning):
    def test_a_plan_is_made_of_a_profile(self):
        self.assertEqual(self.planned.returncode, 0, self.planned.stderr)
        self.assertEqual(self.planned.stdout, "")
        self.assertIn("2 objects of", self.planned.stderr)
        self.assertIn(f"--plan {self.plan_file}", self.planned.stderr)
        self.assertTrue(self.plan_file.read_bytes().startswith(b"FHPLAN\r\n"))
        self.assertLess(self.plan_file.stat().st_size, 1 << 20)
        done = tool("plan", self.profile, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "farheap.plan").read_bytes(), self.plan_file.read_bytes(), "the same again")

    def test_larger_runs_with_little_memory_follow_it(self):
        for mebibytes, memory in ((SMALL_MIB, "32M"), (LARGE_MIB, "48M"), (LARGE_MIB, "96M")):
            with self.subTest(mebibytes=mebibytes, memory=memory):
                words = (mebibytes, ROUNDS, "sweeps")
                printed, report, said = self.run_planned(self.plan_file, *words, memory=memory)
                self.assertEqual(printed, plain(*words))
                self.assertEqual(said, "")
                touches = report["touches_expected"] + report["touches_unexpected"]
                print(f"{mebibytes} MiB in {memory}: {report['touches_expected']} of {touches} touches expected",
                      file=sys.stderr)
                self.assertGreater(touches, 50)
                self.assertGreater(report["touches_expected"], 0.6 * touches)

    def test_without_a_plan_nothing_is_expected(self):
        words = (SMALL_MIB, ROUNDS, "sweeps")
        printed, report, _ = self.run_planned(None, *words, memory="32M")
        self.assertEqual(printed, plain(*words))
        self.assertEqual((report["touches_expected"], report["touches_unexpected"]), (0, 0))

    def test_with_enough_memory_it_does_no_harm(self):
        words = (SMALL_MIB, 1, "sweeps")
        self.assertEqual(self.run_planned(self.plan_file, *words, memory="512M")[0], plain(*words))

    def test_the_text_report_says_how_much_came_as_expected(self):
        done = tool("run", "--memory", "32M", "--plan", self.plan_file, "--", PROGRAM, SMALL_MIB, ROUNDS, "sweeps")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"of \d+ touches that could be foreseen \d+ % came as expected")

    def test_a_forked_child_goes_its_own_way(self):
        words = (SMALL_MIB, 1, "fork")
        printed, _, said = self.run_planned(self.plan_file, *words, memory="32M")
        self.assertEqual(sorted(printed.splitlines()), sorted(plain(*words).splitlines()))
        self.assertEqual(said, "")

    def test_a_program_that_was_moved_is_the_same(self):
        moved = self.folder / "elsewhere" / pathlib.Path(PROGRAM).name
        moved.parent.mkdir()
        shutil.copy(PROGRAM, moved)
        _, report, _ = self.run_planned(self.plan_file, SMALL_MIB, ROUNDS, "sweeps", memory="32M", program=moved)
        self.assertGreater(report["touches_expected"], report["touches_unexpected"])

    def test_another_program_runs_as_without(self):
        printed, report, said = self.run_planned(self.plan_file, "48", "once", memory="32M", program=OTHER)
        self.assertEqual(printed, plain("48", "once", program=OTHER))
        self.assertEqual((report["touches_expected"], report["touches_unexpected"]), (0, 0))
        self.assertIn("no process of the run used what it plans", said)
        self.assertEqual(len(said.splitlines()), 1, said)

    def test_explain_says_how_each_object_is_used(self):
        done = tool("plan", self.profile, "-o", self.folder / "explained.plan", "--explain")
        self.assertEqual(done.returncode, 0, done.stderr)
        first = next(line for line in done.stdout.splitlines() if line.startswith(f"{SMALL_MIB}.0 MiB"))
        second = next(line for line in done.stdout.splitlines() if line.startswith(f"{SMALL_MIB // 2}.0 MiB"))
        self.assertIn("forwards, once", first)
        self.assertIn("backwards, once", second)
        if NAMES:
            self.assertIn("make_first", first)
            self.assertIn("make_second", second)
        foreseen = int(re.search(r"of 100 uses of its memory (\d+) could be foreseen", done.stdout).group(1))
        self.assertGreaterEqual(foreseen, 80)
        self.assertIn("repeats a round", done.stdout)
        self.assertRegex(done.stdout, r"memory +this plan +no plan +hottest objects locked +least recently used +an oracle")
        self.assertEqual(len(re.findall(r"(?m)^\d.*\(\d+ %\)", done.stdout)), 3, done.stdout)
        self.assertEqual(len(re.findall(r"(?m)^With \d+ % of the memory ", done.stdout)), 3, done.stdout)
        self.assertEqual((self.folder / "explained.plan").read_bytes(), self.plan_file.read_bytes())

    def test_the_report_tells_the_same_plan(self):
        explained = tool("plan", self.profile, "-o", self.folder / "told.plan", "--explain").stdout
        words = json.loads(tool("report", self.profile, "--json").stdout)["memory"]["plan_words"]
        said, rest = explained.split("\n\nWhat the recorded run", 1)
        self.assertTrue(words.startswith(said), words)
        self.assertEqual(re.findall(r"(?m)^With \d+ % of the memory .*", words),
                         re.findall(r"(?m)^With \d+ % of the memory .*", rest))
        self.assertIn("\nThe plan that `farheap plan` makes of this\n" + words, tool("report", self.profile).stdout)


class WhatHasPhases(Planning):
    """A program that repeats one thing, and another one then."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan_mode("stages")

    def test_each_is_planned(self):
        self.assertEqual(self.planned.returncode, 0, self.planned.stderr)
        self.assertIn("has 2 phases, one after the other", self.planned.stdout)
        phases = self.planned.stdout.split("\nPhase ")[1:]
        self.assertEqual(len(phases), 2, self.planned.stdout)
        self.assertIn("forwards, once", phases[0])
        self.assertIn("backwards, once", phases[0])
        self.assertIn("backwards, once", phases[1])
        self.assertNotIn("forwards, once", phases[1])

    def test_larger_runs_follow_all_of_them_in_whatever_order_they_come(self):
        for mode in ("stages", "turned"):
            with self.subTest(mode=mode):
                words = (LARGE_MIB, ROUNDS, mode)
                printed, report, said = self.run_planned(self.plan_file, *words, memory="64M")
                self.assertEqual(printed, plain(*words))
                self.assertEqual(said, "")
                touches = report["touches_expected"] + report["touches_unexpected"]
                print(f"{mode}: {report['touches_expected']} of {touches} touches expected", file=sys.stderr)
                self.assertGreater(touches, 100)
                self.assertGreater(report["touches_expected"], 0.6 * touches)


class WhatGoesAcross(Planning):
    """A program that goes through an array in the order of addresses, and then across all planes of it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.plan_mode("across")

    def test_the_planes_are_counted(self):
        self.assertEqual(self.planned.returncode, 0, self.planned.stderr)
        self.assertIn("forwards, once; 64 pieces side by side, once", self.planned.stdout)

    def test_a_larger_run_reads_less(self):
        words = (LARGE_MIB, ROUNDS, "across")
        printed, planned, said = self.run_planned(self.plan_file, *words, memory="72M")
        self.assertEqual(printed, plain(*words))
        self.assertEqual(said, "")
        printed, without, _ = self.run_planned(None, *words, memory="72M")
        self.assertEqual(printed, plain(*words))
        print(f"{planned['bytes_read']} bytes read with a plan, {without['bytes_read']} without", file=sys.stderr)
        self.assertGreater(planned["touches_expected"], 4 * planned["touches_unexpected"])
        self.assertLess(planned["bytes_read"], without["bytes_read"])


class WhatIsRefused(Planning):
    # It was overwritten by the plan, and the recording was lost.
    def test_a_profile_is_not_overwritten_by_its_plan(self):
        profile = self.folder / "same.profile"
        shutil.copy(self.profile, profile)
        done = tool("plan", profile, "-o", profile)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("that is the profile itself", done.stderr)
        self.assertEqual(profile.read_bytes(), self.profile.read_bytes())

    def test_a_program_that_was_rebuilt_runs_without_and_is_told(self):
        program = self.folder / "rebuilt"
        shutil.copy(PROGRAM, program)
        profile, plan = self.folder / "rebuilt.profile", self.folder / "rebuilt.plan"
        self.record(profile, "sweeps", program)
        self.assertEqual(tool("plan", profile, "-o", plan).returncode, 0)
        change_build(program)
        words = (SMALL_MIB, 1, "sweeps")
        printed, report, said = self.run_planned(plan, *words, memory="32M", program=program)
        self.assertEqual(printed, plain(*words))
        self.assertIn("WARNING", said)
        self.assertIn(f"another build of {program}", said)
        self.assertEqual((report["touches_expected"], report["touches_unexpected"]), (0, 0))

    # A plan was made of it without a word, and a damaged one was said to end in the middle.
    def test_a_part_of_a_profile_is_planned_with_a_warning(self):
        whole = self.profile.read_bytes()
        damaged = bytearray(whole)
        damaged[-100] ^= 1  # in the trace of the run, which comes last
        part, plan = self.folder / "part.profile", self.folder / "part.plan"
        for content, word in ((whole[:-10], "it ends in the middle"), (bytes(damaged), "it is damaged in the middle")):
            part.write_bytes(content)
            done = tool("plan", part, "-o", plan)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"WARNING: the plan is of a part of {part}: {word}", done.stderr)
            self.assertEqual(plan.read_bytes(), self.plan_file.read_bytes())

    def test_what_is_no_whole_plan_is_an_error(self):
        whole = self.plan_file.read_bytes()
        damaged = self.folder / "damaged.plan"
        changed = bytearray(whole)
        changed[len(whole) // 2] ^= 1
        for content, word in ((b"", "it is none"), (b"hello\n", "it is none"), (whole[:-1], "damaged"),
                              (bytes(changed), "damaged"), (self.profile.read_bytes(), "it is a profile"),
                              (whole[:8] + struct.pack("<Q", 99) + whole[16:], "newer")):
            damaged.write_bytes(content)
            done = tool("run", "--memory", "64M", "--plan", damaged, "--", PROGRAM, 1, 1, "sweeps")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(done.stdout, "", "it has run")
            self.assertIn(word, done.stderr)
            self.assertIn(str(damaged), done.stderr)
        for place in ("/no/such/file", self.folder):
            done = tool("run", "--plan", place, "--", PROGRAM, 1, 1, "sweeps")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(str(place), done.stderr)

    # "It is none", without a word of what it is.
    def test_a_plan_is_no_profile(self):
        for status, *words in ((1, "report"), (2, "report", "--compare", self.profile),
                               (1, "plan", "-o", self.folder / "none")):
            done = tool(*words, self.plan_file)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(f"{self.plan_file}: it is a plan", done.stderr)

    def test_a_fifo_a_device_or_a_folder_is_no_plan(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        for place in (fifo, "/dev/zero", self.folder):
            for words, variables in ((("--plan", place), {}), ((), {"FARHEAP_PLAN": str(place)})):
                done = tool("run", *words, "--", PROGRAM, 1, 1, "little", env=ENVIRONMENT | variables)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(f"{place}: it is no regular file", done.stderr)

    def test_random_use_gets_none(self):
        profile, plan = self.folder / "random.profile", self.folder / "random.plan"
        self.record(profile, "random", rounds=9)
        done = tool("plan", profile, "-o", plan)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"only \d+ % could have been foreseen")
        self.assertFalse(plan.exists())

    def test_too_little_memory_gets_none(self):
        profile, plan = self.folder / "little.profile", self.folder / "little.plan"
        self.record(profile, "little")
        done = tool("plan", profile, "-o", plan)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("record a run", done.stderr)
        self.assertFalse(plan.exists())

    def test_what_is_no_profile_is_an_error(self):
        for path in (self.plan_file, "/no/such/file"):
            done = tool("plan", path, "-o", self.folder / "none.plan")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(str(path), done.stderr)
        self.assertEqual(tool("plan").returncode, 2)
        done = tool("plan", self.profile, "-o", "/no/such/folder/x.plan")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("/no/such/folder/x.plan", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--other", required=True)
    parser.add_argument("--no-names", action="store_true")
    parser.add_argument("classes", nargs="*")
    options = parser.parse_args()
    PROGRAM, OTHER = map(os.path.abspath, (options.program, options.other))
    real_runs.use(options.tool)
    NAMES = not options.no_names
    unittest.main(argv=[sys.argv[0], *options.classes], verbosity=2)
