#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What it costs to know the site of each allocation, on programs that users run, and how often a cheap name is wrong.

  ./dev bench sites                                       # python3, sqlite3, g++; a few minutes
  ./dev bench sites --programs ruby_hash --rounds 5 --json sites.json

The programs are those of ./dev bench programs that allocate with the C library's malloc()."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "common"), os.path.join(HERE, "..", "programs")]
import measured_run  # noqa: E402
import report  # noqa: E402
import subject  # noqa: E402

WAYS = ("plain", "name", "again_4", "again_64", "unwind_4", "unwind_64")


def run_once(library, job, way, folder):
    """Seconds of the run (None for way None: without the library), its digest, and the sums over its processes."""
    environment = dict(job.env or os.environ)
    with tempfile.TemporaryDirectory(dir=folder) as lines:
        if way:
            environment |= {"LD_PRELOAD": library, "SITES_WAY": way, "SITES_FOLDER": lines}
        run = measured_run.measured_run(job.command, stdin=job.stdin, env=environment, cwd=job.cwd or folder,
                                        timeout=600)
        sums = {}
        for name in os.listdir(lines):
            with open(os.path.join(lines, name), encoding="utf-8") as line:
                for key, value in json.load(line).items():
                    sums[key] = sums.get(key, 0) + value
    return run.seconds, subject.digest(job, run), sums


def measure(library, one, rounds, folder):
    """{way: [seconds]}, {way: [sums]}, sums of the check."""
    job = one.prepare(folder)
    seconds, sums = {}, {way: [] for way in WAYS}
    _, expected, _ = run_once(library, job, None, folder)
    ways = [None, *WAYS]
    for number in range(rounds):
        for way in ways[number % len(ways):] + ways[:number % len(ways)]:
            took, digest, counted = run_once(library, job, way, folder)
            if digest != expected:
                sys.exit(f"{one.name}, {way}: another output than without the library")
            seconds.setdefault(way, []).append(took)
            if way:
                if counted.get("without_room"):
                    sys.exit(f"{one.name}, {way}: {counted['without_room']} allocations found no room in the tables")
                sums[way].append(counted)
    _, digest, check = run_once(library, job, "check", folder)
    if digest != expected:
        sys.exit(f"{one.name}, check: another output than without the library")
    if check["without_room"]:
        sys.exit(f"{one.name}, check: {check['without_room']} names found no room in the tables")
    return seconds, sums, check


def nanoseconds(counted):
    """By allocation; and by one whose name is known already."""
    known = counted["allocations"] - counted["new_names"]
    return counted["ns"] / counted["allocations"], (counted["ns"] - counted["new_ns"]) / max(known, 1)


def spread_text(values, form):
    middle, low, high = report.spread(values)
    return f"{middle:{form}} ({low:{form}}-{high:{form}})" if len(values) > 1 else f"{middle:{form}}"


def percent(part, whole):
    return f"{100 * part / max(whole, 1):.3g} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("FARHEAP_BUILD", "build/release"))
    parser.add_argument("--programs", default="python_objects,sqlite_updates,g++_templates")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    measured_run.unwind_on_signals()
    library = os.path.abspath(os.path.join(arguments.build, "bench", "sites", "libfarheap_site_namer.so"))
    if not os.path.exists(library):
        sys.exit(f"{library} is missing: apt install libunwind-dev, and build again")
    known = {one.name: one for one in subject.all_subjects()}
    costs, names, results = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        print(report.machine(folder))
        for name in arguments.programs.split(","):
            if name not in known:
                sys.exit(f"there is no program {name}: {', '.join(known)}")
            if why := known[name].missing():
                print(f"{name} is LEFT OUT: {why}")
                continue
            place = os.path.join(folder, name)
            os.makedirs(place)
            seconds, sums, check = measure(library, known[name], arguments.rounds, place)
            for way in WAYS[1:]:
                both = [nanoseconds(counted) for counted in sums[way]]
                each, again = [one for one, _ in both], [one for _, one in both]
                slower = [mine / plain for mine, plain in zip(seconds[way], seconds["plain"])]
                counted = sums[way][0]
                frames = f"{counted['frames'] / counted['allocations']:.1f}" if way.startswith("unwind") else "-"
                costs.append([name, way, f"{counted['allocations']:,}", frames, spread_text(each, ".1f"),
                              spread_text(again, ".1f"), f"{statistics.median(slower):.2f}"])
                results.append(report.result(name, f"ns_{way}", *report.spread(each)[:1], "ns", min(each), max(each)))
            total = check["allocations"]
            for what, count, other_stack, other_near in (
                    ("return address", "addresses", "address_other_stack", "address_other_near"),
                    ("return address and depth", "names", "name_other_stack", "name_other_near"),
                    ("4 frames, unwound", "near", "near_other_stack", None),
                    ("4 frames, looked at again", "again_near", None, "again_near_other_near"),
                    ("64 frames, looked at again", "again", "again_other_stack", None),
                    ("64 frames, unwound", "stacks", None, None)):
                names.append([name, what, f"{check[count]:,}",
                              percent(check[other_near], total) if other_near else "-",
                              percent(check[other_stack], total) if other_stack else "-"])
                for metric, key in (("other_near", other_near), ("other_stack", other_stack)):
                    if key:
                        results.append(report.result(name, f"{metric}_{count}", check[key] / max(total, 1), ""))
    table = (lambda head, rows: print(report.markdown_table(head, rows) + "\n")) if arguments.markdown else \
        report.print_table
    table(["program", "way", "allocations", "frames", "ns an allocation", "... whose name is known", "x time of counting"],
          costs)
    table(["program", "named by", "names", "other 4 frames than its first", "other stack than its first"], names)
    if arguments.json:
        report.write_json(arguments.json, "sites", results)


if __name__ == "__main__":
    main()
