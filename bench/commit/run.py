#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What commits, snapshots and opening of a kept heap cost, beside the disk's own speed with the same bytes.

  ./dev bench commit
  ./dev bench commit --rounds 7 --mib 1024 --folder /mnt/nvme --json commit.json

Each round is a process of its own with a new heap. Figures are medians over the rounds, with the least and the greatest.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile


def unit_of(metric):
    for end, unit in (("_ns", "ns"), ("_mb_s", "MB/s"), ("returned", "ratio"), ("objects", "pages")):
        if metric.endswith(end):
            return unit
    return "ratio" if metric.startswith("over_raw") else "s"


def measure(program, folder, mib):
    with tempfile.TemporaryDirectory(prefix="commit-", dir=folder) as place:
        done = subprocess.run([program, place, str(mib)], capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode != 0:
        sys.exit(f"commit: the round failed ({done.returncode}): {done.stderr.strip()}")
    return [(name, metric, float(value)) for name, metric, value in (line.split() for line in done.stdout.splitlines())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=1024, help="what the heap holds (default: 1024)")
    parser.add_argument("--folder", default="/var/tmp", help="on the disk to be measured (default: /var/tmp)")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    program = os.path.join(options.build, "bench/commit/commit_bench")
    values = {}
    for turn in range(options.rounds):
        print(f"round {turn + 1} of {options.rounds}", file=sys.stderr, flush=True)
        for name, metric, value in measure(program, options.folder, options.mib):
            values.setdefault((name, metric), []).append(value)
    results = []
    print(f"{'name':10} {'metric':24} {'median':>12} {'least':>12} {'greatest':>12} unit")
    for (name, metric), found in values.items():
        middle = statistics.median(found)
        print(f"{name:10} {metric:24} {middle:12.6g} {min(found):12.6g} {max(found):12.6g} {unit_of(metric)}")
        results.append({"name": name, "metric": metric, "value": middle, "unit": unit_of(metric), "min": min(found),
                        "max": max(found)})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"format": 1, "bench": "commit", "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
