#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How much a plan could win: programs of bench/paging whose future Farheap knows exactly.

  ./dev bench plan --oracle                                    # lbm, cg, fft3d, multigrid, sweep, qft at 70 %; 15 minutes
  ./dev bench plan --oracle --programs lbm --runs 5 --resume plan.json
  bench/plan/run.py --from-json plan.json --markdown           # the table again, no run

Each program is recorded once (--set record_pages); from then on it runs in four ways in turns: with no limit, under
kernel swap, under Farheap, and under Farheap that is told of the recording (--set expect_pages). Kernel swap's
page-cluster is the best of --page-clusters, tried in the first turn."""
import argparse
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "common"), os.path.join(HERE, "..", "paging")]
# pylint: disable=wrong-import-position
import disk
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
from farheap_command import complain
from report import MIB

ORACLE = "oracle"  # the way: Farheap that knows the recording
SWEEPING = "lbm,cg,fft3d,multigrid,sweep,qft"  # that kernel swap slows ten times or more (docs/benchmarks/paging.md)
SHOWN = (("plain", "no limit"), ("swap", "kernel swap"), ("farheap", "farheap"), (ORACLE, "exact future"))


class Runner(ways.Runner):
    """Beside bench/paging's ways one more. `traces`: program -> the file of its recording."""

    traces = {}

    def oracle(self, subject, level, turn, budget):
        record = self.record(subject, level, ORACLE, turn)
        if not record:
            return
        command = farheap_command.run_command(self.tool, budget, subject.command, store=f"file:{self.options.folder}",
                                              settings=[f"expect_pages={self.traces[subject.name]}"],
                                              mask=self.options.mask)
        run = self.run_once(subject, command, timeout=self.give_up_after(subject))
        record.budget_bytes = budget
        stats = farheap_command.parse_stats(run.stderr)
        if stats is not None:
            for name in ("bytes_read", "bytes_written"):
                setattr(record, name, farheap_command.counter(stats, name))
            run.peak_bytes = max(run.peak_bytes, farheap_command.counter(stats, "peak_bytes"))
        self.enter(subject, run, record)

    def measure(self, subject):
        print(f"... {subject.name}", file=sys.stderr, flush=True)
        self.first_run(subject)
        level = self.options.level
        budget = self.measured.programs[subject.name]["peak_bytes"] * level // 100
        folder = tempfile.mkdtemp(prefix="farheap-trace-", dir=self.options.folder)
        try:
            self.traces[subject.name] = optimum.record(self, subject, folder)
            found = optimum.compute(self.optimum_program, self.traces[subject.name], [budget])
            self.measured.optima[subject.name, level] = found[0]
            all_ways = [lambda turn: self.plain(subject, level, turn),
                        lambda turn: self.farheap_run(subject, level, "farheap", turn, budget),
                        lambda turn: self.oracle(subject, level, turn, budget)]
            if "swap" in self.columns:
                all_ways.append(lambda turn: self.swap(subject, level, turn, budget))
            for turn in range(self.options.runs):
                first = turn % len(all_ways)
                for way in all_ways[first:] + all_ways[:first]:
                    way(turn)
        finally:
            shutil.rmtree(folder)


def ceiling(found, plain_seconds, speeds):
    """No run is faster: the program computes so long, and the optimum's bytes take so long at the disk's speed."""
    moving = (found["bytes_read"] / speeds[disk.READS] + found["bytes_written"] / speeds[disk.WRITES]) / 1e6
    return max(plain_seconds, moving)


def bytes_text(records, found):
    """MiB read and written, and how many times the optimum's."""
    cells = []
    for name in ("bytes_read", "bytes_written"):
        middle = report.spread([getattr(one, name) for one in records])[0]
        cells.append(f"{middle / MIB:,.0f} ({middle / max(found[name], 1):.2f}x)")
    return cells


def row(measured, program, level, speeds):
    cells = {way: metrics.cell(measured, program, level, way) for way, _ in SHOWN}
    found = measured.optima[program, level]
    line = [program] + [report.seconds_text(cells[way].seconds) if cells[way] else "-" for way, _ in SHOWN]
    mine, swap = cells[ORACLE], cells["swap"]
    line.append(f"{swap.middle / mine.middle:.1f}x" if swap else "-")
    line.append(f"{cells['farheap'].middle / mine.middle:.2f}x")
    line.append(f"{ceiling(found, cells['plain'].middle, speeds):.2f} s")
    for way in ("farheap", ORACLE):
        line += bytes_text(cells[way].records, found)
    return line


def results_of(measured, level):
    lines = []
    for program in measured.programs:
        for way, _ in SHOWN:
            one = metrics.cell(measured, program, level, way)
            if one:
                lines.append(report.result(program, f"seconds_{way}", one.middle, "s", min(one.seconds), max(one.seconds)))
    return lines


def show(measured, options):
    speeds = measured.settings["disk"]
    head = ["program", *[text for _, text in SHOWN], "over swap", "over farheap", "ceiling", "farheap: MiB read (of the optimum)",
            "written", "exact future: MiB read", "written"]
    rows = [row(measured, program, options.level, speeds) for program in measured.programs
            if metrics.cell(measured, program, options.level, ORACLE)]
    print(f"{measured.machine}\n{disk.text(speeds)}\n")
    if options.markdown:
        print(report.markdown_table(head, rows))
    else:
        report.print_table(head, rows)


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("FARHEAP_BUILD", "build/release"))
    parser.add_argument("--oracle", action="store_true", help="the exact future of the same input; there is nothing else yet")
    parser.add_argument("--programs", default=SWEEPING, help=f"default: {SWEEPING}")
    parser.add_argument("--level", type=int, default=70, help="budget in percent of the plain peak (default: 70)")
    parser.add_argument("--runs", type=int, default=3, help="of each program in each way (default: 3)")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--no-swap", action="store_true", help="leave kernel swap out")
    parser.add_argument("--page-clusters", type=lambda text: [int(word) for word in text.split(",")], default=[3, 5],
                        help="of kernel swap (default: 3,5)")
    parser.add_argument("--folder", default="/var/tmp", help="where swap file and store are (default: /var/tmp)")
    parser.add_argument("--resume", metavar="FILE", help="keeps every run, and does not run again what is in it")
    parser.add_argument("--json", metavar="FILE", help="keeps every run")
    parser.add_argument("--from-json", metavar="FILE", help="run nothing: the table of what is there")
    parser.add_argument("--markdown", action="store_true")
    # bench/paging's runner wants to know these, too.
    parser.set_defaults(timeout=600, give_up=60, window=4, swap_size=1536, swap_awake=False, host_as_is=True, mask=False,
                        mlock_shares=[])
    return parser


def measure(options):
    build = farheap_command.find_build(options.build)
    tool, optimum_program = farheap_command.find_tool(build), optimum.find_program(build)
    if tool is None or optimum_program is None:
        sys.exit(f"run.py: no farheap or no bench/policy/trace_optimum in {build}: build them first")
    why_no_group = memory_group.unavailable()
    why_no_swap = why_no_group or swap_area.unavailable(options.folder)
    if why_no_swap and not options.no_swap:
        complain(f"LEFT OUT: kernel swap, and so every speed-up over it: {why_no_swap}")
    options.columns = ["farheap"] + ([] if why_no_swap or options.no_swap else ["swap"])
    path = options.resume or options.json
    if options.resume and os.path.exists(options.resume):
        measured = measurements.load(path, "plan")
    else:
        measured = measurements.Measurements({"disk": disk.measure(tool, options.folder)},
                                             report.machine(options.folder), path, "plan")
    runner = Runner(options, tool, optimum_program, why_no_group is None, [], measured)
    known = {one.name: one for one in subject_table.bench_subjects(build, options.quick)}
    swap = swap_area.SwapArea(options.folder, options.swap_size * MIB) if "swap" in options.columns else None
    try:
        for name in options.programs.split(","):
            if name not in known:
                complain(f"LEFT OUT: there is no program {name}: {', '.join(known)}")
                continue
            runner.measure(known[name])
    finally:
        if swap:
            swap.off()
    return measured, not runner.wrong


def main():
    options = make_parser().parse_args()
    measured_run.unwind_on_signals()
    if options.from_json:
        return show(measurements.load(options.from_json, "plan"), options)
    if not options.oracle:
        sys.exit("run.py: say what is to be known: --oracle (see --help)")
    measured, right = measure(options)
    show(measured, options)
    measured.save(results_of(measured, options.level))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
