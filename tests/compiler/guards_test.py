#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Guards fetch what they find away, in the program's own threads, and change nothing else: signals, forks, cancelled
threads and stacks in the heap included.

  guards_test.py TOOL GUEST plain|linux_6_1|checked
"""

import json
import subprocess
import sys
import tempfile


HOWS = {
    "plain": ["--store", "file:{folder}"],
    "linux_6_1": ["--store", "file:{folder}", "--set", "disable=move,wp_async,pagemap_scan"],
    "checked": ["--store", "checksum+compress+file:{folder}"],
}



def forks_of(how):
    """What compresses is no store for programs that fork: such children are ended, with a message."""
    return "0" if how == "checked" else "1"


def run(tool, guest, how, guarded):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        settings = [setting.format(folder=folder) for setting in HOWS[how]]
        done = subprocess.run([tool, "run", "--memory", "48M", "--stats=json", *settings, "--",
                               guest, "96", "1", "1" if guarded else "0", forks_of(how)],
                              capture_output=True, text=True, check=False, timeout=180)
    if done.returncode != 0 or done.stdout != "all is right\n":
        sys.exit(f"FAILED: guarded {guarded}: {done.returncode}: {done.stdout}{done.stderr}")
    return json.loads(done.stderr.strip().splitlines()[-1])


def main():
    tool, guest, how = sys.argv[1:]
    plain = subprocess.run([guest, "96", "1", "1", "1"], capture_output=True, text=True, check=False, timeout=180)
    if plain.returncode != 0 or plain.stdout != "all is right\n":
        sys.exit(f"FAILED without a runtime: {plain.returncode}: {plain.stdout}{plain.stderr}")
    faults = run(tool, guest, how, False)
    guards = run(tool, guest, how, True)
    print(f"{faults['guard_fetches']} of {faults['faults']} faults without, {guards['guard_fetches']} of "
          f"{guards['faults']} with guards")
    # Threads whose stacks lie in the heap fault, and so do first touches.
    if guards["guard_fetches"] < guards["faults"] / 2 or faults["guard_fetches"] != 0:
        sys.exit("FAILED: guards find less than half of the faults, or something was guarded that should not be")
    if guards["peak_bytes"] > guards["budget_bytes"] * 1.1:
        sys.exit(f"FAILED: {guards['peak_bytes']} bytes of a budget of {guards['budget_bytes']}")


if __name__ == "__main__":
    main()
