#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What plans gain: programs of bench/paging at 70 % of their memory, with a plan of a smaller run with another seed.

  ./dev bench plan --oracle --resume plan.json                 # everything, 45 minutes; say it again to go on
  ./dev bench plan --programs lbm,fft3d --levels 90,70,50      # a part, without who knows the exact future
  ./dev bench plan --quick                                     # a first look: small, one run each
  bench/plan/run.py --from-json plan.json --markdown --plot docs/benchmarks/plan.svg    # the tables, no run

Each program is recorded with a quarter of its data (`farheap record`) and planned (`farheap plan`). Then it runs in
turns with no limit, under kernel swap, under kernel swap with the seeds' hints from the same profile (mlock of 50 and
of 80 % of the budget in the first turn, and madvise), under Farheap, under Farheap with the plan, and with --oracle under Farheap that
is told of a recording of the same run (--set expect_pages). Kernel swap's page-cluster is the best of --page-clusters,
tried in the first turn. A program whose plan would not help runs without one, and why is told."""
import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "common"), os.path.join(HERE, "..", "paging")]
# pylint: disable=wrong-import-position
import disk
import farheap_command
import measured_run
import measurements
import memory_group
import optimum
import plan_figures
import plan_tables
import report
import subjects as subject_table
import swap_area
import training
from farheap_command import complain
from planned_runner import Runner
from report import MIB

PROGRAMS = plan_figures.SWEEPING + plan_figures.RANDOM + plan_figures.MIXED


def numbers(text):
    return [int(word) for word in text.split(",")]


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="build folder (default: $FARHEAP_BUILD or build/release)")
    parser.add_argument("--oracle", action="store_true", help="also with the exact future of the same input")
    parser.add_argument("--wrong", action="store_true", help="also with plans that are shuffled, and reversed")
    parser.add_argument("--programs", default=",".join(PROGRAMS), help=f"default: {','.join(PROGRAMS)}")
    parser.add_argument("--levels", type=numbers, default=[70],
                        help="budgets in percent of the plain peak (default: 70)")
    parser.add_argument("--runs", type=int, help="of each program in each way (default: 3; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="small sizes, one run each")
    parser.add_argument("--size", help="of every program's data, instead of its own: 48M")
    parser.add_argument("--train-part", type=int, default=4, metavar="N",
                        help="the recorded run has an N-th of the data (default: 4)")
    parser.add_argument("--no-swap", action="store_true", help="leave kernel swap out")
    parser.add_argument("--no-hints", action="store_true", help="leave kernel swap with the seeds' hints out")
    parser.add_argument("--hint-shares", type=numbers, default=[50, 80],
                        help="what such hints lock, in percent of the budget (default: 50,80)")
    parser.add_argument("--page-clusters", type=numbers, default=[3, 5], help="of kernel swap (default: 3,5)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds after which any run is given up")
    parser.add_argument("--folder", default="/var/tmp", help="where swap file and store are (default: /var/tmp)")
    parser.add_argument("--json", metavar="FILE", help="write what was measured and the figures there")
    parser.add_argument("--resume", metavar="FILE", help="as --json, and do not run again what is in it")
    parser.add_argument("--from-json", metavar="FILE", help="run nothing: show what is there")
    parser.add_argument("--markdown", action="store_true", help="the tables as they stand in docs/benchmarks")
    parser.add_argument("--plot", metavar="FILE", help="draw the seconds there (.svg or .png)")
    # bench/paging's runner wants to know these, too.
    parser.set_defaults(give_up=60, window=4, swap_size=1536, swap_awake=False, host_as_is=False, mask=False,
                        mlock_shares=[])
    return parser


def parse_options(arguments):
    parser = make_parser()
    options = parser.parse_args(arguments)
    if not all(1 <= level <= 99 for level in options.levels):
        parser.error("--levels: each from 1 to 99")
    if not all(1 <= share <= 95 for share in options.hint_shares):
        parser.error("--hint-shares: each from 1 to 95")
    if options.train_part < 1:
        parser.error("--train-part: 1 or more")
    options.runs = options.runs or (1 if options.quick else 3)
    options.levels = list(dict.fromkeys(options.levels))
    return options


def chosen(options, build):
    """The subjects that were asked for, those that are not there told and left out."""
    known = {one.name: one for one in subject_table.bench_subjects(build, options.quick)}
    found = []
    for name in options.programs.split(","):
        if name not in known:
            complain(f"LEFT OUT: there is no program {name}: {', '.join(known)}")
            continue
        if options.size:
            known[name].command += ["--size", options.size]
            known[name].size = subject_table.bytes_of(options.size)
        found.append(known[name])
    return found


def columns(options, why_no_swap):
    found = ["farheap", "optimum", "enough"] + (["oracle"] if options.oracle else [])
    found += ["wrong"] if options.wrong else []
    if why_no_swap and not options.no_swap:
        complain(f"LEFT OUT: kernel swap, and so every speed-up over it: {why_no_swap}")
    if why_no_swap or options.no_swap:
        return found
    return found + ["swap"] + ([] if options.no_hints else ["hints"])


def sizes_of(options):
    """What must be the same in all parts of one file, but for the disk's speed."""
    return {"quick": options.quick, "size": options.size, "train_part": options.train_part, "seed": training.SEED}


def begin(options, tool, machine):
    """The measurements to add to: those of the file to resume, or none."""
    if not (options.resume and os.path.exists(options.resume)):
        settings = {"disk": disk.measure(tool, options.folder), **sizes_of(options)}
        return measurements.Measurements(settings, machine, options.resume or options.json, "plan")
    measured = measurements.load(options.resume, "plan")
    if measured.machine != machine:
        raise ValueError(f"{options.resume} was measured on another machine ({measured.machine}): begin another file")
    there = {key: value for key, value in measured.settings.items() if key != "disk"}
    if there != sizes_of(options):
        raise ValueError(f"{options.resume} was measured with {there}, now asked for is {sizes_of(options)}: begin "
                         "another file")
    return measured


def measure_all(runner, subjects):
    for subject in subjects:
        try:
            runner.measure(subject)
        except ValueError as error:
            runner.wrong.append(f"{subject.name}: {error}")
            complain(f"FAILED: {runner.wrong[-1]}")
        except SystemExit as stop:
            runner.wrong.append(f"{subject.name}: stopped with status {stop.code}")
            complain("STOPPED: what follows is what was measured until now; --resume goes on")
            break


def measure(options, arguments):
    """Returns what was measured and whether all of it was right."""
    build = farheap_command.find_build(options.build)
    tool, optimum_program = farheap_command.find_tool(build), optimum.find_program(build)
    if tool is None or optimum_program is None:
        raise ValueError(f"no farheap or no bench/policy/trace_optimum in {build}: build them first")
    why_no_group = memory_group.unavailable()
    options.columns = columns(options, why_no_group or swap_area.unavailable(options.folder))
    measured = begin(options, tool, report.machine(options.folder))
    measured.commands.append(" ".join(["run.py", *arguments]))
    runner = Runner(options, tool, optimum_program, why_no_group is None, [], measured)
    runner.wrong_program = os.path.join(build, "bench", "plan", "wrong_plan")
    swap = swap_area.SwapArea(options.folder, options.swap_size * MIB) if "swap" in options.columns else None
    try:
        measure_all(runner, chosen(options, build))
    finally:
        if swap:
            swap.off()
    return measured, not runner.wrong


def show(options, measured):
    if options.markdown:
        print(plan_tables.markdown(measured))
    else:
        plan_tables.show(measured)
    for path in {options.json, options.resume} - {None}:
        measured.save(plan_figures.results_of(measured), path)
    if options.plot:
        trouble = report.plot(options.plot, plan_tables.panels(measured))
        if trouble:
            complain(trouble)


def main(arguments):
    options = parse_options(arguments)
    measured_run.unwind_on_signals()
    try:
        measured, right = ((measurements.load(options.from_json, "plan"), True) if options.from_json
                           else measure(options, arguments))
    except (ValueError, OSError) as error:
        raise SystemExit(f"run.py: {error}") from error
    show(options, measured)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
