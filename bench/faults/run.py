#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What page faults cost on this machine, and how many of them its kernel serves a second, without any of Farheap's pager.

  ./dev bench faults
  ./dev bench faults --json FILE --rounds 5 --seconds 3
  ./dev bench faults --only pager --row 16/8/8/2 --row 16/8/1/2 --flag wait=epoll
  ./dev bench faults --only prices --beside 0,3

pager   threads touch pages at random, handlers fill the missing ones in by UFFDIO_COPY, evictors drop the oldest. A row is
        THREADS/HANDLERS/USERFAULTFDS/EVICTORS; --flag NAME=VALUE goes to the program (its --help lists them)
refill  threads touch pages of a file in memory while one more takes them out of the page tables: the kernel alone
prices  single operations in microseconds, alone and with threads beside that read

Every figure is the median over the rounds, with the least and the greatest. All rows take turns within a round, and each is
a process of its own, which checks what it reads.
"""

import argparse
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
# pylint: disable=wrong-import-position
import farheap_command
import report

ROWS = ("1/1/1/1", "4/4/1/1", "4/4/4/1", "16/4/1/1", "16/8/1/2", "16/8/8/2", "16/16/16/4")
REFILL_THREADS = (1, 4, 15)
PARTS = ("pager", "refill", "prices")
PAGER_COLUMNS = ("misses_per_second", "touches_per_second", "switches_per_miss", "toucher_cpu_us_per_miss",
                 "handler_cpu_us_per_miss", "evictor_cpu_us_per_miss", "waits_for_room_per_miss", "resident_share")
UNITS = {"misses_per_second": "misses/s", "touches_per_second": "touches/s", "refills_per_second": "pages/s",
         "switches_per_miss": "switches", "waits_for_room_per_miss": "waits", "resident_share": "ratio"}


def unit_of(metric):
    return UNITS.get(metric, "us")


def row_flags(row):
    """The flags of THREADS/HANDLERS/USERFAULTFDS/EVICTORS. Raises ValueError."""
    numbers = row.split("/")
    if len(numbers) != 4 or not all(number.isdigit() and int(number) > 0 for number in numbers):
        raise ValueError(f"'{row}' is not THREADS/HANDLERS/USERFAULTFDS/EVICTORS, such as 16/8/8/2")
    names = ("threads", "handlers", "userfaultfds", "evictors")
    return [word for name, number in zip(names, numbers) for word in (f"--{name}", number)]


def pager_flags(flags):
    """--flag NAME=VALUE as the program wants it. Raises ValueError."""
    if any("=" not in flag for flag in flags):
        raise ValueError("--flag wants NAME=VALUE, such as wait=epoll")
    return [word for flag in flags for word in ("--" + flag.split("=", 1)[0], flag.split("=", 1)[1])]


def commands(options):
    """All that is run once in a round, in order."""
    size = ["--size", options.size]
    seconds = ["--seconds", str(options.seconds)]
    found = []
    if "pager" in options.only:
        found += [["pager", *row_flags(row), *size, *seconds, *pager_flags(options.flag)] for row in options.row]
    if "refill" in options.only:
        found += [["refill", "--mapping", mapping, "--threads", str(threads), *size, *seconds]
                  for mapping in ("shared", "private") for threads in options.refill_threads]
    if "prices" in options.only:
        found += [["prices", "--beside", str(beside)] for beside in options.beside]
    return found


def run_once(program, words, turn, values):
    """Adds to values: (name, metric) -> figures."""
    done = subprocess.run([program, *words, "--seed", str(turn + 1)], capture_output=True, text=True, timeout=300,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"faults: {' '.join(words)} failed ({done.returncode}): {done.stderr.strip()}")
    if turn == 0 and done.stderr:
        farheap_command.complain(done.stderr.strip())
    for line in done.stdout.splitlines():
        name, metric, value = line.split()
        values.setdefault((name, metric), []).append(float(value))


def text(values):
    if not values:
        return "-"
    middle, low, high = report.spread(values)
    digits = ",.0f" if high >= 1000 else ".3g"
    return f"{middle:{digits}}" + (f" ({low:{digits}}-{high:{digits}})" if len(values) > 1 else "")


def names_with(values, metric):
    return list(dict.fromkeys(name for name, other in values if other == metric))


def tables(options, values):
    """(title, head, rows) of what was measured."""
    found = []
    if "pager" in options.only:
        rows = [[name.replace("_", " / ")] + [text(values.get((name, metric))) for metric in PAGER_COLUMNS]
                for name in names_with(values, "misses_per_second")]
        head = ["threads / handlers / userfaultfds / evictors", "misses a second", "touches a second", "switches a miss",
                "CPU us a miss: threads", "handlers", "evictors", "waits for room a miss", "share resident"]
        found.append(("A bare pager", head, rows))
    if "refill" in options.only:
        rows = [[name.replace("_", ", "), text(values[name, "touches_per_second"]),
                 text(values[name, "refills_per_second"])] for name in names_with(values, "refills_per_second")]
        found.append(("What the kernel refills by itself", ["mapping, threads", "touches a second", "refills a second"],
                      rows))
    if "prices" in options.only:
        metrics = ["us" if beside == 0 else f"us_beside_{beside}" for beside in options.beside]
        names = list(dict.fromkeys(name for name, metric in values if metric in metrics))
        rows = [[name] + [text(values.get((name, metric))) for metric in metrics] for name in names]
        head = ["microseconds"] + ["alone" if beside == 0 else f"{beside} threads beside" for beside in options.beside]
        found.append(("Prices", head, rows))
    return found


def numbers(words):
    return [int(word) for word in words.split(",")]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="the build folder (default: build/release)")
    parser.add_argument("--only", type=lambda words: words.split(","), default=list(PARTS),
                        help=f"parts, of {','.join(PARTS)}")
    parser.add_argument("--row", action="append", help=f"of the pager; may be repeated (default: {' '.join(ROWS)})")
    parser.add_argument("--flag", action="append", default=[], metavar="NAME=VALUE", help="for the pager")
    parser.add_argument("--refill-threads", type=numbers, default=list(REFILL_THREADS), metavar="N,N,...")
    parser.add_argument("--beside", type=numbers, default=[0, max(1, (os.cpu_count() or 2) - 1)], metavar="N,N,...",
                        help="threads beside the prices (default: none, and one less than there are processors)")
    parser.add_argument("--size", default="1G", help="of the memory that is touched (default: 1G)")
    parser.add_argument("--seconds", type=float, default=2, help="of one measurement (default: 2)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--markdown", action="store_true", help="tables for a page of docs/benchmarks")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    options.row = options.row or list(ROWS)
    unknown = set(options.only) - set(PARTS)
    if unknown:
        parser.error(f"--only: no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    try:
        commands(options)
    except ValueError as error:
        parser.error(str(error))
    return options


def main():
    options = parse()
    program = os.path.join(farheap_command.find_build(options.build), "bench/faults/faults")
    if not os.path.isfile(program):
        sys.exit(f"faults: no program {program}: build it (./dev build release)")
    print(report.machine("/dev/shm").split(", store")[0], file=sys.stderr)
    values = {}
    for turn in range(options.rounds):
        for words in commands(options):
            print(f"round {turn + 1} of {options.rounds}: {' '.join(words)}", file=sys.stderr, flush=True)
            run_once(program, words, turn, values)
    for title, head, rows in tables(options, values):
        print(f"\n**{title}**\n\n{report.markdown_table(head, rows)}" if options.markdown else f"\n{title}")
        if not options.markdown:
            report.print_table(head, rows)
    if options.json:
        results = [report.result(name, metric, report.spread(found)[0], unit_of(metric), *report.spread(found)[1:])
                   for (name, metric), found in values.items()]
        report.write_json(options.json, "faults", results, machine=report.machine("/dev/shm").split(", store")[0])


if __name__ == "__main__":
    main()
