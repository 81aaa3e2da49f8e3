#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What it gains that a program says in which order it will use its memory (farheap_expect_order()): tiles of 2 MiB in a
shuffled order, at 70 % of the memory.

  ./dev bench order
  ./dev bench order --runs 5 --level 50 --json order.json
  ./dev bench order --quick

Ways, in turns: no limit, and under farheap with nothing said, with the order said once, with each round said as it
begins, and with another order than the program's. Figures are medians over the turns, with the least and the greatest.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
# pylint: disable=wrong-import-position
import farheap_command
import measured_run
import report
from report import MIB

WAYS = {"silent": 0, "said": 1, "each_round": 2, "another": 3}
COUNTERS = ("bytes_read", "bytes_read_ahead", "bytes_written", "faults", "faults_waited", "stall_seconds",
            "touches_expected", "touches_unexpected", "orders_given_up")
UNITS = {"stall_seconds": "s", "bytes_read": "bytes", "bytes_read_ahead": "bytes", "bytes_written": "bytes"}


def program_run(command):
    run = measured_run.measured_run(command, timeout=600, interval=0.1)
    if run.status != 0 or run.timed_out:
        sys.exit(f"order: {' '.join(command)} ended with {run.status}: {run.stderr.decode('utf-8', 'replace')[-400:]}")
    line = json.loads(run.stdout)
    if line["verified"] is False:
        sys.exit(f"order: {' '.join(command)}: the result is wrong")
    return line, run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="build folder (default: $FARHEAP_BUILD or build/release)")
    parser.add_argument("--runs", type=int, help="turns (default: 3; 1 with --quick)")
    parser.add_argument("--level", type=int, default=70, help="budget in percent of the plain peak (default: 70)")
    parser.add_argument("--size", default=None, help="of the data (default: 512M; 128M with --quick)")
    parser.add_argument("--rounds", type=int, default=6, help="default: 6")
    parser.add_argument("--quick", action="store_true", help="small, once")
    parser.add_argument("--folder", default="/var/tmp", help="where the store is (default: /var/tmp)")
    parser.add_argument("--markdown", action="store_true", help="the table as it stands in docs/benchmarks")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    measured_run.unwind_on_signals()
    build = farheap_command.find_build(options.build)
    tool, program = farheap_command.find_tool(build), os.path.join(build, "bench/order/tiles")
    if tool is None or not os.access(program, os.X_OK):
        sys.exit(f"order: no tool, or no bench/order/tiles, in {build}: build the targets farheap and bench_tiles")
    size = options.size or ("128M" if options.quick else "512M")
    command = [program, "--size", size, "--steps", str(options.rounds), "--verify"]
    print(report.machine(options.folder), file=sys.stderr)

    seconds = {way: [] for way in ("plain", *WAYS)}
    counted = {way: {name: [] for name in COUNTERS} for way in WAYS}
    checksum = budget = None
    for turn in range(options.runs or (1 if options.quick else 3)):
        line, run = program_run(command)
        checksum = checksum or line["checksum"]
        budget = budget or run.peak_bytes * options.level // 100
        seconds["plain"].append(line["seconds"])
        ways = list(WAYS)
        for way in ways[turn % len(ways):] + ways[:turn % len(ways)]:
            with tempfile.TemporaryDirectory(prefix="farheap-bench-", dir=options.folder) as store:
                line, run = program_run(farheap_command.run_command(
                    tool, budget, [*command, "--say", str(WAYS[way])], store=f"file:{store}"))
            if line["checksum"] != checksum:
                sys.exit(f"order: {way}: checksum {line['checksum']}, without farheap {checksum}")
            stats = farheap_command.parse_stats(run.stderr)
            seconds[way].append(line["seconds"])
            for name in COUNTERS:
                counted[way][name].append(stats[name])

    results = []
    for way, values in seconds.items():
        results.append(report.result("tiles", f"seconds_{way}", statistics.median(values), "s", min(values), max(values)))
        for name, found in counted.get(way, {}).items():
            results.append(report.result("tiles", f"{name}_{way}", statistics.median(found),
                                         UNITS.get(name, "count"), min(found), max(found)))
    head = ["way", "seconds", "MiB read", "read ahead", "MiB written", "faults", "waited, s", "expected", "not"]
    rows = [["no limit", report.seconds_text(seconds["plain"]), *["-"] * 7]]
    for way in WAYS:
        middle = {name: statistics.median(found) for name, found in counted[way].items()}
        rows.append([way, report.seconds_text(seconds[way]), f"{middle['bytes_read'] / MIB:,.0f}",
                     f"{middle['bytes_read_ahead'] / MIB:,.0f}", f"{middle['bytes_written'] / MIB:,.0f}",
                     f"{middle['faults']:,.0f}", f"{middle['stall_seconds']:.2f}", f"{middle['touches_expected']:,.0f}",
                     f"{middle['touches_unexpected']:,.0f}"])
    print(f"tiles of {size}, {options.rounds} rounds, in {budget / MIB:.0f} MiB", file=sys.stderr)
    print(report.markdown_table(head, rows)) if options.markdown else report.print_table(head, rows)
    if options.json:
        report.write_json(options.json, "order", results, budget_bytes=budget)


if __name__ == "__main__":
    main()
