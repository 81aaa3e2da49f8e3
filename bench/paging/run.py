#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs programs with no limit, under kernel swap, under kernel swap with their hottest data locked, and under farheap,
and compares; with Belady's optimum for what was read and written.

  bench/paging/run.py --resume FILE                 everything; FILE keeps every run: say it again to go on
  bench/paging/run.py --quick --programs lbm        small, once
  bench/paging/run.py --levels 70 --columns swap,farheap --runs 5
  bench/paging/run.py --from-json FILE [FILE]...    no run: the tables of what was measured, parts joined
      [--markdown] [--plot FILE.svg] [--json FILE]

Columns: swap, mlock, farheap, optimum (a recording, no time), enough (plain and farheap with all the memory they like).
The programs, where no limit is, are always run.
"""

import argparse
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
import awake_processors
import farheap_command
import measured_run
import measurements
import memory_group
import metrics
import optimum
import report
import runner as ways
import subjects as subject_table
import swap_area
import tables
from farheap_command import complain
from report import MIB

COLUMNS = ("swap", "mlock", "farheap", "optimum", "enough")


def numbers(text):
    return [int(word) for word in text.split(",")]


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="build folder (default: $FARHEAP_BUILD or build/release)")
    parser.add_argument("--quick", action="store_true", help="small sizes, one run each")
    parser.add_argument("--programs", help="names, separated by commas (default: all)")
    parser.add_argument("--columns", default=",".join(COLUMNS), help=f"some of {','.join(COLUMNS)} (default: all)")
    parser.add_argument("--levels", type=numbers, default=[90, 70, 50],
                        help="budgets in percent of the plain peak (default: 90,70,50)")
    parser.add_argument("--runs", type=int, help="runs of each program in each way (default: 3; 1 with --quick)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds after which any run is given up")
    parser.add_argument("--give-up", type=float, default=60, metavar="N",
                        help="a run short of memory is given up after N times the plain run, not before 30 s; what it "
                             "took then is a lower bound (default: 60)")
    parser.add_argument("--page-clusters", type=numbers, default=[3, 0, 5],
                        help="vm.page-cluster values of kernel swap to try (default: 3,0,5)")
    parser.add_argument("--mlock-shares", type=numbers, default=[50, 80],
                        help="shares of the budget to lock, in percent, to try (default: 50,80)")
    parser.add_argument("--window", type=int, default=4, help="MiB that a recording cannot see into (default: 4)")
    parser.add_argument("--folder", default="/var/tmp", help="where swap file and store are (default: /var/tmp)")
    parser.add_argument("--swap-size", type=int, default=1536, help="MiB of swap (default: 1536)")
    parser.add_argument("--swap-awake", action="store_true",
                        help="under kernel swap idle processors poll, as farheap asks them to (/dev/cpu_dma_latency)")
    parser.add_argument("--host-as-is", action="store_true",
                        help="with enough memory: do not first have a hypervisor give back free memory that it took")
    parser.add_argument("--mask-6.1", dest="mask", action="store_true", help="as on a Linux 6.1")
    parser.add_argument("--json", metavar="FILE", help="write what was measured and the results there")
    parser.add_argument("--resume", metavar="FILE", help="as --json, and do not run again what is in it")
    parser.add_argument("--from-json", metavar="FILE", nargs="+", help="run nothing: show what is in these files")
    parser.add_argument("--markdown", action="store_true", help="the tables as they stand in docs/benchmarks")
    parser.add_argument("--plot", metavar="FILE", help="draw the results there (.svg or .png)")
    return parser


def parse_options(arguments):
    parser = make_parser()
    options = parser.parse_args(arguments)
    if not all(1 <= level <= 99 for level in options.levels):
        parser.error("--levels: each from 1 to 99")
    if not all(1 <= share <= 95 for share in options.mlock_shares):
        parser.error("--mlock-shares: each from 1 to 95")
    options.columns = options.columns.split(",")
    strange = set(options.columns) - set(COLUMNS)
    if strange:
        parser.error(f"--columns: no {', '.join(sorted(strange))}; there are {', '.join(COLUMNS)}")
    options.runs = options.runs or (1 if options.quick else 3)
    options.levels = list(dict.fromkeys(options.levels))
    return options


def choose(subjects, names):
    if not names:
        return subjects
    wanted = names.split(",")
    unknown = set(wanted) - {subject.name for subject in subjects}
    if unknown:
        known = ", ".join(subject.name for subject in subjects)
        raise SystemExit(f"no program called {', '.join(sorted(unknown))}; there are: {known}")
    return [subject for subject in subjects if subject.name in wanted]


def left_out(options, tool, optimum_program, build):
    """Says loudly which columns there will not be. Returns them, and whether there are control groups."""
    why_no_group = memory_group.unavailable()
    why_no_swap = why_no_group or swap_area.unavailable(options.folder)
    if options.swap_awake:
        why_no_swap = why_no_swap or awake_processors.unavailable()
    missing = set()
    if tool is None:
        complain(f"LEFT OUT: every column of farheap: there is no tool in {build} (build it, or say --build DIR)")
        missing |= {"farheap", "optimum", "enough"}
    if optimum_program is None and "optimum" in options.columns:
        complain(f"LEFT OUT: the optimum: no bench/policy/trace_optimum in {build} (build farheap_bench_paging)")
        missing.add("optimum")
    if why_no_swap and {"swap", "mlock"} & set(options.columns):
        complain(f"LEFT OUT: kernel swap, with and without locked memory, and so every speed-up over it: {why_no_swap}")
        missing |= {"swap", "mlock"}
    if why_no_group:
        complain(f"LEFT OUT: kills by the kernel are known from exit signals only: {why_no_group}")
    return missing, why_no_group is None


def all_subjects(options, build, data, with_real):
    subjects = subject_table.bench_subjects(build, options.quick)
    if with_real:
        real, missing = subject_table.real_subjects(data, options.quick)
        subjects += real
        for line in missing:
            complain(f"LEFT OUT: {line}")
    return choose(subjects, options.programs)


def measure_all(runner, subjects):
    for subject in subjects:
        try:
            runner.measure(subject)
        except ValueError as error:
            runner.wrong.append(f"{subject.name}: {error}")
            complain(f"FAILED without any limit: {runner.wrong[-1]}")
        except SystemExit as stop:
            runner.wrong.append(f"{subject.name}: stopped with status {stop.code}")
            complain("STOPPED: what follows is what was measured until now; --resume goes on")
            break


def begin(options, arguments):
    """The measurements to add to: those of the file to resume, or none."""
    settings = {"quick": options.quick, "mask": options.mask}
    if options.swap_awake:
        settings["swap_awake"] = True
    if options.host_as_is:
        settings["host_as_is"] = True
    begun = measurements.Measurements(settings, report.machine(options.folder), options.resume or options.json)
    begun.commands.append(" ".join(["run.py", *arguments]))
    if options.resume and os.path.exists(options.resume):
        begun.join(measurements.load(options.resume))
    return begun


def run(options, arguments):
    """Returns what was measured and whether all of it was right."""
    measured_run.unwind_on_signals()
    measured = begin(options, arguments)
    build = farheap_command.find_build(options.build)
    tool = farheap_command.find_tool(build)
    optimum_program = optimum.find_program(build)
    missing, groups = left_out(options, tool, optimum_program, build)
    runner = ways.Runner(options, tool, optimum_program, groups, missing, measured)
    needs_swap = {"swap", "mlock"} & set(runner.columns)
    swap = swap_area.SwapArea(options.folder, options.swap_size * MIB) if needs_swap else None
    data = tempfile.mkdtemp(prefix="farheap-bench-", dir=options.folder)
    try:
        measure_all(runner, all_subjects(options, build, data, "enough" in runner.columns))
    finally:
        shutil.rmtree(data)
        if swap:
            swap.off()
    return measured, not runner.wrong


def joined(paths):
    measured = measurements.load(paths[0])
    for path in paths[1:]:
        measured.join(measurements.load(path))
    return measured


def show(options, measured):
    if options.markdown:
        print(tables.markdown(measured))
    else:
        tables.show(measured)
    for path in {options.json, options.resume} - {None}:
        measured.save(metrics.results_of(measured), path)
    if options.plot:
        trouble = report.plot(options.plot, tables.panels(measured))
        if trouble:
            complain(trouble)


def main(arguments):
    options = parse_options(arguments)
    try:
        measured, right = (joined(options.from_json), True) if options.from_json else run(options, arguments)
    except ValueError as error:
        raise SystemExit(f"run.py: {error}") from error
    show(options, measured)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
