#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The main job, shown: an unmodified python3 program with no limit, under kernel swap, and under farheap.

  demo.py [--build DIR] [--packages N] [--percent 40] [--folder /var/tmp]
"""

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "common"))
# pylint: disable=wrong-import-position
import farheap_command
import measured_run
import memory_group
import packages
import report
import swap_area
from report import MIB

SLACK_BYTES = 4 * MIB  # what a control group charges besides the heap
SWAP_BYTES = 1024 * MIB
SWAP_PATIENCE_SECONDS = 300


def say(text=""):
    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    print(textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False), flush=True)


def python():
    return "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else os.path.realpath(sys.executable)


class Row:
    def __init__(self, label, run, moved="-"):
        self.label, self.run, self.moved = label, run, moved
        self.output = hashlib.sha256(run.stdout).hexdigest()[:12]

    def cells(self, plain):
        if self.run.timed_out:
            return [self.label, f"> {self.run.seconds:.0f} s, given up", f"{self.run.peak_bytes / MIB:.0f} MiB",
                    self.moved, "none"]
        if self.run.status != 0:
            ending = "killed by the kernel" if self.run.kills else f"failed ({self.run.status})"
            return [self.label, f"{ending} after {self.run.seconds:.0f} s", f"{self.run.peak_bytes / MIB:.0f} MiB",
                    self.moved, "none"]
        same = "" if self is plain else " = same" if self.output == plain.output else " DIFFERENT"
        return [self.label, f"{self.run.seconds:.1f} s", f"{self.run.peak_bytes / MIB:.0f} MiB", self.moved,
                self.output + same]


def in_group(command, limit=None, timeout=None):
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    if memory_group.unavailable():
        return measured_run.measured_run(command, env=environment, timeout=timeout)
    with memory_group.MemoryGroup(limit) as group:
        return measured_run.measured_run(command, group=group, env=environment, timeout=timeout)


def swap_row(command, budget, folder):
    """The same under kernel swap; None with the reason where that cannot be shown."""
    reason = memory_group.unavailable() or swap_area.unavailable(folder)
    if reason:
        return None, reason
    print(f"... kernel swap with the same limit (given up after {SWAP_PATIENCE_SECONDS} s)", flush=True)
    area = swap_area.SwapArea(folder, SWAP_BYTES)
    try:
        run = in_group(command, budget + SLACK_BYTES, SWAP_PATIENCE_SECONDS)
    finally:
        area.off()
    # A limited group shows what is swapped out as used too; in memory it never has more than its limit.
    run.peak_bytes = min(run.peak_bytes, budget + SLACK_BYTES)
    return Row("kernel swap", run), None


def farheap_row(tool, command, budget, folder):
    run = in_group(farheap_command.run_command(tool, budget, command, store=f"file:{folder}"))
    stats = farheap_command.parse_stats(run.stderr)
    if stats is None:
        return Row("farheap", run), None
    moved = "{:.0f} / {:.0f} MiB".format(*(farheap_command.counter(stats, name) / MIB
                                           for name in ("bytes_written", "bytes_read")))
    run.peak_bytes = max(run.peak_bytes, farheap_command.counter(stats, "peak_bytes"))
    return Row("farheap", run, moved), stats


def explain(plain, swap, paged, budget):
    """What was seen, from what was seen."""
    need = plain.run.peak_bytes / MIB
    say(f"The program is an ordinary python3 script: it was not changed, recompiled or told anything. It needs "
        f"{need:.0f} MiB; under `farheap run --memory {budget // MIB}M` its heap lived in a file, and at most "
        f"{paged.run.peak_bytes / MIB:.0f} MiB of it was in memory at any time, the runtime included. Every page "
        f"that was not there when the program touched it was fetched at that moment, at the same address. It took "
        f"{paged.run.seconds / plain.run.seconds:.1f} times as long as with all the memory it wants"
        + (f"; kernel swap, on the same disk with the same limit, took "
           f"{'more than ' if not swap.run.complete else ''}{swap.run.seconds / plain.run.seconds:.1f} times as long."
           if swap else "."))


def show_next(tool, data, budget):
    print("\nTry next:")
    name = os.path.relpath(tool)
    for command, what in (
            (f"{name} run --memory {budget // MIB}M -- {python()} {os.path.relpath(os.path.join(HERE, 'index.py'))} {data}",
             "the same by hand, with its report (the data stays in that file until you remove it)"),
            (f"{name} run --memory 256M -- YOUR-PROGRAM", "your own program"),
            (f"{name} doctor", "what this machine allows, and what would make it faster"),
            ("./dev bench paging --quick", "more programs, with spread")):
        print(f"  {command}\n      {what}")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="build folder (default: $FARHEAP_BUILD or build/release)")
    parser.add_argument("--packages", type=int, default=60000, help="how many packages to index (default: 60000)")
    parser.add_argument("--percent", type=int, default=40, help="budget in percent of the peak (default: 40)")
    parser.add_argument("--folder", default="/var/tmp", help="where store and swap file are (default: /var/tmp)")
    return parser.parse_args()


def run_demo(options, tool, work):
    data = os.path.join(tempfile.gettempdir(), "farheap-demo-packages.txt")
    size = packages.write(data, options.packages)
    say(f"The job: python3 builds an inverted index of {options.packages} Debian package records ({size / MIB:.0f} "
        "MiB of text) in memory and answers questions from it.")
    print("\n... with no limit", flush=True)
    command = [python(), os.path.join(HERE, "index.py"), data]
    plain = Row("no limit", in_group(command))
    if plain.run.status != 0:
        raise SystemExit(f"the program fails even without a limit:\n{plain.run.stderr.decode('utf-8', 'replace')}")
    print(textwrap.indent(plain.run.stdout.decode(), "      "), end="")
    budget = max(32, plain.run.peak_bytes * options.percent // 100 // MIB) * MIB
    print(f"... farheap run --memory {budget // MIB}M", flush=True)
    paged, stats = farheap_row(tool, command, budget, work)
    swap, reason = swap_row(command, budget, options.folder)
    print()
    report.print_table(["", "time", "in memory at most", "written / read", "output"],
                       [row.cells(plain) for row in (plain, swap, paged) if row])
    print()
    if reason:
        farheap_command.complain(f"Kernel swap is not shown: {reason}.")
    if paged.run.status != 0 or stats is None or paged.output != plain.output:
        print(paged.run.stderr.decode("utf-8", "replace"), file=sys.stderr)
        farheap_command.complain(f"The run under farheap went wrong (status {paged.run.status}); `{tool} doctor` "
                                 "says what this machine lacks.")
        return 1
    explain(plain, swap, paged, budget)
    show_next(tool, data, budget)
    return 0


def main():
    options = parse_options()
    measured_run.unwind_on_signals()
    build = farheap_command.find_build(options.build)
    tool = farheap_command.find_tool(build)
    if tool is None:
        farheap_command.complain(f"There is no tool in {build}: `./dev build` makes it, or say --build DIR.")
        return 1
    work = tempfile.mkdtemp(prefix="farheap-demo-", dir=options.folder)
    try:
        return run_demo(options, tool, work)
    except OSError as error:
        farheap_command.complain(f"demo: {error}")
        return 1
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    sys.exit(main())
