# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A swap file that exists for the time of one benchmark, and is gone afterwards whatever happens.

Needs root. Not thread-safe.
"""

import atexit
import os
import shutil
import subprocess
import sys
import time

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
        return f"there is swap already ({others[0].split()[0]}), which would be measured instead of the file; `swapoff {others[0].split()[0]}` for the time of the run"
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
    """Made and switched on by the constructor; off() undoes all, and is called at exit whatever happens.

    Requires: measured_run.unwind_on_signals(), so that signals come to an exit.
    """

    def __init__(self, folder, size_bytes):
        self.path = os.path.join(folder, f"farheap-bench-swap-{os.getpid()}")
        self._page_cluster = read_page_cluster()
        self._made = False
        self._on = False
        self._owner = os.getpid()
        atexit.register(self.off)
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

    def _switch_off(self):
        """Fails while another limited control group still has pages there: its processes may be on their way out."""
        for attempt in range(20):
            try:
                _run("swapoff", self.path)
                return True
            except OSError as error:
                if attempt == 19:
                    print(f"STILL ON: {error}\n  later: swapoff {self.path} && rm {self.path}", file=sys.stderr)
                time.sleep(0.5)
        return False

    def off(self):
        if os.getpid() != self._owner or not self._made:
            return
        write_page_cluster(self._page_cluster)
        if self._on and not self._switch_off():
            return
        self._on = False
        self._made = False
        os.unlink(self.path)
