#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every system call that the runtime makes fails once, one after the other: the first of its kind in a run, in the next
run the second, and so on until a run has none that could fail. Whatever happens, the program's output is right, or it
ends with a message and a status of its own or of Farheap: never wrong data, never a hang, never by SIGSEGV.

  failing_calls_test.py BUILD PROGRAM [--full] [--call NAME] [--number N] [--list]

PROGRAM is `run` (a program in more memory than it may have) or `heap` (one with a kept heap). Without --full a selection
of the calls and numbers. strace makes them fail; it counts for each thread, so one run may see several failures. Calls
of the program's own loader and library fail, too.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

MIB = 1 << 20
PATIENCE_SECONDS = 120
WRONG_DATA = 99
SKIPPED = 77
# By the kernel: SIGILL, SIGBUS, SIGFPE, SIGSEGV, SIGSYS.
BY_A_SIGNAL = {128 + number for number in (4, 7, 8, 11, 31)} | {-number for number in (4, 7, 8, 11, 31)}
ABORTED = {128 + 6, -6}

# What each may answer on a machine that is short of something, broken, or forbids it. Some have two faces. Not close():
# the kernel closes whatever it answers, and strace would leave it open.
CALLS = [
    ("mmap", "ENOMEM"), ("munmap", "ENOMEM"), ("mprotect", "ENOMEM"), ("madvise", "ENOMEM"), ("mremap", "ENOMEM"),
    ("process_madvise", "EPERM"), ("munlock", "ENOMEM"), ("ioctl", "ENOMEM"), ("ioctl", "EINVAL"),
    ("userfaultfd", "EPERM"), ("read", "EIO"), ("read", "EINTR"), ("poll", "ENOMEM"), ("poll", "EINTR"),
    ("pread64", "EIO"), ("pread64", "EINTR"), ("pwrite64", "EIO"), ("pwrite64", "ENOSPC"), ("preadv", "EIO"),
    ("pwritev", "EIO"), ("fdatasync", "EIO"), ("fsync", "EIO"), ("ftruncate", "EFBIG"), ("fallocate", "ENOSPC"),
    ("openat", "EMFILE"), ("openat", "EACCES"), ("fcntl", "ENOLCK"), ("fstat", "EIO"),
    ("newfstatat", "EACCES"), ("statx", "ENOSYS"), ("statfs", "ENOSYS"), ("fstatfs", "ENOSYS"),
    ("io_uring_setup", "EPERM"), ("io_uring_enter", "EINTR"), ("io_uring_enter", "EBUSY"), ("clone3", "EAGAIN"),
    ("clone", "EAGAIN"), ("memfd_create", "EMFILE"), ("pipe2", "EMFILE"), ("readlink", "EACCES"),
    ("prlimit64", "EPERM"), ("prctl", "EPERM"), ("sched_setscheduler", "EPERM"), ("sched_getaffinity", "EPERM"),
    ("fchmod", "EPERM"), ("access", "EACCES"), ("faccessat2", "EACCES"), ("unlink", "EACCES"), ("rename", "EACCES"),
    ("getrandom", "EAGAIN"), ("sysinfo", "EPERM"), ("rt_sigaction", "EINVAL"), ("lseek", "EINVAL"),
    ("flock", "ENOLCK"), ("write", "EIO"), ("wait4", "EINTR"), ("uname", "EPERM"),
]
# Those of which something depends, for the short test.
SELECTED = {"mmap", "madvise", "ioctl", "userfaultfd", "read", "pread64", "pwrite64", "fdatasync", "ftruncate", "openat",
            "io_uring_enter", "clone3", "memfd_create"}


def numbers(full):
    """1, 2, 3 and so on; from 40 on some are left out."""
    number = 1
    while True:
        yield number
        number += (1 if number < 40 else number // 10) if full else number


class Failure(Exception):
    pass


class Trial:
    def __init__(self, build, folder):
        self.tool = os.path.join(build, "tool", "farheap")
        self.guests = os.path.join(build, "tests", "programs")
        self.folder = folder
        self.log = os.path.join(folder, "log")
        self.said = ""

    def prepare(self):
        """Before each run."""

    def run(self, command, call=None, error=None, number=0, with_stacks=False):
        """(status, output, messages, whether something failed)"""
        if call is not None:
            command = ["strace", "-f", "-qqq", "--seccomp-bpf", *(["-k"] if with_stacks else []), "-o", self.log, "-e",
                       f"trace={call}", "-e", "signal=none", "-e", f"inject={call}:error={error}:when={number}",
                       *command]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True, env=dict(os.environ, LC_ALL="C"))
        try:
            output, messages = process.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired as late:
            os.killpg(process.pid, 9)
            _, messages = process.communicate()
            raise Failure(f"it hangs:\n{messages.decode(errors='replace')}") from late
        injected = False
        if call is not None:
            self.said = messages.decode(errors="replace")
            with open(self.log, encoding="utf-8", errors="replace") as log:
                injected = "(INJECTED)" in log.read()
        return process.returncode, output.decode(), messages.decode(errors="replace"), injected

    def is_not_ours(self, status, command, call, error, number):
        """Whether it ended by a failure that the loader, or the C library for itself, has its own way with: the last
        call that failed was the loader's, or the library aborts where it cannot give a thread's stack back."""
        if status not in BY_A_SIGNAL and not (status in ABORTED and not self.said.strip()):
            return False
        for _ in range(10):  # threads take turns, so it may end in another way
            self.prepare()
            again, _, _, _ = self.run(command, call, error, number, with_stacks=True)
            if again != status:
                continue
            with open(self.log, encoding="utf-8", errors="replace") as log:
                last = [after.split("\n")[1:3] for after in log.read().split("(INJECTED)")[1:]][-1]
            return "/ld-linux" in last[0] or (status in ABORTED and all("/libc.so" in frame for frame in last))
        return False

    @staticmethod
    def judge(status, output, right, messages):
        if status == WRONG_DATA or "WRONG DATA" in output:
            raise Failure(f"wrong data: {output}")
        if status in BY_A_SIGNAL:
            raise Failure(f"it was ended by a signal, status {status}:\n{messages}")
        if status == 0 and output != right:
            raise Failure(f"status 0, and the output is {output!r}:\n{messages}")
        if status != 0 and not messages.strip():
            raise Failure(f"status {status} without a message")


class Run(Trial):
    """48 MiB in 32 MiB."""

    def try_one(self, call, error, number):
        place = os.path.join(self.folder, "store")
        os.makedirs(place, exist_ok=True)
        command = [self.tool, "run", "--memory", "32M", "--store", f"file:{place}", "--",
                   os.path.join(self.guests, "fault_guest"), "48", "1"]
        status, output, messages, injected = self.run(command, call, error, number)
        if self.is_not_ours(status, command, call, error, number):
            return injected, "not ours"
        self.judge(status, output, "12288 pages right in 1 passes\n", messages)
        left = os.listdir(place)
        if left:
            raise Failure(f"it left {left}")
        return injected, status


class Heap(Trial):
    """24 MiB of a kept heap in 16 MiB."""

    STEPS = 4

    def prepare(self):
        place = os.path.join(self.folder, "heap")
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)

    def try_one(self, call, error, number):
        place = os.path.join(self.folder, "heap")
        self.prepare()
        guest = [os.path.join(self.guests, "kept_guest"), f"file:{place}/heap"]
        command = [*guest, "write", str(self.STEPS)]
        status, output, messages, injected = self.run(command, call, error, number)
        if self.is_not_ours(status, command, call, error, number):
            return injected, "not ours"
        self.judge(status, output, "".join(f"{step}\n" for step in range(1, self.STEPS + 1)), messages)
        # What it said is there, and whole.
        said = int(output.split()[-1]) if output.split() else 0
        status, found, wrong, _ = self.run([*guest, "check"])
        if said == 0 and status == 1 and "no heap" not in wrong and not os.path.exists(f"{place}/heap"):
            return injected, status  # it was never made
        if status != 0 and said == 0 and re.search("there is none|is not there|no such|No such|not a store", wrong):
            return injected, status
        if status != 0 or not said <= int(found) <= said + 1:
            raise Failure(f"after step {said} it has {found.strip()!r}: {wrong}\nwhat it said before:\n{messages}")
        return injected, status


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("program", choices=["run", "heap"])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--call")
    parser.add_argument("--number", type=int)
    parser.add_argument("--list", action="store_true", help="every status but 0, with what was said")
    options = parser.parse_args()
    if shutil.which("strace") is None:
        print("SKIPPED, NOT TESTED: strace makes calls fail here, and is not installed (apt-get install strace)")
        return SKIPPED
    wrong, runs, kinds, statuses = [], 0, 0, {}
    with tempfile.TemporaryDirectory(prefix="farheap-calls-", dir="/var/tmp") as folder:
        trial = (Run if options.program == "run" else Heap)(options.build, folder)
        for call, error in CALLS:
            if call != options.call if options.call else not (options.full or call in SELECTED):
                continue
            kinds += 1
            for number in [options.number] if options.number else numbers(options.full):
                try:
                    injected, status = trial.try_one(call, error, number)
                except Failure as failure:
                    injected, status = True, "wrong"
                    wrong.append(f"{call} {number} {error}")
                    print(f"FAILED: --call {call} --number {number} ({error}): {failure}", flush=True)
                if not injected:
                    break
                runs += 1
                if options.list and status != 0:
                    print(f"{call} {number} {error}: {status}: {trial.said.strip()[:300]}", flush=True)
                statuses[status] = statuses.get(status, 0) + 1
                if not options.full and number >= 64:
                    break
    print(f"{runs} runs with failures, {kinds} kinds of calls; statuses: {statuses}")
    if runs < kinds:
        print("FAILED: hardly a call failed: is strace allowed to trace here?")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
