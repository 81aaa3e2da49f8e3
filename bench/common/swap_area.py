# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A swap file that exists for the time of one benchmark, and is gone afterwards whatever happens.

Needs root. Not thread-safe.
"""

import atexit
import contextlib
import os
import shutil
import subprocess
import sys
import time

PAGE_CLUSTER = "/proc/sys/vm/page-cluster"


def no_rights():
    """None, or why swap cannot be switched on at all."""
    if os.geteuid() != 0:
        return "switching swap on needs root"
    for tool in ("mkswap", "swapon", "swapoff"):
        if shutil.which(tool, path=_path()) is None:
            return f"{tool} is missing (apt install util-linux mount)"
    return None


def unavailable(folder):
    """None, or why there can be no swap file in that folder."""
    if why := no_rights():
        return why
    with open("/proc/swaps", encoding="ascii") as lines:
        others = lines.read().splitlines()[1:]
    if others:
        return f"there is swap already ({others[0].split()[0]}), which would be measured instead of the file; `swapoff {others[0].split()[0]}` for the time of the run"
    if not os.path.isdir(folder):
        return f"{folder} is no folder"
    return None


def _path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def run_tool(*command):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": _path()}, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def read_page_cluster():
    with open(PAGE_CLUSTER, encoding="ascii") as number:
        return int(number.read())


def write_page_cluster(value):
    with open(PAGE_CLUSTER, "w", encoding="ascii") as number:
        number.write(str(value))


def moved_bytes():
    """What came back from swap since this machine began, and what was written to it. Pages of zeros are not written."""
    with open("/proc/vmstat", encoding="ascii") as lines:
        pages = dict(line.split() for line in lines)
    return tuple(int(pages[name]) * os.sysconf("SC_PAGE_SIZE") for name in ("pswpin", "pswpout"))


class Area:
    """What swap can be switched on at. Requires: measured_run.unwind_on_signals(), so that signals come to an exit."""

    def __init__(self, path):
        self.path = path
        self._on = False

    def switch_on(self, priority=None):
        """With the highest priority of all areas (a number) it is filled before the others."""
        run_tool("swapon", *(() if priority is None else ("-p", str(priority))), self.path)
        self._on = True

    def switch_off(self):
        """False if it stays on: another limited control group still has pages there that cannot come back."""
        for attempt in range(20):  # its processes may be on their way out
            if not self._on:
                return True
            try:
                run_tool("swapoff", self.path)
                self._on = False
            except OSError as error:
                if attempt == 19:
                    print(f"STILL ON: {error}\n  later: swapoff {self.path}{self.afterwards()}", file=sys.stderr)
                time.sleep(0.5)
        return not self._on

    def afterwards(self):
        """What is left to do by hand once it is off."""
        return ""

    @contextlib.contextmanager
    def for_a_run(self, priority):
        self.switch_on(priority)
        try:
            yield self
        finally:
            self.switch_off()


class SwapArea(Area):
    """A file, made and switched on by the constructor (`on`); off() undoes all, and is called at exit whatever
    happens."""

    def __init__(self, folder, size_bytes, on=True):
        super().__init__(os.path.join(folder, f"farheap-bench-swap-{os.getpid()}"))
        self._page_cluster = read_page_cluster()
        self._made = False
        self._owner = os.getpid()
        atexit.register(self.off)
        try:
            self._make(size_bytes)
            if on:
                self.switch_on()
        except BaseException:
            self.off()
            raise

    def _make(self, size_bytes):
        descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        self._made = True
        try:
            # Written, not only reserved: the first write to a reserved block may cost more than the later ones.
            zeros = bytes(1 << 20)
            for _ in range(size_bytes >> 20):
                os.write(descriptor, zeros)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
        run_tool("mkswap", self.path)

    def afterwards(self):
        return f" && rm {self.path}"

    def off(self):
        if os.getpid() != self._owner or not self._made:
            return
        write_page_cluster(self._page_cluster)
        if not self.switch_off():
            return
        self._made = False
        os.unlink(self.path)
