#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program with a kept heap is killed at random instants, as long as asked; each time everything is looked at.

  ./dev bench crash --minutes 5
  ./dev bench crash --kills 1000 --seed 7 --folder /mnt/nvme --json crash.json

Three threads change tables and named objects, one commits, compacts, makes snapshots and removes them. After each kill
the heap has to open at the last commit that returned or the one in flight, with every object as a model says; its books
are checked, a snapshot is compared, and nothing may be left allocated when all objects are destroyed. What is wrong ends
it with status 1, and the heap's file stays.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
# pylint: disable=wrong-import-position
import report


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="the build folder")
    parser.add_argument("--minutes", type=float, default=0, help="as long (default: 1, if there is no --kills)")
    parser.add_argument("--kills", type=int, default=0, help="as many")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="(default: the time)")
    parser.add_argument("--folder", default="/var/tmp", help="for the heap (default: /var/tmp)")
    parser.add_argument("--json", metavar="FILE", help="write the figures here")
    options = parser.parse_args()
    if options.minutes <= 0 and options.kills <= 0:
        options.minutes = 1
    program = os.path.join(options.build, "bench/crash/crash_bench")
    if not os.path.isfile(program):
        sys.exit(f"crash: no program {program}: build it (ninja -C {options.build} crash_bench)")
    place = tempfile.mkdtemp(prefix="crash-", dir=options.folder)
    print(f"{report.machine(options.folder)}; --seed {options.seed}", file=sys.stderr)
    done = subprocess.run([program, place, str(options.seed), str(options.kills), str(options.minutes * 60)],
                          stdout=subprocess.PIPE, text=True, check=False)
    figures = [(metric, int(value)) for metric, value in (line.split() for line in done.stdout.splitlines())]
    report.print_table(["figure", "value"], figures)
    results = [report.result("all", metric, value, "bytes" if metric.endswith("bytes") else "count")
               for metric, value in figures]
    results.append(report.result("all", "wrong", int(done.returncode != 0), "count"))
    if options.json:
        report.write_json(options.json, "crash", results, seed=options.seed)
    if done.returncode != 0:
        sys.exit(f"crash: FAILED with --seed {options.seed} (status {done.returncode}); the heap is in {place}")
    shutil.rmtree(place)
    print("crash: nothing was wrong", file=sys.stderr)


if __name__ == "__main__":
    main()
