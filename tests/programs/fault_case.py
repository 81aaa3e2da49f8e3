# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the fault tests share: starting the guest under farheap and looking at what it left."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "common"))
# pylint: disable=wrong-import-position
import farheap_command
import measured_run

_libc = ctypes.CDLL(None)
MIB = 1 << 20
PATIENCE_SECONDS = 120
WRONG_DATA = 99
LOST_DATA = 74  # EX_IOERR, with which the runtime ends a program
GUEST_MIB = 80
BUDGET = f"{32 * MIB}"  # the least


def guest(passes=2, sign=None):
    program = os.path.join(farheap_command.find_build(), "tests", "programs", "fault_guest")
    return [program, str(GUEST_MIB), str(passes), *([sign] if sign else [])]


def guest_line(passes=2):
    return f"{GUEST_MIB * 256} pages right in {passes} passes\n"


def wait_until(condition, what, patience=PATIENCE_SECONDS):
    """Polls; what it waits for either comes or the test fails with the patience over: no test of speed."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {patience} s in vain for {what}")
        time.sleep(0.02)


def end_with_parent():
    """Between fork and exec: a test that is killed leaves no program behind that waits for space for ever."""
    set_parent_death_signal = 1  # PR_SET_PDEATHSIG
    _libc.prctl(set_parent_death_signal, signal.SIGKILL)


def gone(process):
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as line:
            return line.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def shared_memory_names():
    return {name for name in os.listdir("/dev/shm") if "farheap" in name}


class FaultCase(unittest.TestCase):
    def setUp(self):
        self.tool = farheap_command.find_tool(farheap_command.find_build())
        self.assertIsNotNone(self.tool, f"no tool in {farheap_command.find_build()}")
        self.assertTrue(os.access(guest()[0], os.X_OK), f"no {guest()[0]}")
        self.folder = tempfile.mkdtemp(prefix="farheap-faults-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self._shared = shared_memory_names()

    def command(self, program, *, store=None, budget=BUDGET, settings=()):
        return farheap_command.run_command(self.tool, budget, program, store=store or f"file:{self.folder}",
                                           settings=settings)

    def run_guest(self, program=None, **how):
        run = measured_run.measured_run(self.command(program or guest(), **how), timeout=PATIENCE_SECONDS)
        self.assertFalse(run.timed_out, "it hangs")
        self.assertEqual(run.left_behind, 0, "processes were left behind")
        return run

    @contextlib.contextmanager
    def started(self, command):
        """The running tool in a session of its own; whatever is left of that is killed at the end."""
        with open(os.path.join(self.folder, "stderr"), "wb") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
                                       preexec_fn=end_with_parent)
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def members_of(self, process):
        """The program and what it started."""
        members = [member for member in measured_run.tree_of(process.pid) if member != process.pid]
        self.assertTrue(members, "the tool has no child")
        return members

    def errors(self):
        with open(os.path.join(self.folder, "stderr"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def assert_right(self, run, passes=2):
        self.assertEqual(run.stdout.decode(), guest_line(passes), run.stderr.decode())
        self.assertEqual(run.status, 0)

    def assert_paged(self, run):
        stats = farheap_command.parse_stats(run.stderr)
        self.assertIsNotNone(stats, "no statistics")
        self.assertGreater(farheap_command.counter(stats, "bytes_written"), 0, "no page left: proves nothing")
        return stats

    def assert_ended_with_message(self, run, *words):
        """Neither a result nor wrong data nor silence."""
        self.assertNotIn(b"WRONG DATA", run.stdout)
        self.assertEqual(run.status, LOST_DATA, run.stderr.decode())
        self.assert_says(run, *words)

    def assert_refused(self, run, *words):
        """The program was never started."""
        self.assertNotEqual(run.status, 0)
        self.assertEqual(run.stdout, b"")
        self.assert_says(run, *words)

    def assert_says(self, run, *words):
        for word in words:
            self.assertRegex(run.stderr.decode("utf-8", "replace"), f"(?i){word}")

    def assert_nothing_remains(self, folder):
        self.assertEqual([name for name in os.listdir(folder) if name not in ("stderr", "lost+found")], [])
        self.assertLessEqual(shared_memory_names(), self._shared)

