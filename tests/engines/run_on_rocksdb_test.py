#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose pages are in RocksDB, in farheap-engines, print what they print without Farheap.

  run_on_rocksdb_test.py FARHEAP     the command of this build; exit status 77 where it cannot page

The process must not be seen by programs that fork, wait for all their children, become daemons and close all
descriptors; it ends with them, and leaves nothing.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

# Far more than the budget, in objects that differ.
GUEST = """
import hashlib, os, sys
DATA = [(str(i).encode() * 2000)[:8000] for i in range(12000)]

def digest():
    whole = hashlib.sha256()
    for one in DATA:
        whole.update(one)
    return whole.hexdigest()

print(digest(), flush=True)
if sys.argv[1] == "forks":
    for child in range(2):
        if os.fork() == 0:
            for i in range(child, len(DATA), 3):
                DATA[i] = DATA[i][::-1]
            print("child", digest(), flush=True)
            os._exit(0)
        os.wait()
    try:
        print(os.wait())
    except ChildProcessError:
        print("no further child")
elif sys.argv[1] == "daemon":
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.dup2(writing, 1)
            os.closerange(3, 5000)
            os.write(1, digest().encode())
        os._exit(0)
    os.close(writing)
    os.wait()
    while told := os.read(reading, 1000):
        print("daemon", told)
elif sys.argv[1] == "closes":
    os.closerange(3, 5000)
print(digest())
"""


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def main():
    farheap = sys.argv[1]
    doctor = subprocess.run([farheap, "run", "--memory", "32M", "--", "true"], capture_output=True, check=False)
    if doctor.returncode != 0:
        print(f"SKIPPED: nothing can be paged here: {doctor.stderr.decode(errors='replace')}", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory(prefix="run-on-rocksdb-", dir=os.getcwd()) as folder:
        for mode in ("plain", "forks", "closes", "daemon"):
            command = [sys.executable, "-c", GUEST, mode]
            run = [farheap, "run", "--memory", "40M", "--store", f"rocksdb:{folder}", "--", *command]
            if output_of(run) != output_of(command):
                sys.exit(f"{mode}: the output is another")
            print(f"{mode}: the same output")
        # The process has heard of the end of the last one, and removes what it had; this test's time-out ends the wait.
        while any(pathlib.Path(folder).iterdir()):
            time.sleep(0.05)
    print("nothing is left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
