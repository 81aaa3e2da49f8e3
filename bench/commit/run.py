#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What commits, snapshots and opening of a kept heap cost, beside the disk's own speed with the same bytes.

  ./dev bench commit
  ./dev bench commit --rounds 7 --mib 1024 --folder /mnt/nvme --json commit.json

Each round is a process of its own with a new heap. Figures are medians over the rounds, with the least and the greatest.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
# pylint: disable=wrong-import-position
import report

PERCENTS = ("0.01", "0.1", "1", "10", "100")


def unit_of(metric):
    for end, unit in (("_ns", "ns"), ("_mb_s", "MB/s"), ("_kib_read", "KiB")):
        if metric.endswith(end):
            return unit
    if metric.startswith("pages_"):
        return "pages"
    return "ratio" if "over_" in metric or metric.startswith("space_returned") else "s"


def plot(path, values):
    """Seconds over the share of pages that have changed, both on logarithmic axes. Returns None, or why there is none."""
    if not path.endswith((".svg", ".png")):
        return f"cannot plot to {path}: the name must end in .svg or .png"
    if not shutil.which("gnuplot"):
        return "no plot: gnuplot is not here (apt install gnuplot-nox)"
    terminal = "svg size 900,480 font 'sans,12' background 'white'" if path.endswith(".svg") else "png size 900,480"
    lines = [f"set terminal {terminal}", f"set output '{path}'", "set logscale xy", "set grid",
             "set key left top", "set xlabel 'pages that have changed, %'", "set ylabel 'seconds'"]
    curves = []
    for number, (name, metric, title) in enumerate((("all", "seconds", "commit"), ("disk", "raw_seconds", "the same "
                                                    "bytes in one piece, and fdatasync"))):
        lines.append(f"$data{number} << END")
        for percent in PERCENTS:
            found = values[name, f"{metric}_{percent}pct"]
            lines.append(f"{percent} {statistics.median(found)} {min(found)} {max(found)}")
        lines.append("END")
        curves.append(f"$data{number} using 1:2:3:4 with yerrorlines title '{title}'")
    done = subprocess.run(["gnuplot"], input="\n".join([*lines, "plot " + ", ".join(curves)]), capture_output=True,
                          text=True, check=False)
    return None if done.returncode == 0 else f"gnuplot failed: {done.stderr.strip()}"


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
    parser.add_argument("--minutes", type=float, default=3.5,
                        help="no further round is begun that would end later, but for the first (default: 3.5)")
    parser.add_argument("--plot", metavar="FILE", help="a picture, .svg or .png")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    program = os.path.join(options.build, "bench/commit/commit_bench")
    values = {}
    print(report.machine(options.folder), file=sys.stderr)
    began = time.monotonic()
    for turn in range(options.rounds):
        took = time.monotonic() - began
        if turn > 0 and took * (turn + 1) / turn > options.minutes * 60:
            print(f"commit: {turn} of {options.rounds} rounds: the next one would end after {options.minutes} minutes",
                  file=sys.stderr)
            break
        print(f"round {turn + 1} of {options.rounds}", file=sys.stderr, flush=True)
        for name, metric, value in measure(program, options.folder, options.mib):
            values.setdefault((name, metric), []).append(value)
    results = []
    print(f"{'name':10} {'metric':24} {'median':>12} {'least':>12} {'greatest':>12} unit")
    for (name, metric), found in values.items():
        middle = statistics.median(found)
        print(f"{name:10} {metric:24} {middle:12.6g} {min(found):12.6g} {max(found):12.6g} {unit_of(metric)}")
        results.append(report.result(name, metric, middle, unit_of(metric), min(found), max(found)))
    if options.plot:
        why = plot(options.plot, values)
        if why:
            print(f"commit: {why}", file=sys.stderr)
    if options.json:
        report.write_json(options.json, "commit", results)


if __name__ == "__main__":
    main()
