#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A forked child that turns against its parent, with nothing but the descriptors that it inherited.

A program larger than its memory forks. The child becomes another user (or stays the same one, as in a sandbox that opens
no files), looks through all its descriptors for what the parent writes after the fork, and overwrites every page that it
can. It must read none of it, and the parent must find all of its pages as they were. Before that both change what they
have in common, and each sees its own. What the two have open together is nothing that reaches into the other's memory.
"""

import argparse
import ctypes
import json
import mmap
import os
import signal
import stat
import subprocess
import sys

PAGE = 4096
PAGES = 9 * 1024  # 36 MiB, twice, in 32
CHUNK = 256
NOBODY = 65534
KCMP = 312
# Of each kind of descriptor that leads into the parent's memory or store, a name.
REACHING = ("anon_inode:[userfaultfd]", "anon_inode:[io_uring]", "/pagemap", "/statm", "socket:")


def page_of(mark, number):
    return mark + number.to_bytes(8, "little") + bytes(PAGE - len(mark) - 8)


def fill(pages, mark, numbers):
    for number in numbers:
        pages[number * PAGE:(number + 1) * PAGE] = page_of(mark, number)


def wrong(pages, mark_of):
    view = memoryview(pages)
    return sum(view[n * PAGE:(n + 1) * PAGE] != page_of(mark_of(n), n) for n in range(len(pages) // PAGE))


def data_runs(file):
    at = 0
    while True:
        try:
            begin = os.lseek(file, at, os.SEEK_DATA)
            at = os.lseek(file, begin, os.SEEK_HOLE)
        except OSError:
            return
        for first in range(begin // PAGE * PAGE, at, CHUNK * PAGE):
            yield first, min(CHUNK * PAGE, (at - first + PAGE - 1) // PAGE * PAGE)


def files_of_this_process():
    files = []
    for name in os.listdir("/proc/self/fd"):
        try:
            status = os.fstat(int(name))
            files.append([status.st_dev, status.st_ino])
        except OSError:
            pass
    return files


def stores(parents, may_open):
    """The descriptors of the parent's files that have bytes, and those that can be opened through them."""
    for name in os.listdir("/proc/self/fd"):
        file = int(name)
        try:
            link, status = os.readlink(f"/proc/self/fd/{file}"), os.fstat(file)
        except OSError:
            continue
        if file < 3 or not stat.S_ISREG(status.st_mode) or "farheap-run" in link or status.st_size < PAGE * CHUNK:
            continue
        if [status.st_dev, status.st_ino] not in parents:
            continue
        yield file
        for how in (os.O_RDWR, os.O_RDONLY) if may_open else ():
            try:
                yield os.open(f"/proc/self/fd/{file}", how)
            except OSError:
                pass


def attack(mark, parents, may_open):
    """Counts the pages of the parent that were read, and those that were written to.

    What is known for one of the parent's is forged; all else, such as Python's own objects, is written as it is.
    """
    room = mmap.mmap(-1, CHUNK * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    read = written = files = 0
    for file in stores(parents, may_open):
        files += 1
        for offset, size in data_runs(file):
            try:
                os.preadv(file, [memoryview(room)[:size]], offset)
                for at in range(0, size, PAGE):
                    read += mark in room[at:at + PAGE]
                    if room[at:at + 3] == b"OLD" or mark in room[at:at + PAGE]:
                        room[at:at + PAGE] = page_of(b"FORGED", at)
                written += os.pwritev(file, [memoryview(room)[:size]], offset) // PAGE
            except OSError:
                pass
    return {"files": files, "read": read, "written": written}


def child(how, old, ask, answer):
    # Its own writes first: they must not be what it finds when it looks for what it may not see.
    fill(old, b"CHILD", range(0, PAGES, 3))
    if wrong(old, lambda n: b"CHILD" if n % 3 == 0 else b"OLD"):
        return {"error": "the child has wrong bytes"}
    if how == "user":
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        fill(old, b"LATER", range(1, PAGES, 3))  # the child goes on, with what it may still open
    os.write(answer, b"+")
    message = os.read(ask, 65536)
    found = attack(message[:16], json.loads(message[16:]), how == "user")
    names = {0: b"CHILD", 1: b"LATER" if how == "user" else b"OLD", 2: b"OLD"}
    found["own_wrong"] = wrong(old, lambda n: names[n % 3])
    return found


def shared_with(pid):
    """What this process and the child have open together: the same open file description."""
    libc = ctypes.CDLL(None, use_errno=True)
    shared = []
    for name in os.listdir("/proc/self/fd"):
        file = int(name)
        if file < 3 or not os.path.lexists(f"/proc/self/fd/{file}"):
            continue
        if libc.syscall(KCMP, os.getpid(), pid, 0, ctypes.c_ulong(file), ctypes.c_ulong(file)) != 0:
            continue
        with open(f"/proc/self/fdinfo/{file}", encoding="ascii") as info:
            flags = int(next(line for line in info if line.startswith("flags")).split()[1], 8)
        shared.append((os.readlink(f"/proc/self/fd/{file}"), flags & os.O_ACCMODE))
    return shared


def guest(how):
    old = bytearray(PAGES * PAGE)
    fill(old, b"OLD", range(PAGES))
    ask, answer = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ask[1])
        found = child(how, old, ask[0], answer[1])
        os.write(answer[1], json.dumps(found).encode())
        os._exit(0)
    os.close(answer[1])
    mark = os.urandom(16)
    secret = bytearray(PAGES * PAGE)
    fill(secret, mark, range(PAGES))
    fill(old, b"PARENT", range(0, PAGES, 5))
    os.read(answer[0], 1)
    shared = shared_with(pid)
    os.write(ask[1], mark + json.dumps(files_of_this_process()).encode())
    found = b""
    while part := os.read(answer[0], 65536):
        found += part
    os.waitpid(pid, 0)
    report = json.loads(found or b'{"error": "the child has ended"}')
    report["accepted"] = wrong(secret, lambda n: mark) + wrong(old, lambda n: b"PARENT" if n % 5 == 0 else b"OLD")
    report["shared"] = shared
    print(json.dumps(report))


def run(tool, how, store, folder):
    """What is wrong with one run, in words."""
    try:
        done = subprocess.run([tool, "run", "--memory", "32M", "--store", f"{store}{folder}", "--", sys.executable,
                               __file__, "--guest", how], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return ["the child has made the program hang"]
    if done.returncode != 0:
        return [f"ended with {done.returncode}: {done.stderr.decode()[-2000:]}"]
    report = json.loads(done.stdout)
    print(f"{store} {how}: { {name: report[name] for name in report if name != 'shared'} }")
    faults = [report["error"]] if "error" in report else []
    if report.get("files", 0) == 0:
        faults.append("the child found no descriptor of the store: nothing was tried")
    for name, meaning in (("read", "secrets were read"), ("written", "pages were written to by the child"),
                          ("accepted", "pages of the parent were not as it wrote them"),
                          ("own_wrong", "pages of the child were not as it wrote them")):
        if report.get(name, 0):
            faults.append(f"{report[name]} {meaning}")
    for link, mode in report["shared"]:
        if any(reaching in link for reaching in REACHING) or ("deleted" in link and "memfd" not in link and mode != 0):
            faults.append(f"parent and child both have {link} open, with mode {mode}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool")
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--guest")
    arguments = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if arguments.guest:
        return guest(arguments.guest)
    ways = ["user", "sandbox"] if os.geteuid() == 0 else ["sandbox"]
    if len(ways) == 1:
        print("NOT TESTED: a child that becomes another user: only root can")
    failed = False
    for store in ("file:", "encrypt+file:"):
        for how in ways:
            for fault in run(arguments.tool, how, store, arguments.folder):
                failed = True
                print(f"FAILED: {store} with a child as '{how}': {fault}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
