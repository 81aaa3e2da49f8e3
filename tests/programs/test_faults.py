#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults in mid-run: full disks, broken stores, killed processes, two runs at once. Never wrong data.

  FARHEAP_BUILD=build/release python3 tests/programs/test_faults.py [CLASS[.METHOD]]
"""

import contextlib
import ctypes
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
from fault_case import FaultCase, MIB, gone, guest, guest_line, wait_until


def own_mounts():
    """From here on this process sees mounts of its own, so that the kernel undoes them even if the test is killed."""
    new_namespace = 0x00020000  # CLONE_NEWNS; os.unshare() came with Python 3.12
    if ctypes.CDLL(None, use_errno=True).unshare(new_namespace) != 0:
        return os.strerror(ctypes.get_errno())
    made = subprocess.run(["mount", "--make-rprivate", "/"], stderr=subprocess.PIPE, check=False)
    return made.stderr.decode().strip() if made.returncode != 0 else None


class FullDisk(FaultCase):
    """The store on a file system with room for a part of what must leave."""

    DISK_MIB = 160  # enough for the guest
    ROOM_MIB = 26  # what the ballast leaves: not enough
    FULL = "full|no space"

    @contextlib.contextmanager
    def small_disk(self):
        why = own_mounts()
        image, mount = os.path.join(self.folder, "image"), os.path.join(self.folder, "mount")
        os.mkdir(mount)
        with open(image, "wb") as file:
            file.truncate(self.DISK_MIB * MIB)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", image], check=True)
        if why is None:
            mounted = subprocess.run(["mount", "-o", "loop", image, mount], stderr=subprocess.PIPE, check=False)
            why = mounted.stderr.decode().strip() if mounted.returncode != 0 else None
        if why is not None:
            print(f"SKIPPED: {self.id()}: cannot mount a small file system here: {why}", file=sys.stderr, flush=True)
            self.skipTest("mounting needs root")
        ballast = os.path.join(mount, "ballast")
        try:
            with open(ballast, "wb") as file:
                free = os.statvfs(mount)
                room = free.f_bavail * free.f_frsize
                self.assertGreater(room, (fault_case.GUEST_MIB + self.ROOM_MIB) * MIB)
                os.posix_fallocate(file.fileno(), 0, room - self.ROOM_MIB * MIB)
            yield mount, ballast
        finally:
            # Lazily: whoever still has it open keeps it, and the loop device, until it ends.
            subprocess.run(["umount", "-l", mount], check=True)

    def wait_for_pause(self, process):
        wait_until(lambda: "waits until there is space" in self.errors() or process.poll() is not None, "the message")
        self.assertIsNone(process.poll(), f"it ended instead of waiting: {self.errors()}")
        self.assertRegex(self.errors(), f"(?i){self.FULL}")

    def pauses_and_goes_on(self, store):
        with self.small_disk() as (mount, ballast):
            with self.started(self.command(guest(), store=f"{store}{mount}")) as process:
                self.wait_for_pause(process)
                os.unlink(ballast)
                output, _ = process.communicate(timeout=fault_case.PATIENCE_SECONDS)
            self.assertEqual(output.decode(), guest_line(), self.errors())
            self.assertEqual(process.returncode, 0)
            self.assert_nothing_remains(mount)

    def test_pauses_says_so_and_goes_on_when_space_appears(self):
        self.pauses_and_goes_on("file:")

    def test_a_full_disk_under_lmdb_was_an_input_output_error(self):
        stores = subprocess.run([self.tool, "store", "kinds"], stdout=subprocess.PIPE, check=True).stdout
        if b"lmdb:" not in stores:
            print(f"SKIPPED: {self.id()}: lmdb: is not in this build", file=sys.stderr, flush=True)
            self.skipTest("no lmdb:")
        self.pauses_and_goes_on("lmdb:")

    def test_a_paused_program_can_be_ended(self):
        with self.small_disk() as (mount, _):
            with self.started(self.command(guest(), store=f"file:{mount}")) as process:
                self.wait_for_pause(process)
                members = self.members_of(process)
                os.kill(process.pid, signal.SIGTERM)
                self.assertEqual(process.wait(timeout=fault_case.PATIENCE_SECONDS), 128 + signal.SIGTERM)
                wait_until(lambda: all(map(gone, members)), "the program to go with its tool")
            self.assertLessEqual(set(os.listdir(mount)), {"ballast", "lost+found"})
            room = os.statvfs(mount)
            self.assertGreater(room.f_bavail * room.f_frsize, (self.ROOM_MIB - 1) * MIB, "space is still taken")

    def test_ends_with_an_error_when_told_to(self):
        with self.small_disk() as (mount, _):
            run = self.run_guest(store=f"file:{mount}", settings=["on_full=fail"])
            self.assert_ended_with_message(run, self.FULL)
            self.assertNotIn(b"goes when the next run opens it", run.stderr)  # it said so of a file, which goes at once
            self.assertLessEqual(set(os.listdir(mount)), {"ballast", "lost+found"})

    def test_a_full_store_without_a_disk(self):
        run = self.run_guest(store=f"faulty+file:{self.folder}?full_after={self.ROOM_MIB}M", settings=["on_full=fail"])
        self.assert_ended_with_message(run, self.FULL)
        self.assert_nothing_remains(self.folder)


class BrokenStore(FaultCase):
    def run_on(self, decorators, parameters):
        run = self.run_guest(store=f"{decorators}file:{self.folder}?{parameters}")
        self.assert_nothing_remains(self.folder)
        return run

    def test_failed_operations_end_the_program_with_a_message(self):
        for seed in (1, 2):
            with self.subTest(seed=seed):
                run = self.run_on("faulty+", f"seed={seed}&error=0.2")
                self.assert_ended_with_message(run, "farheap", "faulty")

    def test_a_store_that_stumbles_is_asked_again(self):
        # So rarely that six attempts in a row at a batch of some dozen entries do not fail.
        for fault in ("error", "unknown"):
            with self.subTest(fault=fault):
                run = self.run_on("faulty+", f"seed=1&{fault}=0.001")
                self.assert_says(run, "trying again")
                self.assert_right(run)

    def test_flipped_bits_are_found_by_checksums(self):
        for seed in (1, 2, 3):
            with self.subTest(seed=seed):
                run = self.run_on("checksum+faulty+", f"seed={seed}&flip=0.2")
                self.assert_ended_with_message(run, "farheap", "checksum")

    def test_lost_writes_are_found_by_checksums(self):
        run = self.run_on("checksum+faulty+", "seed=1&lost=0.05")
        self.assert_ended_with_message(run, "farheap", "checksum|does not have it any more")

    def test_torn_writes_are_found_by_checksums(self):
        run = self.run_on("checksum+faulty+", "seed=1&torn=0.05")
        self.assert_ended_with_message(run, "farheap", "checksum")

    def test_wrong_bytes_without_checksums_are_what_the_guest_notices(self):
        """That it ends with 99 when data is wrong is what all other tests stand on."""
        run = self.run_on("faulty+", "seed=1&flip=0.05")
        self.assertEqual(run.status, fault_case.WRONG_DATA, run.stderr.decode())
        self.assertIn(b"WRONG DATA", run.stdout)

    def test_a_store_without_faults_below_the_decorators_is_right(self):
        run = self.run_on("checksum+faulty+", "seed=1&error=0")
        self.assert_right(run)
        self.assert_paged(run)


class Killed(FaultCase):
    def start_filled(self, stack):
        # The sign stays out of the store's folder, where nothing may remain.
        store = os.path.join(self.folder, "store")
        os.mkdir(store)
        sign = os.path.join(self.folder, "filled")
        process = stack.enter_context(self.started(self.command(guest(passes=1000, sign=sign), store=f"file:{store}")))
        wait_until(lambda: os.path.exists(sign) or process.poll() is not None, "the guest to fill its memory")
        self.assertIsNone(process.poll(), self.errors())
        return process, self.members_of(process), store

    def test_program_killed(self):
        with contextlib.ExitStack() as stack:
            process, members, store = self.start_filled(stack)
            for member in members:
                with contextlib.suppress(ProcessLookupError):  # it has gone with its guardian
                    os.kill(member, signal.SIGKILL)
            self.assertIn(process.wait(timeout=fault_case.PATIENCE_SECONDS), (128 + signal.SIGKILL, -signal.SIGKILL))
            wait_until(lambda: all(map(gone, members)), "the processes to go")
            self.assert_nothing_remains(store)

    def test_tool_killed(self):
        with contextlib.ExitStack() as stack:
            process, members, store = self.start_filled(stack)
            os.kill(process.pid, signal.SIGKILL)
            process.wait(timeout=fault_case.PATIENCE_SECONDS)
            wait_until(lambda: all(map(gone, members)), "the program to go with its tool")
            self.assert_nothing_remains(store)

    def test_tool_terminated_passes_it_on(self):
        with contextlib.ExitStack() as stack:
            process, members, store = self.start_filled(stack)
            os.kill(process.pid, signal.SIGTERM)
            self.assertIn(process.wait(timeout=fault_case.PATIENCE_SECONDS), (128 + signal.SIGTERM, -signal.SIGTERM))
            wait_until(lambda: all(map(gone, members)), "the program to go with its tool")
            self.assert_nothing_remains(store)


class Several(FaultCase):
    def test_two_runs_at_once_share_a_folder(self):
        runs = {}

        def one(number):
            runs[number] = self.run_guest(guest(passes=number))

        threads = [threading.Thread(target=one, args=(number,)) for number in (2, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(set(runs), {2, 3})
        for number, run in runs.items():
            self.assert_right(run, passes=number)
            self.assert_paged(run)
        self.assert_nothing_remains(self.folder)

    def test_a_killed_run_does_not_harm_another(self):
        with self.started(self.command(guest(passes=1000))) as doomed:
            runs = []
            other = threading.Thread(target=lambda: runs.append(self.run_guest()))
            other.start()
            wait_until(lambda: len(measured_run.tree_of(doomed.pid)) > 1, "the program to start")
            os.killpg(doomed.pid, signal.SIGKILL)
            other.join()
        self.assertEqual(len(runs), 1)
        self.assert_right(runs[0])
        self.assert_paged(runs[0])
        self.assert_nothing_remains(self.folder)


if __name__ == "__main__":
    unittest.main(verbosity=2)
