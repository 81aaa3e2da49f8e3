# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A swap file that exists for the time of one benchmark, and is gone afterwards whatever happens.

Needs root. Not thread-safe.
"""

import atexit
import os
import shutil
import signal
import subprocess

PAGE_CLUSTER = "/proc/sys/vm/page-cluster"


def unavailable(folder):
    """None, or why there can be no swap file in that folder."""
    if os.geteuid() != 0:
        return "switching swap on needs root"
    for tool in ("mkswap", "swapon", "swapoff"):
        if shutil.which(tool, path=_path()) is None:
            return f"{tool} is missing (apt install util-linux mount)"
    with open("/proc/swaps", encoding="ascii") as lines:
        others = lines.read().splitlines()[1:]
    if others:
        return f"there is swap already ({others[0].split()[0]}): it would be measured instead of the file"
    if not os.path.isdir(folder):
        return f"{folder} is no folder"
    return None


def _path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": _path()}, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def read_page_cluster():
    with open(PAGE_CLUSTER, encoding="ascii") as number:
        return int(number.read())


def write_page_cluster(value):
    with open(PAGE_CLUSTER, "w", encoding="ascii") as number:
        number.write(str(value))


class SwapArea:
    """Made and switched on by the constructor; off() undoes all, also at exit and on SIGINT, SIGTERM, SIGHUP."""

    def __init__(self, folder, size_bytes):
        self.path = os.path.join(folder, f"farheap-bench-swap-{os.getpid()}")
        self._page_cluster = read_page_cluster()
        self._made = False
        self._on = False
        self._owner = os.getpid()
        atexit.register(self.off)
        self._old_handlers = {number: signal.signal(number, self._on_signal)
                              for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            self._make(size_bytes)
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
        _run("mkswap", self.path)
        _run("swapon", self.path)
        self._on = True

    def _on_signal(self, number, _frame):
        raise SystemExit(128 + number)  # unwinds through every `finally`, then atexit

    def off(self):
        if os.getpid() != self._owner:
            return
        if self._on:
            self._on = False
            _run("swapoff", self.path)
        if self._made:
            self._made = False
            os.unlink(self.path)
            write_page_cluster(self._page_cluster)
            for number, handler in self._old_handlers.items():
                signal.signal(number, handler)
