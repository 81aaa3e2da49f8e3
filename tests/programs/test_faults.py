#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults in mid-run: full disks, broken stores, killed processes, two runs at once. Never wrong data.

  FARHEAP_BUILD=build/release python3 tests/programs/test_faults.py [CLASS[.METHOD]]
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import unittest

# pylint: disable=wrong-import-position
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fault_case
import measured_run
from fault_case import FaultCase, MIB, guest, guest_line, wait_until


def needs_root(test):
    def run(self):
        if os.geteuid() != 0:
            print(f"SKIPPED: {self.id()}: mounting a small file system needs root", file=sys.stderr)
            self.skipTest("needs root")
        test(self)
    return run


class FullDisk(FaultCase):
    """The store on a file system with room for a part of what must leave."""

    DISK_MIB = 384  # enough for the guest
    ROOM_MIB = 26  # what the ballast leaves: not enough

    @contextlib.contextmanager
    def small_disk(self):
        image, mount = os.path.join(self.folder, "image"), os.path.join(self.folder, "mount")
        os.mkdir(mount)
        with open(image, "wb") as file:
            file.truncate(self.DISK_MIB * MIB)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, mount], check=True)
        ballast = os.path.join(mount, "ballast")
        try:
            with open(ballast, "wb") as file:
                free = os.statvfs(mount)
                os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - self.ROOM_MIB * MIB)
            yield mount, ballast
        finally:
            subprocess.run(["umount", "-l", mount], check=True)

    @needs_root
    def test_pauses_says_so_and_goes_on_when_space_appears(self):
        with self.small_disk() as (mount, ballast):
            with self.started(self.command(guest(), store=f"file:{mount}")) as process:
                wait_until(lambda: "full" in self.errors().lower() or process.poll() is not None, "the message")
                self.assertIsNone(process.poll(), f"it ended instead of waiting: {self.errors()}")
                os.unlink(ballast)
                output, _ = process.communicate(timeout=fault_case.PATIENCE_SECONDS)
            self.assertEqual(output.decode(), guest_line(), self.errors())
            self.assertEqual(process.returncode, 0)
            self.assert_nothing_remains(mount)

    @needs_root
    def test_ends_with_an_error_when_told_to(self):
        with self.small_disk() as (mount, _):
            run = self.run_guest(store=f"file:{mount}", settings=["on_full=fail"])
            self.assert_ended_with_message(run, "full|no space|out of space")
            self.assertEqual(os.listdir(mount).count("ballast"), 1)
            self.assertLessEqual(set(os.listdir(mount)), {"ballast", "lost+found"})

    def test_a_full_store_without_a_disk(self):
        run = self.run_guest(store="faulty+mem:?full_after=20M", settings=["on_full=fail"])
        self.assert_ended_with_message(run, "full|no space|out of space")


class BrokenStore(FaultCase):
    def test_failed_operations_end_the_program_with_a_message(self):
        for seed in (1, 2, 3):
            with self.subTest(seed=seed):
                run = self.run_guest(store=f"faulty+file:{self.folder}?seed={seed}&error=0.05")
                self.assert_ended_with_message(run, "farheap", "faulty|store")

    def test_flipped_bits_are_found_by_checksums(self):
        for seed in (1, 2, 3):
            with self.subTest(seed=seed):
                run = self.run_guest(store=f"checksum+faulty+file:{self.folder}?seed={seed}&flip=0.05")
                self.assert_ended_with_message(run, "farheap", "checksum|corrupt")

    def test_lost_writes_are_found_by_checksums(self):
        run = self.run_guest(store=f"checksum+faulty+file:{self.folder}?seed=1&lost=0.05")
        self.assertNotEqual(run.status, fault_case.WRONG_DATA, run.stdout.decode())
        self.assert_ended_with_message(run, "farheap")

    def test_a_store_without_faults_below_the_decorators_is_right(self):
        run = self.run_guest(store=f"checksum+faulty+file:{self.folder}?seed=1&error=0")
        self.assert_right(run)
        self.assert_paged(run)
        self.assert_nothing_remains(self.folder)


class Killed(FaultCase):
    def start_filled(self, stack):
        # The sign stays out of the store's folder, where nothing may remain.
        store = os.path.join(self.folder, "store")
        os.mkdir(store)
        sign = os.path.join(self.folder, "filled")
        process = stack.enter_context(self.started(self.command(guest(passes=1000, sign=sign), store=f"file:{store}")))
        wait_until(lambda: os.path.exists(sign) or process.poll() is not None, "the guest to fill its memory")
        self.assertIsNone(process.poll(), self.errors())
        members = [member for member in measured_run.tree_of(process.pid) if member != process.pid]
        self.assertTrue(members, "the tool has no child")
        return process, members, store

    @staticmethod
    def gone(process):
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as line:
                return line.read().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    def test_program_killed(self):
        with contextlib.ExitStack() as stack:
            process, members, store = self.start_filled(stack)
            for member in members:
                os.kill(member, signal.SIGKILL)
            self.assertIn(process.wait(timeout=fault_case.PATIENCE_SECONDS), (128 + signal.SIGKILL, -signal.SIGKILL))
            wait_until(lambda: all(map(self.gone, members)), "the processes to go")
            self.assert_nothing_remains(store)

    def test_tool_killed(self):
        with contextlib.ExitStack() as stack:
            process, members, store = self.start_filled(stack)
            os.kill(process.pid, signal.SIGKILL)
            process.wait(timeout=fault_case.PATIENCE_SECONDS)
            wait_until(lambda: all(map(self.gone, members)), "the program to go with its tool")
            self.assert_nothing_remains(store)

    def test_tool_terminated_passes_it_on(self):
        with contextlib.ExitStack() as stack:
            process, members, store = self.start_filled(stack)
            os.kill(process.pid, signal.SIGTERM)
            self.assertIn(process.wait(timeout=fault_case.PATIENCE_SECONDS), (128 + signal.SIGTERM, -signal.SIGTERM))
            wait_until(lambda: all(map(self.gone, members)), "the program to go with its tool")
            self.assert_nothing_remains(store)


class Several(FaultCase):
    def test_two_runs_at_once_share_a_folder(self):
        runs = {}

        def one(number):
            runs[number] = measured_run.measured_run(self.command(guest(passes=number)),
                                                     timeout=fault_case.PATIENCE_SECONDS)

        threads = [threading.Thread(target=one, args=(number,)) for number in (2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number, run in runs.items():
            self.assert_right(run, passes=number)
            self.assert_paged(run)
        self.assert_nothing_remains(self.folder)


if __name__ == "__main__":
    unittest.main(verbosity=2)
