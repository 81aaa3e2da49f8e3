#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The allocator beside jemalloc, mimalloc and glibc: every kernel with each of them preloaded, in turns.

  ./dev bench alloc
  ./dev bench alloc --json FILE --runs 9 --only pairs
  ./dev bench alloc --library build/release/src/preload/libfarheap-preload.so

Each run is a process of its own; the allocators take turns within a round, so that a busy machine slows all of them.
Figures are medians over the rounds, with the least and the greatest. The kernels check the objects they free.
"""

import argparse
import glob
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))

# kernel, threads, metric, unit
KERNELS = [
    ("pairs", 1, "ns_per_pair", "ns"),
    ("pairs", 2, "ns_per_pair", "ns"),
    ("fill", 1, "ns_first_fill", "ns"),
    ("fill", 2, "ns_first_fill", "ns"),
    ("remote", 2, "ns_remote_free", "ns"),
    ("overhead", 1, "resident_over_live", "ratio"),
    ("overhead", 2, "resident_over_live", "ratio"),
    ("shrunk", 1, "resident_over_live_shrunk", "ratio"),
    ("shrunk", 2, "resident_over_live_shrunk", "ratio"),
]


def find_library(name, build):
    """The system's, or one that travels with the build folder."""
    found = sorted(glob.glob(f"/usr/lib/*/{name}") + glob.glob(f"/usr/lib/{name}") + glob.glob(f"{build}/lib/{name}"))
    return os.path.abspath(found[0]) if found else None


def subjects(build, library):
    """(name, library to preload or None, extra environment), those that are there."""
    peers = [("jemalloc", "libjemalloc.so.2", "libjemalloc2"), ("mimalloc", "libmimalloc.so.2*", "libmimalloc2.0")]
    farheap = library or os.path.join(build, "bench/alloc/libfarheap_plain_malloc.so")
    if not os.path.isfile(farheap):
        sys.exit(f"alloc: no library {farheap}: build it (ninja -C {build} farheap_plain_malloc), or give --library")
    chosen = [("farheap", os.path.abspath(farheap), {})]
    for name, file, package in peers:
        path = find_library(file, build)
        if path:
            chosen.append((name, path, {}))
        else:
            print(f"alloc: NOT MEASURED: {name} (apt install {package})", file=sys.stderr)
    chosen.append(("glibc", None, {}))
    if not library:
        chosen.append(("farheap-huge-pages", os.path.abspath(farheap), {"FARHEAP_BENCH_HUGE_PAGES": "1"}))
    return chosen


def measure(program, kernel, threads, library, extra, seed):
    return measure_checked(program, kernel, threads, library, extra, seed)[0]


def measure_checked(program, kernel, threads, library, extra, seed):
    """The figure, and how many objects were checked when they were freed."""
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    environment.update(extra)
    if library:
        environment["LD_PRELOAD"] = library
    done = subprocess.run([program, kernel, str(threads), str(seed)], env=environment, capture_output=True, text=True,
                          timeout=600, check=False)
    # The loader only warns about a library that it cannot load, and the figures would be glibc's.
    if done.returncode != 0 or "LD_PRELOAD" in done.stderr:
        sys.exit(f"alloc: {kernel} with {library or 'glibc'} failed ({done.returncode}): {done.stderr.strip()}")
    value, checked = done.stdout.split()
    if int(checked) == 0:
        sys.exit(f"alloc: {kernel} with {library or 'glibc'} checked no object")
    return float(value), int(checked)


def show_progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def run_kernel(program, chosen, kernel, threads, rounds):
    values = {name: [] for name, _, _ in chosen}
    for turn in range(rounds):
        for shift in range(len(chosen)):
            name, library, extra = chosen[(turn + shift) % len(chosen)]
            show_progress(f"{kernel}, {threads} threads, round {turn + 1} of {rounds}: {name}")
            values[name].append(measure(program, kernel, threads, library, extra, turn + 1))
    show_progress("")
    return values


def print_table(metric, threads, unit, values):
    print(f"\n{metric}, {threads} thread{'s' if threads > 1 else ''} ({unit})")
    reference = statistics.median(values["jemalloc"]) if "jemalloc" in values else None
    for name, measured in values.items():
        middle = statistics.median(measured)
        beside = f"   {middle / reference:5.2f} x jemalloc" if reference else ""
        print(f"  {name:20} {middle:10.3f}   [{min(measured):.3f} .. {max(measured):.3f}]{beside}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(REPOSITORY, "build/release"), help="the build folder")
    parser.add_argument("--library", help="measure this library as Farheap (default: the allocator over plain memory)")
    parser.add_argument("--runs", type=int, default=5, help="rounds (default: 5)")
    parser.add_argument("--only", action="append", help="only this kernel (may be repeated)")
    parser.add_argument("--json", metavar="FILE", help="write the figures here")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs: at least 1")
    names = {kernel for kernel, _, _, _ in KERNELS}
    for kernel in options.only or []:
        if kernel not in names:
            parser.error(f"--only: one of {', '.join(sorted(names))}")
    program = os.path.join(options.build, "bench/alloc/alloc_kernels")
    if not os.path.isfile(program):
        sys.exit(f"alloc: no program {program}: build it (ninja -C {options.build} alloc_kernels)")

    chosen = subjects(options.build, options.library)
    results = []
    for kernel, threads, metric, unit in KERNELS:
        if options.only and kernel not in options.only:
            continue
        values = run_kernel(program, chosen, kernel, threads, options.runs)
        print_table(metric, threads, unit, values)
        for name, measured in values.items():
            results.append({"name": f"{name}_{threads}", "metric": metric, "value": statistics.median(measured),
                            "unit": unit, "min": min(measured), "max": max(measured)})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"format": 1, "bench": "alloc", "results": results}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
