# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A memory control group (v1 or v2) around one run: limits it, says what it uses, ends it as a whole.

Needs root. `unavailable()` says why there is none here; nothing else may be called then.
Thread-safety: sampling (usage(), beside()) and limit() may run in another thread; everything else belongs to one thread.
"""

import errno
import os
import signal
import time

V1_ROOT = "/sys/fs/cgroup/memory"
V2_ROOT = "/sys/fs/cgroup"
PATIENCE_SECONDS = 60  # a killed program whose memory is in swap or in a store takes a while to go


def _own_path(controller):
    """Where this process is in the hierarchy: v1's memory controller, or v2 (controller '')."""
    with open("/proc/self/cgroup", encoding="ascii") as lines:
        for line in lines:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if controller in controllers.split(",") if controller else controllers == "":
                return path.lstrip("/")
    return None


def _v2_parent():
    """The nearest folder at or above ours that hands the memory controller to its children."""
    path = os.path.join(V2_ROOT, _own_path("") or "")
    while path.startswith(V2_ROOT):
        try:
            with open(os.path.join(path, "cgroup.subtree_control"), encoding="ascii") as control:
                if "memory" in control.read().split():
                    return path
        except OSError:
            pass
        path = os.path.dirname(path)
    return None


def _place():
    """(version, parent folder) or None."""
    if os.path.exists(os.path.join(V1_ROOT, "memory.limit_in_bytes")):
        own = os.path.join(V1_ROOT, _own_path("memory") or "")
        return 1, own if os.path.isdir(own) else V1_ROOT
    parent = _v2_parent()
    return (2, parent) if parent else None


def unavailable():
    """None, or why no group can be made here."""
    if os.geteuid() != 0:
        return "making a memory control group needs root"
    place = _place()
    if place is None:
        return "no memory control group hierarchy is mounted"
    probe = os.path.join(place[1], f"farheap-probe-{os.getpid()}")
    try:
        os.mkdir(probe)
        os.rmdir(probe)
    except OSError as error:
        return f"cannot make a control group below {place[1]}: {error.strerror}"
    return None


class MemoryGroup:
    _count = 0

    def __init__(self, limit_bytes=None):
        self.version, parent = _place()
        MemoryGroup._count += 1
        self.folder = os.path.join(parent, f"farheap-{os.getpid()}-{MemoryGroup._count}")
        os.mkdir(self.folder)
        if limit_bytes is not None:
            self.limit(limit_bytes)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def _file(self, name):
        return os.path.join(self.folder, name)

    def _write(self, name, text):
        with open(self._file(name), "w", encoding="ascii") as out:
            out.write(text)

    def _numbers(self, name):
        with open(self._file(name), encoding="ascii") as lines:
            return {key: int(value) for key, value in (line.split() for line in lines)}

    def joining(self, command):
        """The command, run so that it is in the group from its first instruction on."""
        return ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', self._file("cgroup.procs"), *command]

    def usage(self):
        """Bytes of anonymous and shared memory, in RAM or swapped out: what the program and the runtime made."""
        stat = self._numbers("memory.stat")
        if self.version == 1:
            return stat["total_rss"] + stat.get("total_shmem", 0)
        return stat["anon"] + stat["shmem"]

    def beside(self):
        """Bytes that it is charged for what stands beside that memory and is in use: mapped files, page tables and
        other memory of the kernel. The rest of its page cache is not in it."""
        stat = self._numbers("memory.stat")
        if self.version == 1:
            with open(self._file("memory.kmem.usage_in_bytes"), encoding="ascii") as number:
                return stat["total_mapped_file"] + int(number.read())
        return stat["file_mapped"] + stat.get("kernel", 0)

    def major_faults(self):
        return self._numbers("memory.stat")["total_pgmajfault" if self.version == 1 else "pgmajfault"]

    def limit(self, limit_bytes):
        """Another limit from now on. False where the kernel does not find so much to take out, and keeps the old one
        (version 2 goes on to take it out)."""
        try:
            self._write("memory.limit_in_bytes" if self.version == 1 else "memory.max", str(limit_bytes))
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return False
        return True

    def highest_charge(self):
        """The kernel's own high-water mark; it counts page cache and kernel memory too. None where it has none."""
        name = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
        try:
            with open(self._file(name), encoding="ascii") as number:
                return int(number.read())
        except OSError:
            return None

    def kills(self):
        """How many of its processes the kernel killed for want of memory."""
        return self._numbers("memory.oom_control" if self.version == 1 else "memory.events").get("oom_kill", 0)

    def processes(self):
        with open(self._file("cgroup.procs"), encoding="ascii") as lines:
            return [int(line) for line in lines]

    def remove(self):
        """Kills what is left in it and removes it."""
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            for process in self.processes() if os.path.isdir(self.folder) else []:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                os.rmdir(self.folder)
                return
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                time.sleep(0.01)
        raise RuntimeError(f"control group {self.folder} does not become empty")
