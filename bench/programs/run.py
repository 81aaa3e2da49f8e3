#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that users run, with hot and cold data: with no limit, under kernel swap on the disk, under swap on zram,
and under farheap, in turns.

  bench/programs/run.py --resume FILE                      everything; FILE keeps every run: say it again to go on
  bench/programs/run.py --programs perl_forks --levels 70 --turns 1 --ways plain,swap,farheap     one figure
  bench/programs/run.py --resume FILE --misses             what exact LRU and the optimum would miss; no time is measured
  bench/programs/run.py --list                             what there is, and what is missing
  bench/programs/run.py --from-json FILE                   no run: the tables of what was measured
      [--markdown] [--plot FILE.svg] [--json FILE]
"""

import argparse
import os
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "paging")]
# pylint: disable=wrong-import-position
import disk
import farheap_command
import figures
import measured_run
import measurements
import memory_group
import optimum
import report
import subject
import swap_area
import ways
import zram_area
from farheap_command import complain


def numbers(text):
    return [int(word) for word in text.split(",")]


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="build folder (default: $FARHEAP_BUILD or build/release)")
    parser.add_argument("--list", action="store_true", help="the programs, and which cannot be run here; runs nothing")
    parser.add_argument("--programs", help="names, separated by commas (default: all)")
    parser.add_argument("--levels", type=numbers, default=[90, 70, 50],
                        help="budgets in percent of the plain peak (default: 90,70,50)")
    parser.add_argument("--turns", type=int, default=3, help="runs of each program in each way (default: 3)")
    parser.add_argument("--ways", default=",".join(ways.WAYS),
                        help=f"some of {','.join(ways.WAYS)} (default: all); enough: farheap with all the memory it likes")
    parser.add_argument("--misses", action="store_true",
                        help="record the programs' uses of memory instead, once each: minutes, and up to a GiB of disk")
    parser.add_argument("--window", type=int, default=4, help="MiB that a recording cannot see into (default: 4)")
    parser.add_argument("--timeout", type=float, default=60, help="seconds after which a run is given up, if that is at least ten times the plain run's "
                             "(default: 60)")
    parser.add_argument("--page-cluster", type=int, default=3,
                        help="vm.page-cluster of kernel swap on the disk (default: 3, the kernel's; on zram it is 0)")
    parser.add_argument("--folder", default="/var/tmp", help="where swap file and store are (default: /var/tmp)")
    parser.add_argument("--data", metavar="FOLDER", help="where the programs' inputs are made, once (default: "
                        "farheap-bench-programs in --folder)")
    parser.add_argument("--swap-size", type=int, default=1024, help="MiB of swap (default: 1024)")
    parser.add_argument("--mask-6.1", dest="mask", action="store_true", help="as on a Linux 6.1")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE",
                        help="an option of farheap, to try it")
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
    chosen = options.ways.split(",")
    strange = set(chosen) - set(ways.WAYS)
    if strange:
        parser.error(f"--ways: no {', '.join(sorted(strange))}; there are {', '.join(ways.WAYS)}")
    options.ways = [] if options.misses else [way for way in ways.WAYS if way in chosen]
    options.data = options.data or os.path.join(options.folder, "farheap-bench-programs")
    return options


def choose(names):
    subjects = subject.all_subjects()
    if not names:
        return subjects
    known = {one.name: one for one in subjects}
    unknown = [name for name in names.split(",") if name not in known]
    if unknown:
        raise SystemExit(f"no program called {', '.join(unknown)}; there are: {', '.join(known)}")
    return [known[name] for name in names.split(",")]


def present(subjects):
    """Those that can be run here. The others are told loudly."""
    there = []
    for one in subjects:
        reason = one.missing()
        if reason:
            complain(f"LEFT OUT: {one.name}: {reason}")
        else:
            there.append(one)
    return there


def possible_ways(options, tool, build):
    """Those that there can be here. The others are told loudly."""
    why_not = {}
    if tool is None:
        why_not["farheap"] = why_not["enough"] = f"there is no tool in {build} (build it, or say --build DIR)"
    why_not["swap"] = swap_area.no_rights()
    why_not["zram"] = zram_area.unavailable()
    for way in options.ways:
        if why_not.get(way):
            complain(f"LEFT OUT: {way}, and every ratio over it: {why_not[way]}")
    return [way for way in options.ways if not why_not.get(way)]


def begin(options, arguments, tool):
    """The measurements to add to: those of the file to resume, or none."""
    settings = {"mask": options.mask, "settings": options.settings, "page_cluster": options.page_cluster,
                "timeout": options.timeout}
    machine = report.machine(options.folder)
    begun = measurements.Measurements(settings, machine, options.resume or options.json, "programs")
    if options.resume and os.path.exists(options.resume):
        before = measurements.load(options.resume, "programs")
        begun.machine = before.machine if before.machine.startswith(machine) else machine
        begun.join(before)
    elif tool:
        begun.machine = f"{machine}: {disk.text(disk.measure(tool, options.folder))}"
    begun.commands.append(" ".join(["run.py", *arguments]))
    return begun


def do_all(runner, subjects, do):
    for one in subjects:
        try:
            do(one)
        except (ValueError, OSError) as error:
            runner.wrong.append(f"{one.name}: {error}")
            complain(f"FAILED: {runner.wrong[-1]}")
        except SystemExit as stop:
            runner.wrong.append(f"{one.name}: stopped with status {stop.code}")
            complain("STOPPED: what follows is what was measured until now; --resume goes on")
            break


def run(options, arguments):
    """Returns what was measured and whether all of it was right."""
    measured_run.unwind_on_signals()
    why_no_group = memory_group.unavailable()
    if why_no_group:
        raise SystemExit(f"run.py: nothing can be compared without a limit by the kernel: {why_no_group}")
    build = farheap_command.find_build(options.build)
    tool = farheap_command.find_tool(build)
    if options.misses and not (tool and optimum.find_program(build)):
        raise SystemExit(f"run.py: no farheap, or no bench/policy/trace_optimum, in {build}: ./dev build release")
    subjects = present(choose(options.programs))
    possible = possible_ways(options, tool, build)
    measured = begin(options, arguments, tool)
    os.makedirs(options.data, exist_ok=True)
    with ways.areas_for(options, possible) as areas:
        runner = ways.Ways(options, tool, possible, areas, measured, optimum.find_program(build))
        do_all(runner, subjects, runner.record if options.misses else runner.measure)
    return measured, not runner.wrong


def joined(paths):
    measured = measurements.load(paths[0], "programs")
    for path in paths[1:]:
        measured.join(measurements.load(path, "programs"))
    return measured


def list_subjects():
    report.print_table(("program", "does", "missing"),
                       [[one.name, one.does, one.missing() or ""] for one in subject.all_subjects()])


def main(arguments):
    options = parse_options(arguments)
    if options.list:
        list_subjects()
        return 0
    try:
        measured, right = (joined(options.from_json), True) if options.from_json else run(options, arguments)
    except ValueError as error:
        raise SystemExit(f"run.py: {error}") from error
    print(figures.markdown(measured)) if options.markdown else figures.show(measured)
    for path in {options.json, options.resume} - {None}:
        measured.save(figures.results_of(measured), path)
    if options.plot:
        trouble = report.plot(options.plot, figures.panels(measured))
        if trouble:
            complain(trouble)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
