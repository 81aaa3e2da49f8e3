# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Swap on a zram device of its own, which exists for the time of one benchmark; and a control group whose limit covers
what is compressed there.

The kernel charges the memory of a zram device to nobody. So a group that swaps to it gets, at each moment, the limit
less what the device uses (`mem_used_total` of mm_stat: compressed pages and what is lost between them): Follower.
Needs root. Not thread-safe.
"""

import atexit
import os
import subprocess
import threading

import swap_area

CONTROL = "/sys/class/zram-control"
LEAST_LIMIT = 4 << 20  # a group gets no less, or what runs in it cannot even end
FOLLOW_SECONDS = 0.02
STEP_BYTES = 256 << 10  # smaller changes of the limit are not made


def unavailable():
    """None, or why there can be no swap on zram."""
    if why := swap_area.no_rights():
        return why
    if not os.path.isdir(CONTROL):
        subprocess.run(["modprobe", "zram"], capture_output=True, check=False)
    return None if os.path.isdir(CONTROL) else "the kernel has no zram (modprobe zram)"


class ZramArea(swap_area.Area):
    """Made by the constructor; off() undoes all, and is called at exit whatever happens."""

    def __init__(self, size_bytes):
        with open(f"{CONTROL}/hot_add", encoding="ascii") as number:
            self._number = int(number.read())
        super().__init__(f"/dev/zram{self._number}")
        self._owner = os.getpid()
        atexit.register(self.off)
        try:
            self._write("disksize", size_bytes)
            swap_area.run_tool("mkswap", self.path)
        except BaseException:
            self.off()
            raise

    def _file(self, name):
        return f"/sys/block/zram{self._number}/{name}"

    def _write(self, name, value):
        with open(self._file(name), "w", encoding="ascii") as out:
            out.write(str(value))

    def algorithm(self):
        """The kernel's own choice, unless somebody made another."""
        with open(self._file("comp_algorithm"), encoding="ascii") as line:
            return line.read().partition("[")[2].partition("]")[0]

    def used_bytes(self):
        with open(self._file("mm_stat"), encoding="ascii") as line:
            return int(line.read().split()[2])

    def off(self):
        if self._number is None or os.getpid() != self._owner or not self.switch_off():
            return
        self._write("reset", 1)
        with open(f"{CONTROL}/hot_remove", "w", encoding="ascii") as out:
            out.write(str(self._number))
        self._number = None


class Follower(threading.Thread):
    """Holds the group's limit at `total_bytes` less what the device uses, until finish(), which says how much that was
    at the most. `group`: has limit(bytes); `used_bytes`: says what the device uses now."""

    def __init__(self, group, used_bytes, total_bytes):
        super().__init__(daemon=True)
        self._group = group
        self._used_bytes = used_bytes
        self._total_bytes = total_bytes
        self._limit_bytes = total_bytes
        self._stop_now = threading.Event()
        self.most_used_bytes = 0

    def follow(self):
        """One look, and another limit if it is due."""
        used = self._used_bytes()
        self.most_used_bytes = max(self.most_used_bytes, used)
        wanted = max(self._total_bytes - used, LEAST_LIMIT)
        if abs(wanted - self._limit_bytes) >= STEP_BYTES and self._group.limit(wanted):
            self._limit_bytes = wanted

    def run(self):
        while not self._stop_now.is_set():
            try:
                self.follow()
            except OSError:
                pass  # the group is gone, or on its way
            self._stop_now.wait(FOLLOW_SECONDS)

    def finish(self):
        self._stop_now.set()
        self.join()
        return self.most_used_bytes
