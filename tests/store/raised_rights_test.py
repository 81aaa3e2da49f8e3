#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program with raised rights (setuid, a file capability) that links the library obeys no variable of whoever starts
it: it starts no farheap-engines that the environment names, and hands nothing of the environment on. And
farheap-engines, which gets passwords, leaves no core.

For root only: nobody else can make such a program.
"""

import ctypes
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import rights  # noqa: E402

GIVEN = rights.GIVEN
BECOME = ["setpriv", "--reuid", str(rights.NOBODY), "--regid", str(rights.NOBODY), "--clear-groups"]
PR_SET_CHILD_SUBREAPER = 36


class RaisedRights(rights.OpenFolder):
    def setUp(self):
        super().setUp()
        self.guest = self.folder / "guest"
        shutil.copy(GIVEN.guest, self.guest)
        self.guest.chmod(0o755)
        self.seen = self.folder / "seen"
        self.seen.touch()
        self.seen.chmod(0o666)
        # In the place of farheap-engines: tells its environment, and that it ran.
        self.script = self.folder / "script"
        self.script.write_text(f"#!/bin/sh\nenv > {self.seen}\necho ran >> {self.seen}\n", encoding="utf-8")
        self.script.chmod(0o755)

    def run_guest(self, *words):
        variables = {"PATH": os.environ["PATH"], "TELLTALE": "obeyed", "BIGTABLE_EMULATOR_HOST": "127.0.0.1:1",
                     "FARHEAP_ENGINES": str(self.script), "FARHEAP_STORE": "file:/nowhere"}
        done = subprocess.run([*BECOME, str(self.guest), *words], env=variables, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return dict(line.split(" ", 1) for line in done.stdout.splitlines())

    def ran(self):
        """What the script saw, when it has run; it is nobody's child that could be waited for."""
        for _ in range(600):
            text = self.seen.read_text(encoding="utf-8")
            if text.endswith("ran\n"):
                return text
            time.sleep(0.05)
        self.fail("the script was not started")
        return ""

    def assert_obeys_nobody(self, said):
        self.assertEqual(said["raised"], "1", "the program has no raised rights: this tests nothing")
        self.assertEqual((said["variable"], said["lines"]), ("none", "none"))
        self.assertNotIn("nowhere", said["store"])
        self.assertNotEqual(said["engines"], str(self.script))
        self.assertNotIn("BIGTABLE", self.ran())  # an emulator is spoken with without TLS

    def test_without_raised_rights_it_obeys(self):
        said = self.run_guest("start", str(self.script))
        self.assertEqual(said["raised"], "0")
        self.assertEqual((said["variable"], said["engines"]), ("obeyed", str(self.script)))
        self.assertIn("BIGTABLE", self.ran())

    def test_a_program_of_another_user(self):
        self.guest.chmod(0o4755)
        self.assert_obeys_nobody(self.run_guest("start", str(self.script)))

    @unittest.skipIf(shutil.which("setcap") is None, "NO setcap HERE: file capabilities are not tested")
    def test_a_program_with_a_capability_of_its_file(self):
        subprocess.run(["setcap", "cap_net_raw+ep", str(self.guest)], check=True)
        self.assert_obeys_nobody(self.run_guest("start", str(self.script)))

    def test_engines_are_found_beside_no_program_with_raised_rights(self):
        planted = self.folder / "src" / "engines" / "farheap-engines"
        planted.parent.mkdir(parents=True)
        shutil.copy(self.script, planted)
        beside = self.folder / "bin"
        beside.mkdir()
        self.guest = pathlib.Path(shutil.move(self.guest, beside / "guest"))
        self.guest.chmod(0o4755)
        self.assertNotIn(str(self.folder), self.run_guest()["engines"])


class EnginesCores(unittest.TestCase):
    def test_farheap_engines_leaves_no_core(self):
        pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
        core = pathlib.Path("/core")  # that is where it is at home
        if pattern != "core" or core.exists() or resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
            self.skipTest(f"NOT TESTED: no cores in the current folder here: '{pattern}'")
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # it falls to us
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        with subprocess.Popen([GIVEN.guest, "start", GIVEN.engines], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as guest:
            while (line := guest.stdout.readline()) and not line.startswith("started"):
                pass
            self.assertEqual(line, "started 1\n")
            children = pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text(encoding="utf-8")
            [engines] = [int(child) for child in children.split() if int(child) != guest.pid]
            # It has begun when it is at home: before, its first lines may not have run.
            while os.readlink(f"/proc/{engines}/cwd") != "/":
                time.sleep(0.01)
            os.kill(engines, signal.SIGABRT)
            status = os.waitpid(engines, 0)[1]
            guest.stdin.close()
        dumped = os.WCOREDUMP(status) or core.exists()
        core.unlink(missing_ok=True)
        self.assertTrue(os.WIFSIGNALED(status))
        self.assertFalse(dumped)


if __name__ == "__main__":
    rights.main("guest", "engines", needs="setpriv")
