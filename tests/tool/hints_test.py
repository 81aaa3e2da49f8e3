#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`farheap run --hints=kernel`: that objects of a profile are recognised without Farheap's pager, that the chosen part of
them is locked and no more, that swap is used, and what is refused. What needs swap needs root: a small swap file is made
where there is no swap."""

import argparse
import ctypes
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "common"))
# pylint: disable=wrong-import-position
import measured_run
import memory_group
import real_runs
import swap_area
from real_runs import ENVIRONMENT, change_build, tool

PROGRAM = OTHER = ""
MIB = 1 << 20
SMALL_MIB, LARGE_MIB, ROUNDS = 32, 64, 3  # of the first of two objects; the other one has half of it
BUDGET_MIB, SHARE = 64, 50
IPC_LOCK = 14


def plain(*words, program=None):
    return subprocess.run([program or PROGRAM, *map(str, words)], capture_output=True, text=True, check=True).stdout


def locked_bytes(process):
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    found = re.search(r"^VmLck:\s*(\d+) kB", status, re.MULTILINE)
    return int(found.group(1)) << 10 if found else 0


class Watch(threading.Thread):
    """The most that processes below this one have locked at once."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most = 0
        self._end = threading.Event()

    def run(self):
        while not self._end.wait(0.005):
            self.most = max([self.most, *map(locked_bytes, measured_run.tree_of(os.getpid()))])

    def finish(self):
        self._end.set()
        self.join()
        return self.most


def has_swap():
    return len(pathlib.Path("/proc/swaps").read_text(encoding="ascii").splitlines()) > 1


class Hints(real_runs.InFolder):
    place = "/var/tmp"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if cls.why_not:
            return
        cls.profile = cls.folder / "sweeps.profile"
        done = tool("record", "-o", cls.profile, "--memory", "512M", "--", PROGRAM, SMALL_MIB, 6, "sweeps")
        assert done.returncode == 0, done.stderr
        cls.without_swap = None
        if not has_swap():
            cls.without_swap = tool("run", "--hints=kernel", "--plan", cls.profile, "--memory", "64M", "--", PROGRAM, 1,
                                    1, "sweeps")
            cls.why_not = swap_area.unavailable(cls.folder) or memory_group.unavailable()
            if cls.why_not is None:
                area = swap_area.SwapArea(cls.folder, 192 * MIB)
                cls.addClassCleanup(area.off)

    def run_hinted(self, hints, *words, plan=None, limit=None, share=SHARE, program=None):
        """What it printed, its report, what else was said, the most that was locked, and bytes that went to swap."""
        command = [real_runs.tool_path(), "run", f"--hints={hints}", "--plan", str(plan or self.profile), "--memory", f"{BUDGET_MIB}M",
                   "--hints-share", str(share), "--stats=json", "--", str(program or PROGRAM), *map(str, words)]
        before = swap_area.moved_bytes()[1]
        with memory_group.MemoryGroup(limit or (BUDGET_MIB + 16) * MIB) as group:
            watch = Watch()
            watch.start()
            done = measured_run.measured_run(command, group=group, env=ENVIRONMENT, timeout=200, interval=0.1)
            locked = watch.finish()
        said = done.stderr.decode()
        self.assertEqual(done.status, 0, said)
        *more, report = said.splitlines()
        return (done.stdout.decode(), json.loads(report), "\n".join(more), locked,
                swap_area.moved_bytes()[1] - before)


class WhatIsGiven(Hints):
    def test_the_chosen_part_is_locked_and_swap_has_the_rest(self):
        words = (LARGE_MIB, ROUNDS, "sweeps")
        printed, report, said, locked, swapped = self.run_hinted("kernel", *words)
        self.assertEqual(printed, plain(*words))
        self.assertEqual(said, "")
        room = BUDGET_MIB * SHARE // 100 * MIB
        print(f"locked {locked / MIB:.1f} of {room / MIB:.0f} MiB; {swapped / MIB:.0f} MiB went to swap",
              file=sys.stderr)
        self.assertEqual(report["hints"], "kernel:mlock")
        self.assertEqual(report["recognised_objects"], 2)
        self.assertEqual(report["refusals"], 0)
        self.assertLessEqual(locked, room)
        self.assertGreater(locked, room - MIB)
        self.assertEqual(locked, report["most_locked_bytes"])
        self.assertGreater(swapped, 8 * MIB)

    def test_more_room_locks_more(self):
        _, report, *_ = self.run_hinted("kernel:mlock", LARGE_MIB, 1, "sweeps", share=25)
        self.assertLessEqual(report["most_locked_bytes"], BUDGET_MIB * MIB // 4)
        self.assertGreater(report["most_locked_bytes"], BUDGET_MIB * MIB // 4 - MIB)

    def test_what_comes_next_is_asked_for(self):
        words = (LARGE_MIB, ROUNDS, "sweeps")
        printed, report, said, locked, swapped = self.run_hinted("kernel:madvise", *words)
        self.assertEqual(printed, plain(*words))
        self.assertEqual(said, "")
        print(f"{report['advised_bytes'] / MIB:.0f} MiB asked for ahead; {swapped / MIB:.0f} MiB went to swap",
              file=sys.stderr)
        self.assertEqual(report["recognised_objects"], 2)
        self.assertEqual(report["refusals"], 0)
        self.assertGreater(report["advised_bytes"], LARGE_MIB * MIB)
        self.assertEqual(locked, 0)
        self.assertGreater(swapped, 8 * MIB)

    def test_a_plan_will_do(self):
        plan = self.folder / "sweeps.plan"
        self.assertEqual(tool("plan", self.profile, "-o", plan).returncode, 0)
        for hints in ("kernel:mlock", "kernel:madvise"):
            _, report, *_ = self.run_hinted(hints, LARGE_MIB, 1, "sweeps", plan=plan)
            self.assertEqual(report["recognised_objects"], 2, hints)

    def test_random_use_has_hints_though_it_has_no_plan(self):
        profile = self.folder / "random.profile"
        done = tool("record", "-o", profile, "--memory", "512M", "--", PROGRAM, SMALL_MIB, 9, "random")
        self.assertEqual(done.returncode, 0, done.stderr)
        _, report, *_ = self.run_hinted("kernel", SMALL_MIB, 1, "random", plan=profile)
        self.assertGreater(report["most_locked_bytes"], 8 * MIB)

    def test_a_forked_child_goes_its_own_way(self):
        words = (SMALL_MIB, 1, "fork")
        printed, *_ = self.run_hinted("kernel", *words, limit=256 * MIB)
        self.assertEqual(sorted(printed.splitlines()), sorted(plain(*words).splitlines()))

    def test_another_program_runs_as_without_and_that_is_told(self):
        printed, report, _, locked, _ = self.run_hinted("kernel", 48, "once", program=OTHER, limit=512 * MIB)
        self.assertEqual(printed, plain(48, "once", program=OTHER))
        self.assertEqual((report["recognised_objects"], report["most_locked_bytes"], locked), (0, 0, 0))
        done = tool("run", "--hints=kernel", "--plan", self.profile, "--memory", "512M", "--quiet", "--", "true")
        self.assertIn("none of the planned objects was allocated", done.stderr)

    def test_without_a_limit_that_is_told(self):
        done = tool("run", "--hints=kernel", "--plan", self.profile, "--memory", "64M", "--", PROGRAM, 32, 1, "sweeps")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nothing limits the program to 64", done.stderr)
        self.assertRegex(done.stderr, r"hints: 2 planned objects were allocated; .* locked at the most, 0 refusals")


class WhatIsRefused(Hints):
    def refused(self, word, *words, status=1, **more):
        done = tool("run", *words, "--", PROGRAM, 1, 1, "sweeps", **more)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "", "it has run")
        self.assertIn(word, done.stderr)

    def test_a_machine_without_swap(self):
        if self.without_swap is None:
            print(f"SKIPPED, NOT TESTED: {self.id()}: this machine has swap", file=sys.stderr, flush=True)
            self.skipTest("swap here")
        self.assertEqual(self.without_swap.returncode, 1, self.without_swap.stderr)
        self.assertEqual(self.without_swap.stdout, "")
        self.assertIn("this machine has no swap", self.without_swap.stderr)
        self.assertIn("swapon", self.without_swap.stderr)

    def test_who_may_not_lock_so_much(self):
        def forbid():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (MIB, MIB))
            ctypes.CDLL(None).prctl(24, IPC_LOCK, 0, 0, 0)  # PR_CAPBSET_DROP
        self.refused("RLIMIT_MEMLOCK allows 1", "--hints=kernel", "--plan", self.profile, "--memory", "64M",
                     preexec_fn=forbid)

    def test_another_build(self):
        program, profile, plan = self.folder / "rebuilt", self.folder / "rebuilt.profile", self.folder / "rebuilt.plan"
        shutil.copy(PROGRAM, program)
        self.assertEqual(tool("record", "-o", profile, "--memory", "512M", "--", program, SMALL_MIB, 6,
                              "sweeps").returncode, 0)
        self.assertEqual(tool("plan", profile, "-o", plan).returncode, 0)
        change_build(program)
        for file in (profile, plan):
            self.refused(f"another build of {program}", "--hints=kernel", "--plan", file, "--memory", "64M")

    def test_a_profile_that_tells_too_little(self):
        profile = self.folder / "little.profile"
        done = tool("record", "-o", profile, "--memory", "512M", "--", PROGRAM, 1, 1, "little")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.refused("record a run", "--hints=kernel", "--plan", profile, "--memory", "64M")

    def test_what_is_no_plan(self):
        nothing = self.folder / "nothing"
        nothing.write_bytes(b"hello\n")
        for place, word in ((nothing, "it is none"), ("/no/such/file", "/no/such/file")):
            self.refused(word, "--hints=kernel", "--plan", place, "--memory", "64M")

    def test_wrong_words(self):
        given = ("--plan", self.profile, "--memory", "64M")
        self.refused("kernel:mlock or", "--hints=lock", *given, status=2)
        self.refused("no plan is named", "--hints=kernel", "--memory", "64M", status=2)
        self.refused("leave out", "--hints=kernel", "--plain", *given, status=2)
        self.refused("leave out", "--hints=kernel", "--trace", self.folder / "trace", *given, status=2)
        for share in (0, 96):
            self.refused("1 to 95", "--hints=kernel", "--hints-share", share, *given, status=2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--other", required=True)
    parser.add_argument("classes", nargs="*")
    options = parser.parse_args()
    PROGRAM, OTHER = map(os.path.abspath, (options.program, options.other))
    real_runs.use(options.tool)
    measured_run.unwind_on_signals()
    unittest.main(argv=[sys.argv[0], *options.classes], verbosity=2)
