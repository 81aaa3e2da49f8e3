#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs are killed at random instants, for as long as asked, and everything is looked at after each kill: a program
with a kept heap, a run, and the tool of a run.

  soak.py BUILD --rounds 30
  FARHEAP_SOAK_MINUTES=60 soak.py BUILD --minutes 10        the variable wins

A heap opens at the last commit that returned or the one in flight, every page of it right, and the next program goes on
with it; copies of it are whole. A run leaves no process and no file. What is wrong ends it with status 1.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

WRONG_DATA = 99
PATIENCE_SECONDS = 120


class Soak:
    def __init__(self, build, folder, chance):
        self.tool = os.path.join(build, "tool", "farheap")
        self.guests = os.path.join(build, "tests", "programs")
        self.folder = folder
        self.chance = chance
        self.heap = f"file:{folder}/heap"
        self.kills = self.commits = self.copies = 0

    def start(self, command):
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, start_new_session=True)

    def done(self, command):
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE_SECONDS, check=False)

    def kill_a_writer(self):
        """Killed after some of its commits and a part of the next; the memory of a killed one takes a moment to go."""
        guest = [os.path.join(self.guests, "kept_guest"), self.heap]
        writer = self.start([*guest, "write", "0"])
        said = [writer.stdout.readline() for _ in range(self.chance.randrange(0, 4))]
        time.sleep(self.chance.random() * 0.05)
        writer.kill()
        rest, errors = writer.communicate()
        said = [line for line in [*said, *rest.splitlines()] if line.strip()]
        if writer.returncode != -signal.SIGKILL:
            return f"the writer ended by itself with {writer.returncode}: {said} {errors}"
        self.kills += 1
        self.commits += len(said)
        last = int(said[-1]) if said else self.last
        end = time.monotonic() + PATIENCE_SECONDS
        found = self.done([*guest, "check"])
        while found.returncode == 1 and "open for writing" in found.stderr and time.monotonic() < end:
            time.sleep(0.05)
            found = self.done([*guest, "check"])
        if found.returncode != 0 and last == 0 and found.returncode != WRONG_DATA:
            return None  # it was killed before there was a heap
        if found.returncode != 0 or not last <= int(found.stdout) <= last + 1:
            return f"after step {last} the heap has {found.stdout!r}, status {found.returncode}: {found.stderr}"
        self.last = int(found.stdout)
        return None

    last = 0  # step that the heap is known to have

    def look_at_the_heap(self):
        checked = self.done([self.tool, "heap", "check", self.heap])
        if checked.returncode != 0:
            return f"heap check: {checked.stdout}{checked.stderr}" if self.last else None
        copy = f"{self.folder}/copy"
        copied = self.done([self.tool, "heap", "copy", self.heap, f"file:{copy}"])
        if copied.returncode != 0:
            return f"heap copy: {copied.stderr}"
        found = self.done([os.path.join(self.guests, "kept_guest"), f"file:{copy}", "check"])
        if found.returncode != 0 or int(found.stdout) != self.last:
            return f"the copy of step {self.last} has {found.stdout!r}: {found.stderr}"
        self.copies += 1
        removed = self.done([self.tool, "heap", "rm", f"file:{copy}"])
        return None if removed.returncode == 0 else f"heap rm: {removed.stderr}"

    def kill_a_run(self):
        """The tool, or its program."""
        place = os.path.join(self.folder, "store")
        os.makedirs(place, exist_ok=True)
        run = self.start([self.tool, "run", "--memory", "32M", "--store", f"file:{place}", "--",
                          os.path.join(self.guests, "fault_guest"), "48", "20"])
        time.sleep(self.chance.random() * 0.6)
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(run.pid)], capture_output=True, text=True,
                                  check=False).stdout.split()
        kills_the_tool = self.chance.random() < 0.5 or not children
        if not kills_the_tool:
            try:
                os.kill(int(children[0]), signal.SIGKILL)
            except ProcessLookupError:
                pass
        else:
            run.kill()
        output, errors = run.communicate(timeout=PATIENCE_SECONDS)  # the pipes close when the last of them has ended
        self.kills += 1
        if "WRONG DATA" in output:
            return f"wrong data: {output}"
        expected = (-signal.SIGKILL, 128 + signal.SIGKILL, 0)
        if run.returncode not in expected:
            return f"a killed run ended with {run.returncode}: {output} {errors}"
        left = os.listdir(place)
        return f"it left {left}" if left else None

    def round(self, number):
        wrong = self.kill_a_writer()
        if wrong is None and number % 3 == 0:
            wrong = self.kill_a_run()
        if wrong is None and number % 10 == 9:
            wrong = self.look_at_the_heap()
        return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    minutes = float(os.environ.get("FARHEAP_SOAK_MINUTES", options.minutes)) if options.minutes else 0
    folder = tempfile.mkdtemp(prefix="farheap-soak-", dir="/var/tmp")
    soak = Soak(options.build, folder, random.Random(options.seed))
    end, number = time.monotonic() + minutes * 60, 0
    while number < options.rounds or time.monotonic() < end:
        wrong = soak.round(number)
        if wrong is not None:
            print(f"FAILED: --seed {options.seed}, round {number}: {wrong}\nwhat is left: {folder}")
            return 1
        number += 1
    print(f"{soak.kills} kills, {soak.commits} commits of {soak.last} steps, {soak.copies} copies, all right")
    shutil.rmtree(folder, ignore_errors=True)
    return 0 if soak.commits else 1


if __name__ == "__main__":
    sys.exit(main())
