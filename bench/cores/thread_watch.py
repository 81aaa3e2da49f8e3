# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Looks at the threads of a running program: what they use, and what they wait for (/proc/PID/task, needs root for the
latter). A look takes time of its own, so a run that is watched is not a run that is timed.
"""

import dataclasses
import os
import re
import subprocess
import threading
import time

import measured_run

PREPARED = re.compile(rb"prepared after ([0-9.]+) s")
_FUTEX = "202"  # x86-64
_FUTEX_WAIT_PRIVATE = 0x80
_LOCKED_AND_WAITED_FOR = 2  # what the C library's mutexes wait for; condition variables use another operation


@dataclasses.dataclass
class Thread:
    first: tuple = None  # nanoseconds on a processor, nanoseconds waiting for one, switches
    last: tuple = None
    locked_out: int = 0  # looks that found it waiting for a mutex
    faulted: bool = False  # it was seen waiting for a page: one of the program's own

    def used(self, which):
        return self.last[which] - self.first[which] if self.first else 0


def _read(path):
    with open(path, encoding="ascii", errors="replace") as lines:
        return lines.read()


def waits_for_mutex(call):
    """`call`: what /proc/PID/task/TID/syscall says."""
    words = call.split()
    return (len(words) > 3 and words[0] == _FUTEX and int(words[2], 16) == _FUTEX_WAIT_PRIVATE
            and int(words[3], 16) == _LOCKED_AND_WAITED_FOR)


class ThreadWatch:
    """Not thread-safe."""

    def __init__(self):
        self.threads = {}
        self.looks = 0
        self.sees_waits = True
        self._since = None
        self.seconds = 0.0

    def look(self, process, counts):
        """At all threads of the process tree; `counts`: whether what is measured has begun."""
        if counts:
            self._since = self._since or time.monotonic()
            self.seconds = time.monotonic() - self._since
            self.looks += 1
        for member in measured_run.tree_of(process):
            try:
                names = os.listdir(f"/proc/{member}/task")
            except OSError:
                continue
            for name in names:
                self._look_at(f"/proc/{member}/task/{name}", counts)

    def _look_at(self, folder, counts):
        thread = self.threads.setdefault(folder, Thread())
        try:
            words = _read(folder + "/schedstat").split()
            switches = sum(int(line.split()[1]) for line in _read(folder + "/status").splitlines() if "ctxt" in line)
            thread.last = (int(words[0]), int(words[1]), switches)
            if not counts:
                return
            thread.first = thread.first or thread.last
            thread.faulted = thread.faulted or _read(folder + "/wchan").startswith("handle_userfault")
            thread.locked_out += waits_for_mutex(_read(folder + "/syscall"))
        except PermissionError:
            self.sees_waits = False
        except (OSError, IndexError):
            pass  # it ended meanwhile

    def figures(self, misses):
        """name -> value; microseconds are for one miss."""
        if self.looks < 3 or misses == 0:
            return {}
        all_threads = [thread for thread in self.threads.values() if thread.first]
        runtime = [thread for thread in all_threads if not thread.faulted]
        micro = 1e-3 / misses
        found = {"program_cpu_us_per_miss": sum(thread.used(0) for thread in all_threads if thread.faulted) * micro,
                 "runtime_cpu_us_per_miss": sum(thread.used(0) for thread in runtime) * micro,
                 "wait_for_processor_us_per_miss": sum(thread.used(1) for thread in all_threads) * micro,
                 "switches_per_miss": sum(thread.used(2) for thread in all_threads) / misses,
                 "busiest_runtime_thread": max((thread.used(0) for thread in runtime), default=0) / self.seconds / 1e9,
                 "runtime_threads": sum(thread.used(0) > 0 for thread in runtime)}
        if self.sees_waits:
            share = sum(thread.locked_out for thread in all_threads) / self.looks
            found["wait_for_locks_us_per_miss"] = share * self.seconds * 1e6 / misses
        return found


def watched_run(command, watch, timeout, interval=0.02):
    """Runs a benchmark program and watches it from the end of its preparation on. A measured_run.Run without a peak."""
    output = {"out": b"", "err": b""}
    prepared = threading.Event()

    def drain(name, pipe):
        for line in pipe:
            output[name] += line
            if name == "err" and PREPARED.search(line):
                prepared.set()

    start = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          start_new_session=True) as process:
        readers = [threading.Thread(target=drain, args=pair, daemon=True)
                   for pair in (("out", process.stdout), ("err", process.stderr))]
        for reader in readers:
            reader.start()
        try:
            while process.poll() is None and time.monotonic() - start < timeout:
                watch.look(process.pid, prepared.is_set())
                time.sleep(interval)
        finally:
            timed_out = process.poll() is None
            if timed_out:
                process.kill()  # the tool; its program ends with it
        for reader in readers:
            reader.join()
    return measured_run.Run(time.monotonic() - start, process.returncode, output["out"], output["err"], 0, timed_out)
