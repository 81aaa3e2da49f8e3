# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Looks at the threads of a running program: what they use, and what they wait for (/proc/PID/task, needs root for the
latter); and counts its events with perf, where that is installed. Both take time of their own, so a run that is watched is
not a run that is timed.
"""

import dataclasses
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time

import measured_run

PREPARED = re.compile(rb"prepared after ([0-9.]+) s")
# perf's name of an event -> the metric. Virtual machines often have no counter of instructions.
EVENTS = {"instructions": "instructions_per_miss", "raw_syscalls:sys_enter": "system_calls_per_miss",
          "syscalls:sys_enter_futex": "futex_calls_per_miss", "lock:contention_begin": "kernel_lock_waits_per_miss"}
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
        self.events = {}  # metric -> events a second, of perf

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

    def figures(self, misses, seconds):
        """metric -> value, of so many misses in so many seconds; microseconds are for one miss."""
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
        return found | {metric: rate * seconds / misses for metric, rate in self.events.items()}


class EventCount:
    """perf stat, attached to a process that runs: counts until the process ends."""

    def __init__(self, process):
        self._report = tempfile.NamedTemporaryFile(prefix="perf-")
        self._began = time.monotonic()
        self._perf = subprocess.Popen(["perf", "stat", "-x", ",", "-e", ",".join(EVENTS), "-p", str(process), "-o",
                                       self._report.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @staticmethod
    def available():
        return shutil.which("perf") is not None

    def finish(self):
        """metric -> events a second."""
        seconds = time.monotonic() - self._began
        try:
            self._perf.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._perf.terminate()
            self._perf.wait()
        with self._report:
            return {metric: count / seconds for metric, count in parse_events(_read(self._report.name)).items()}


def parse_events(text):
    """metric -> count, of what perf could count."""
    found = {}
    for line in text.splitlines():
        words = line.split(",")
        if len(words) > 2 and words[2] in EVENTS and words[0].isdigit():
            found[EVENTS[words[2]]] = int(words[0])
    return found


def watched_run(command, watch, timeout, interval=0.02):
    """Runs a benchmark program and watches it from the end of its preparation on. Returns a measured_run.Run without a peak,
    and the events a second that perf counted (empty without perf)."""
    output = {"out": b"", "err": b""}
    prepared = threading.Event()
    events = None

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
                if prepared.is_set() and events is None and EventCount.available():
                    events = EventCount(measured_run.tree_of(process.pid)[-1])
                watch.look(process.pid, prepared.is_set())
                time.sleep(interval)
        finally:
            timed_out = process.poll() is None
            if timed_out:
                process.kill()  # the tool; its program ends with it
            rates = events.finish() if events else {}
        for reader in readers:
            reader.join()
    run = measured_run.Run(time.monotonic() - start, process.returncode, output["out"], output["err"], 0, timed_out)
    return run, rates
