#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""After `farheap run` nothing of the program is left on a server, however it ended.

  leaves_nothing_test.py TOOL URI
"""

import subprocess
import sys

PROGRAM = """
import os, signal, sys
pages = [bytearray(b"%d" % i * 100_000) for i in range(300)]
if sys.argv[1] == "forks" and os.fork() == 0:
    pages[0][0] = 1
    os._exit(0)
if sys.argv[1] == "is killed":
    os.kill(os.getpid(), signal.SIGKILL)
print(sum(len(page) for page in pages))
"""


def main():
    tool, uri = sys.argv[1:3]
    faults = 0
    for end in ("ends", "forks", "is killed"):
        done = subprocess.run([tool, "run", "--memory", "32M", "--store", uri, "--", sys.executable, "-c", PROGRAM, end],
                              capture_output=True, text=True, check=False)
        if "written" not in done.stderr:
            print(f"{end}: it wrote nothing to the store, so this proves nothing:\n{done.stderr}")
            faults += 1
        left = subprocess.run([tool, "store", "ls", uri], capture_output=True, text=True, check=False)
        if left.returncode != 0 or left.stdout.strip():
            print(f"a program that {end}: left there: {left.stdout}{left.stderr}")
            faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
