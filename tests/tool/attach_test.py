#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`farheap record --attach`: a program that runs already is recorded for a while, and goes on."""

import argparse
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import real_runs
from real_runs import ENVIRONMENT, line_of, tool

PROGRAM = SOURCE = ""
NAMES = True  # built with libdw
MIB = 1 << 20
LARGE_MIB = 48
PATIENCE = 100  # seconds, after which it hangs


class Guest:
    """A program under `farheap run` that goes through its memory until its input ends."""

    def __init__(self, mode="rounds", memory="32M", verb=("run",)):
        self.run = subprocess.Popen([real_runs.tool_path(), *verb, "--memory", memory, "--quiet", "--", PROGRAM, str(LARGE_MIB), mode],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    env=ENVIRONMENT)
        ready = self.run.stdout.readline().split()
        assert ready and ready[0] == "ready", self.run.stderr.read()
        self.process, self.child = map(int, ready[1:])

    def finish(self):
        output, errors = self.run.communicate(timeout=PATIENCE)
        return self.run.returncode, output, errors


class Attaching(unittest.TestCase):
    def setUp(self):
        real_runs.needs_runs(self.id())
        folder = tempfile.TemporaryDirectory(prefix="farheap-attach-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.profile = str(self.folder / "app.profile")

    def guest(self, *words, **more):
        guest = Guest(*words, **more)
        self.addCleanup(self.end, guest)
        return guest

    @staticmethod
    def end(guest):
        if guest.run.poll() is None:
            guest.run.kill()
        for pipe in (guest.run.stdin, guest.run.stdout, guest.run.stderr):
            pipe.close()
        guest.run.wait()

    def attach(self, process, *options):
        """The recorder, when it records."""
        run = subprocess.Popen([real_runs.tool_path(), "record", "--attach", str(process), "-o", self.profile, *options],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.addCleanup(lambda: (run.kill(), run.wait(), run.stderr.close()))
        said = run.stderr.readline()
        self.assertIn("Ctrl-C ends the recording, and the program goes on", said)
        return run

    def wait_for(self, condition, what):
        until = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.05)

    def report(self):
        done = tool("report", self.profile, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def processes(self):
        """Their numbers, as they stand in the profile (docs/formats.md)."""
        content, at, found = pathlib.Path(self.profile).read_bytes(), 16, []
        while at < len(content):
            kind, _, length = struct.unpack_from("<QQQ", content, at)
            if kind == 2:
                found.append(struct.unpack_from("<Q", content, at + 24)[0])
            at += 24 + length
        return found

    def parts(self, pattern="*.recording"):
        return list(pathlib.Path(self.profile + ".parts").glob(pattern))

    def waits_for_some_faults(self, least=200, processes=1):
        """Until the report of the parts, which can be read at any time, has them."""
        def are_there():
            done = tool("report", self.profile + ".parts", "--json")
            if done.returncode != 0 or len(self.parts()) < processes:
                return False
            return json.loads(done.stdout)["waits"]["faults"] >= least
        self.wait_for(are_there, "no faults are recorded")

    def ends(self, recorder, signal_number=signal.SIGINT):
        recorder.send_signal(signal_number)
        _, errors = recorder.communicate(timeout=PATIENCE)
        self.assertEqual(recorder.returncode, 0, errors)
        self.assertIn(f"farheap report {self.profile}", errors)
        self.assertFalse(pathlib.Path(self.profile + ".parts").exists())

    def site_names(self, report):
        return [site["site"] for site in report["sites"]]

    def goes_on_and_ends_well(self, guest):
        code, output, errors = guest.finish()
        self.assertEqual(code, 0, errors)
        self.assertRegex(output, r"^\d+\n$")

    def test_what_happens_meanwhile_is_recorded_and_the_program_goes_on(self):
        guest = self.guest()
        recorder = self.attach(guest.process)
        self.waits_for_some_faults()
        self.ends(recorder)
        report = self.report()
        self.assertEqual(self.processes(), [guest.process])
        self.assertTrue(any("in the middle of a run" in note for note in report["notes"]), report["notes"])
        self.assertIn("in the middle of a run", report["memory"]["missing"])
        for words, status in ((("plan", self.profile, "-o", str(self.folder / "plan")), 1),
                              (("report", "--compare", self.profile, self.profile), 2)):
            done = tool(*words)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn("in the middle of a run", done.stderr)
        self.assertIn("What was allocated meanwhile held about", tool("report", self.profile).stdout)
        name = pathlib.Path(SOURCE).name
        if NAMES:
            self.assertTrue(any(line["line"].endswith(f"({name}:{line_of(SOURCE, 'read')})") for line in report["lines"]),
                            [line["line"] for line in report["lines"]])
            self.assertTrue(any(site.endswith(f"({name}:{line_of(SOURCE, 'later')})") for site in self.site_names(report)),
                            self.site_names(report))
            self.assertFalse(any(f"({name}:{line_of(SOURCE, 'large')})" in site for site in self.site_names(report)),
                             "what was allocated before is of no known site")
        self.goes_on_and_ends_well(guest)

    def test_again_and_again(self):
        """Each time two gibibytes of addresses and a file of 2.4 MiB stayed with the program."""
        guest = self.guest()
        for number in range(12):
            done = tool("record", "--attach", guest.process, "-o", self.folder / f"{number}.profile", "--seconds", "0.05")
            self.assertEqual(done.returncode, 0, done.stderr)
            if number == 1:
                before = self.addresses(guest.process)
        size, files = self.addresses(guest.process)
        self.assertLess(size - before[0], 256 * MIB)
        self.assertLessEqual(files, before[1])
        self.goes_on_and_ends_well(guest)

    @staticmethod
    def addresses(process):
        """Bytes of them, and files that are gone and still mapped."""
        status = pathlib.Path(f"/proc/{process}/status").read_text(encoding="ascii")
        maps = pathlib.Path(f"/proc/{process}/maps").read_text(encoding="utf-8")
        return int(re.search(r"VmSize:\s*(\d+) kB", status).group(1)) << 10, maps.count(".recording (deleted)")

    def test_a_second_time(self):
        guest = self.guest()
        for number in range(3):
            self.profile = str(self.folder / f"{number}.profile")
            recorder = self.attach(guest.process)
            self.waits_for_some_faults()
            self.ends(recorder, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)[number])
            self.assertGreaterEqual(self.report()["waits"]["faults"], 200)
        self.goes_on_and_ends_well(guest)

    def test_for_some_seconds(self):
        guest = self.guest()
        done = tool("record", "--attach", str(guest.process), "-o", self.profile, "--seconds", "0.5", "--quiet")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.processes(), [guest.process])
        self.goes_on_and_ends_well(guest)

    def test_all_of_a_run_with_those_that_it_forked(self):
        guest = self.guest("forked")
        recorder = self.attach(guest.run.pid)
        self.waits_for_some_faults(processes=2)
        self.ends(recorder)
        self.assertEqual(set(self.processes()), {guest.process, guest.child})
        self.goes_on_and_ends_well(guest)

    def test_the_child_of_a_recorded_process_is_not_recorded_with_it(self):
        guest = self.guest("forked")
        recorder = self.attach(guest.child)
        self.waits_for_some_faults()
        self.ends(recorder)
        self.assertEqual(self.processes(), [guest.child])
        self.goes_on_and_ends_well(guest)

    def test_children_that_are_made_meanwhile_go_their_own_way(self):
        guest = self.guest("forking")
        recorder = self.attach(guest.process)
        self.waits_for_some_faults(least=20000)
        self.ends(recorder)
        self.assertEqual(self.processes(), [guest.process])
        self.goes_on_and_ends_well(guest)

    def test_until_the_program_ends(self):
        guest = self.guest()
        recorder = self.attach(guest.process)
        self.waits_for_some_faults()
        self.goes_on_and_ends_well(guest)
        _, errors = recorder.communicate(timeout=PATIENCE)
        self.assertEqual(recorder.returncode, 0, errors)
        self.assertGreaterEqual(self.report()["waits"]["faults"], 200)

    def test_a_recorder_that_is_killed_leaves_the_parts_and_a_program_that_can_be_recorded_again(self):
        guest = self.guest()
        recorder = self.attach(guest.process)
        self.waits_for_some_faults()
        recorder.kill()
        recorder.wait()
        done = tool("report", self.profile + ".parts", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(json.loads(done.stdout)["waits"]["faults"], 200)
        self.profile = str(self.folder / "again.profile")
        self.ends(self.attach(guest.process))
        self.goes_on_and_ends_well(guest)

    def test_what_cannot_be_recorded_says_why(self):
        guest = self.guest()
        recorder = self.attach(guest.process)
        large = self.guest(memory="1G")
        recorded = self.guest(verb=("record", "-o", str(self.folder / "whole.profile")))
        other = str(self.folder / "other.profile")
        for process, words in ((guest.process, "another `farheap record --attach` records it"),
                               (large.process, "it does not page"),
                               (recorded.process, "`farheap record` has started it"),
                               (os.getpid(), "does not run under `farheap run`")):
            done = tool("record", "--attach", str(process), "-o", other)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertFalse(os.path.exists(other) or os.path.exists(other + ".parts"))
        self.ends(recorder)
        for one in (guest, large, recorded):
            self.goes_on_and_ends_well(one)

    def test_a_folder_that_is_not_there_and_wrong_words(self):
        guest = self.guest()
        done = tool("record", "--attach", str(guest.process), "-o", "/no/such/folder/app.profile")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such/folder", done.stderr)
        for words in (("--attach", "0"), ("--attach", "7", "--", "ls"), ("--attach", "7", "--memory", "1G"),
                      ("--attach", "7", "--seconds", "-1"), ("--attach", "7", "--seconds", "0"),
                      ("--seconds", "3", "--", "ls")):
            done = tool("record", "-o", self.profile, *words)
            self.assertEqual(done.returncode, 2, (words, done.stderr))
        self.goes_on_and_ends_well(guest)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--no-names", action="store_true")
    options, rest = parser.parse_known_args()
    PROGRAM, SOURCE, NAMES = os.path.abspath(options.program), options.source, not options.no_names
    real_runs.use(options.tool)
    unittest.main(argv=[sys.argv[0], "-v", *rest])
