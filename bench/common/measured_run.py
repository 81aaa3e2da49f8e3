# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs one command and says what it took: seconds, exit status, output, peak memory of its whole process tree.

Memory is anonymous memory. It is sampled from outside: from a control group where one is given, otherwise by
summing (resident - shared) over the process tree, which is exact to a few hundred KiB on Linux.
Thread-safety: runs may go on in several threads, each with its own group.
"""

import dataclasses
import os
import signal
import subprocess
import threading
import time

SAMPLE_SECONDS = 0.003  # no peak is missed; looking so often takes some of the time of what it looks at
LAST_WORDS_SECONDS = 20  # a program short of memory takes a while to go
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclasses.dataclass
class Run:
    seconds: float
    status: int  # as the shell shows it: 128 + signal for a killed program
    stdout: bytes
    stderr: bytes
    peak_bytes: int
    timed_out: bool
    kills: int = 0  # by the kernel, for want of memory; known with a group only
    charged_bytes: int | None = None  # the most that the group was charged, page cache and kernel memory included
    left_behind: int = 0  # processes of the tree that were still there after the end

    @property
    def complete(self):
        return not self.timed_out and self.kills == 0


def unwind_on_signals():
    """SIGINT, SIGTERM and SIGHUP end the script through every `finally`, so that no run outlives it."""
    def unwind(number, _frame):
        raise SystemExit(128 + number)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, unwind)


def children_of(process):
    found = []
    try:
        for thread in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{thread}/children", encoding="ascii") as line:
                found += [int(word) for word in line.read().split()]
    except OSError:
        pass  # it ended meanwhile
    return found


def tree_of(process):
    tree = [process]
    for member in tree:
        tree += children_of(member)
    return tree


def tree_bytes(process):
    """Anonymous resident memory of a process and all its descendants."""
    total = 0
    for member in tree_of(process):
        try:
            with open(f"/proc/{member}/statm", encoding="ascii") as line:
                words = line.read().split()
            total += (int(words[1]) - int(words[2])) * _PAGE
        except (OSError, IndexError):
            pass
    return total


class _Sampler(threading.Thread):
    def __init__(self, sample, interval):
        super().__init__(daemon=True)
        self._sample = sample
        self._interval = interval
        self._stop_now = threading.Event()
        self.peak = 0

    def run(self):
        while not self._stop_now.is_set():
            try:
                self.peak = max(self.peak, self._sample())
            except OSError:
                pass
            self._stop_now.wait(self._interval)

    def finish(self):
        self._stop_now.set()
        self.join()
        return self.peak


def _session_members(session):
    members = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as line:
                    fields = line.read().rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] != "Z":
                    members.append(int(name))
            except (OSError, IndexError):
                pass
    return members


def _kill_session(session):
    members = _session_members(session)
    for member in members:
        try:
            os.kill(member, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return len(members)


def _let_it_end(process):
    """Asks the process to end, and gives it a little while; what it started lives on."""
    process.terminate()
    try:
        process.wait(LAST_WORDS_SECONDS)
    except subprocess.TimeoutExpired:
        pass


def measured_run(command, *, group=None, stdin=None, stdout=None, env=None, cwd=None, timeout=None,
                 interval=SAMPLE_SECONDS, last_words=False):
    """Memory is looked at every `interval` seconds. `stdin` and `stdout` are paths; without `stdout` the output is kept
    in memory of the caller. `last_words`: at the time-out the command itself may say how far it came, before all of it
    is killed."""
    full = group.joining(command) if group else list(command)
    source = open(stdin, "rb") if stdin else subprocess.DEVNULL
    target = open(stdout, "wb") if stdout else subprocess.PIPE
    timed_out = False
    try:
        start = time.monotonic()
        process = subprocess.Popen(full, stdin=source, stdout=target, stderr=subprocess.PIPE, env=env, cwd=cwd,
                                   start_new_session=True)
        sampler = _Sampler(group.usage if group else lambda: tree_bytes(process.pid), interval)
        sampler.start()
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            if last_words:
                _let_it_end(process)
            _kill_session(process.pid)
            output, errors = process.communicate()
        except BaseException:
            _kill_session(process.pid)
            raise
        finally:
            peak = sampler.finish()
        seconds = time.monotonic() - start
    finally:
        for file in (source, target):
            if hasattr(file, "close"):
                file.close()
    left = _kill_session(process.pid)
    status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return Run(seconds, status, output or b"", errors or b"", peak, timed_out,
               kills=group.kills() if group else 0, charged_bytes=group.highest_charge() if group else None,
               left_behind=left)
