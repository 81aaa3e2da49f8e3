#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What farheap cannot run or do not understand: refused before anything starts, with the remedy.

  FARHEAP_BUILD=build/release python3 tests/programs/test_bad_input.py [CLASS[.METHOD]]
"""

import os
import shutil
import subprocess
import sys
import unittest

# pylint: disable=wrong-import-position
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fault_case import FaultCase, MIB, guest  # first: it says where the shared helpers are
import measured_run


class BadProgram(FaultCase):
    def test_missing_program(self):
        run = self.run_guest([os.path.join(self.folder, "no-such-program")])
        self.assert_refused(run, "no-such-program", "no such|not found|does not exist|cannot find")

    def test_static_program(self):
        source, program = os.path.join(self.folder, "hello.c"), os.path.join(self.folder, "hello")
        with open(source, "w", encoding="ascii") as file:
            file.write('#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n')
        subprocess.run(["gcc", "-static", "-o", program, source], check=True)
        self.assert_refused(self.run_guest([program]), "static", "hello")

    def test_setuid_program(self):
        # The owner must be another user for the bit to matter: root's own setuid-root programs keep LD_PRELOAD.
        if os.geteuid() != 0:
            print("SKIPPED: giving a program to another user needs root", file=sys.stderr)
            self.skipTest("needs root")
        program = os.path.join(self.folder, "sleep")
        shutil.copy("/bin/sleep", program)
        os.chown(program, 65534, -1)
        os.chmod(program, 0o4755)
        self.assert_refused(self.run_guest([program, "0"]), "setuid")


class BadOption(FaultCase):
    def call(self, *words):
        return measured_run.measured_run([self.tool, *words], timeout=60)

    def test_unknown_option_is_a_usage_error(self):
        run = self.call("run", "--memroy", "256M", "--", *guest())
        self.assert_refused(run, "memroy")
        self.assertEqual(run.status, 2)

    def test_unknown_setting_is_a_usage_error(self):
        run = self.call("run", "--memory", "256M", "--set", "polciy=clock", "--", *guest())
        self.assert_refused(run, "polciy", "policy")
        self.assertEqual(run.status, 2)

    def test_size_that_is_none(self):
        self.assert_refused(self.call("run", "--memory", "lots", "--", *guest()), "lots", "512M|4G")

    def test_unknown_variable_is_reported_with_a_suggestion(self):
        run = measured_run.measured_run([self.tool, "run", "--memory", "256M", "--", "true"], timeout=60,
                                        env={**os.environ, "FARHEAP_MEMROY": "1G"})
        self.assert_says(run, "FARHEAP_MEMROY", "FARHEAP_MEMORY")


class BadBudgetOrStore(FaultCase):
    def test_budget_too_small_says_which_is_the_least(self):
        self.assert_refused(self.run_guest(budget=str(2 * MIB)), "32")

    def test_malformed_store_shows_the_right_form(self):
        for store in ("flie:/var/tmp", "file", "checksum+", f"file:{self.folder}?no_such_parameter=1"):
            with self.subTest(store=store):
                self.assert_refused(self.run_guest(store=store), "file:")

    def test_store_that_cannot_be_opened(self):
        self.assert_refused(self.run_guest(store=f"file:{self.folder}/not/there"), "not/there")

    def test_exit_status_is_the_programs(self):
        for status in (0, 1, 2, 42, 255):
            with self.subTest(status=status):
                run = self.run_guest(["/bin/sh", "-c", f"exit {status}"])
                self.assertEqual(run.status, status, run.stderr.decode())


if __name__ == "__main__":
    unittest.main(verbosity=2)
