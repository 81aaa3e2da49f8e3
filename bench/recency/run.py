#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which way to learn of use pays, for one program: records every use of its pages (in windows), and replays it.

  ./dev bench recency -- zstd -12 --long=27 -c big.txt
  ./dev bench recency --shares 90,70,50 --window-us 20000 --json recency.json -- lua5.4 table.lua

Needs Linux 6.7, root (or vm.unprivileged_userfaultfd=1) and libjemalloc2. The program must allocate with malloc and must
not fork."""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
import report  # noqa: E402

# Microseconds: docs/benchmarks/cores.md has the prices, on two processors; a miss is one of a disk with 38 us a read.
PRICE = {"misses": 65.0, "rescues": 15.0, "refills": 1.4}


def price_seconds(line, prices):
    return sum(line[what] * us for what, us in prices.items()) / 1e6


def replay(program, trace, shares):
    output = subprocess.run([program, trace, *map(str, shares)], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def print_table(lines, prices):
    print("| memory | policy | misses | over LRU | rescues | refilled by the kernel | seconds for them |")
    print("|---|---|---|---|---|---|---|")
    lru = {line["share"]: line["misses"] for line in lines if line["policy"] == "lru"}
    for line in lines:
        ratio = line["misses"] / max(lru[line["share"]], 1)
        priced = "-" if line["policy"] in ("lru", "optimum") else f"{price_seconds(line, prices):.2f}"
        print(f"| {line['share']} % | {line['policy']} | {line['misses']:,} | {ratio:.2f} | {line['rescues']:,} | "
              f"{line['refills']:,} | {priced} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("FARHEAP_BUILD", "build/release"))
    parser.add_argument("--shares", default="70", help="memory, per cent of the pages that are in use at once")
    parser.add_argument("--window-us", type=int, default=5000)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--trace", metavar="FILE", help="keep the trace here; without a COMMAND, replay this one")
    parser.add_argument("--miss-us", type=float, default=PRICE["misses"])
    parser.add_argument("--rescue-us", type=float, default=PRICE["rescues"])
    parser.add_argument("command", nargs="*", metavar="COMMAND")
    arguments = parser.parse_args()
    folder = os.path.abspath(os.path.join(arguments.build, "bench", "recency"))
    shares = [int(share) for share in arguments.shares.split(",")]
    prices = {**PRICE, "misses": arguments.miss_us, "rescues": arguments.rescue_us}
    with tempfile.TemporaryDirectory() as scratch:
        trace = arguments.trace or os.path.join(scratch, "uses.trace")
        if arguments.command:
            jemalloc = glob.glob("/usr/lib/*/libjemalloc.so.2")
            if not jemalloc:
                sys.exit("libjemalloc.so.2 is missing: apt install libjemalloc2")
            preload = f"{os.path.join(folder, 'libfarheap_use_recorder.so')} {jemalloc[0]}"
            done = subprocess.run(arguments.command, stdout=subprocess.DEVNULL, check=False, env={
                **os.environ, "LD_PRELOAD": preload, "MALLOC_CONF": "retain:false", "RECENCY_TRACE": trace,
                "RECENCY_WINDOW_US": str(arguments.window_us)})
            if done.returncode != 0:
                sys.exit(f"{arguments.command[0]} ended with status {done.returncode}: nothing is replayed")
        elif not arguments.trace:
            parser.error("which program? COMMAND, or --trace FILE of an earlier one")
        lines = replay(os.path.join(folder, "replay_uses"), trace, shares)
    print(f"{lines[0]['pages'] / 256:.1f} MiB in use at once; {lines[0]['uses']:,} uses in {lines[0]['windows']:,} windows\n")
    print_table(lines, prices)
    if arguments.json:
        name = os.path.basename(arguments.command[0] if arguments.command else arguments.trace)
        report.write_json(arguments.json, "recency", [
            report.result(f"{name}_{line['policy'].replace(' ', '_')}", f"{what}_{line['share']}", line[what], "")
            for line in lines for what in ("misses", "rescues", "refills")])


if __name__ == "__main__":
    main()
