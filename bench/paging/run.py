#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs programs with enough memory, under kernel swap and under farheap, and compares.

  bench/paging/run.py                               everything, 3 runs each
  bench/paging/run.py --quick --programs lbm        small, once
  bench/paging/run.py --levels 90,70,50 --json FILE --plot FILE.svg
"""

import argparse
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
import farheap_command
import measured_run
import memory_group
import report
import subjects as subject_table
import swap_area
from farheap_command import complain
from report import MIB

SLACK_BYTES = 4 * MIB  # program text, page tables and what else a control group charges besides the heap
ROOM_BYTES = 512 * MIB  # a budget "well above the peak" is twice the peak and this


class Level:
    """Measurements of one program at one budget."""

    def __init__(self, budget_bytes):
        self.budget = budget_bytes
        self.seconds = {}  # way -> [seconds]
        self.bounded = set()  # ways with a run that was killed or timed out: its time is a lower bound
        self.kills = {}  # way -> number
        self.cluster = None  # page-cluster of the baseline: what the first round found the better one
        self.peaks = []  # of the farheap runs
        self.stats = []  # of the farheap runs


class Bench:
    def __init__(self, options, tool, why_no_group, why_no_swap):
        self.options = options
        self.tool = tool
        self.groups = why_no_group is None
        self.swap = why_no_group is None and why_no_swap is None
        self.default_cluster = swap_area.read_page_cluster() if self.swap else None
        self.wrong = []

    def run_once(self, subject, command, limit=None):
        if not self.groups:
            return measured_run.measured_run(command, stdin=subject.stdin, env=subject.env, cwd=subject.cwd,
                                             timeout=self.options.timeout)
        with memory_group.MemoryGroup(limit) as group:
            return measured_run.measured_run(command, group=group, stdin=subject.stdin, env=subject.env,
                                             cwd=subject.cwd, timeout=self.options.timeout)

    def note(self, level, way, subject, run, checksum):
        """Enters a run under its way; returns its seconds. A wrong result is told and does not count."""
        killed = run.kills or run.timed_out or (run.status == 137 and way != "plain")
        level.kills[way] = level.kills.get(way, 0) + (max(run.kills, 1) if killed and not run.timed_out else 0)
        if killed:
            level.bounded.add(way)
            level.seconds.setdefault(way, []).append(run.seconds)
            return run.seconds
        try:
            measured = subject.measured(run)
            if checksum is not None and measured.checksum != checksum:
                raise ValueError(f"checksum {measured.checksum}, plain run {checksum}")
        except ValueError as error:
            self.wrong.append(f"{subject.name} ({way}): {error}")
            complain(f"WRONG, does not count: {self.wrong[-1]}")
            return None
        level.seconds.setdefault(way, []).append(measured.seconds)
        return measured.seconds

    def farheap(self, subject, level, way, checksum, whole_run=False):
        command = farheap_command.run_command(self.tool, level.budget, subject.command,
                                              store=f"file:{self.options.folder}", mask=self.options.mask)
        run = self.run_once(subject, command)
        if whole_run:
            self.note_whole(level, way, subject, run, checksum)
        else:
            self.note(level, way, subject, run, checksum)
        stats = farheap_command.parse_stats(run.stderr)
        peak = run.peak_bytes
        if stats is not None:
            level.stats.append(stats)
            peak = max(peak, farheap_command.counter(stats, "peak_bytes"))
        level.peaks.append(peak)

    def note_whole(self, level, way, subject, run, checksum):
        """As note(), but the time of the whole run counts, start-up and first touches included."""
        if self.note(level, way, subject, run, checksum) is not None:
            level.seconds[way][-1] = run.seconds

    def swapped(self, subject, level, way, cluster, checksum):
        swap_area.write_page_cluster(cluster)
        self.note(level, way, subject, self.run_once(subject, subject.command, level.budget + SLACK_BYTES), checksum)

    def short_of_memory(self, subject, percent, peak, checksum):
        """Plain, kernel swap and farheap in turns. The first round tries both read-ahead settings of swap."""
        level = Level(peak * percent // 100)
        clusters = {"swap": self.default_cluster, "swap, no read-ahead": 0} if self.swap else {}
        if self.default_cluster == 0:
            clusters.pop("swap, no read-ahead", None)
        for turn in range(self.options.runs):
            self.note(level, "plain", subject, self.run_once(subject, subject.command), checksum)
            for way, cluster in clusters.items():
                self.swapped(subject, level, way, cluster, checksum)
            if turn == 0 and len(clusters) > 1:  # the better one is the baseline, and only it goes on
                timed = [way for way in clusters if level.seconds.get(way)]
                best = min(timed, key=lambda way: (way in level.bounded, level.seconds[way][0]), default="swap")
                clusters = {best: clusters[best]}
            if self.tool:
                self.farheap(subject, level, "farheap", checksum)
        for way in clusters:
            level.cluster = clusters[way]
            level.seconds["baseline"] = level.seconds.get(way, [])
            level.kills["baseline"] = level.kills.get(way, 0)
            if way in level.bounded:
                level.bounded.add("baseline")
        return level

    def enough_memory(self, subject, peak, checksum):
        """Plain and farheap in turns (and the order changes each time), whole runs."""
        level = Level(2 * peak + ROOM_BYTES)
        for turn in range(self.options.runs + (0 if self.options.quick else 2)):
            ways = ["plain", "farheap"] if turn % 2 == 0 else ["farheap", "plain"]
            for way in ways:
                if way == "farheap":
                    self.farheap(subject, level, "farheap", checksum, whole_run=True)
                else:
                    self.note_whole(level, "plain", subject, self.run_once(subject, subject.command), checksum)
        return level

    def measure(self, subject):
        """(peak, {percent: Level}, Level or None)"""
        first = self.run_once(subject, subject.command + ([] if subject.real else ["--verify"]))
        if first.timed_out:
            raise ValueError(f"not done after {self.options.timeout} s")
        checksum = subject.measured(first).checksum
        if first.peak_bytes < 16 * MIB:
            raise ValueError(f"its peak of {first.peak_bytes / MIB:.1f} MiB was not seen: it ended between two looks")
        levels = {}
        if not subject.real:
            for percent in self.options.levels:
                levels[percent] = self.short_of_memory(subject, percent, first.peak_bytes, checksum)
        full = self.enough_memory(subject, first.peak_bytes, checksum) if self.tool else None
        return first.peak_bytes, levels, full


def ratio(name, metric, above, below, bound):
    """above / below with the widest spread that the runs allow."""
    top, top_low, top_high = report.spread(above)
    bottom, bottom_low, bottom_high = report.spread(below)
    return report.result(name, metric, top / bottom, "x", top_low / bottom_high, top_high / bottom_low, bound)


def level_results(name, percent, level):
    results = []
    for way in ("plain", "baseline", "farheap"):
        if level.seconds.get(way):
            label = "swap" if way == "baseline" else way
            results.append(report.result(name, f"seconds_{label}_{percent}", *_value_unit(level.seconds[way]),
                                         bound="lower" if way in level.bounded else None))
    if level.seconds.get("baseline"):
        results.append(report.result(name, f"oom_kills_swap_{percent}", level.kills.get("baseline", 0), "kills"))
        results.append(report.result(name, f"swap_page_cluster_{percent}", level.cluster, "log2 pages"))
    if level.seconds.get("baseline") and level.seconds.get("farheap") and "farheap" not in level.bounded:
        results.append(ratio(name, f"speedup_over_swap_{percent}", level.seconds["baseline"], level.seconds["farheap"],
                             "lower" if "baseline" in level.bounded else None))
    for counted in ("bytes_read", "bytes_written"):
        if level.stats:
            values = [farheap_command.counter(stats, counted) / MIB for stats in level.stats]
            results.append(report.result(name, f"{counted}_{percent}", *_value_unit(values, "MiB")))
    return results


def _value_unit(values, unit="s"):
    middle, low, high = report.spread(values)
    return middle, unit, low, high


def program_results(name, levels, full):
    results = []
    for percent, level in levels.items():
        results += level_results(name, percent, level)
    over = [(peak - level.budget, level.budget) for level in levels.values() for peak in level.peaks]
    if over:
        percents = [100 * more / budget for more, budget in over]
        mebibytes = [more / MIB for more, _ in over]
        results.append(report.result(name, "peak_over_budget", max(percents), "%", min(percents), max(percents)))
        results.append(report.result(name, "peak_over_budget_mib", max(mebibytes), "MiB", min(mebibytes),
                                     max(mebibytes)))
    if full and full.seconds.get("plain") and full.seconds.get("farheap"):
        results.append(ratio(name, "slowdown_full_memory", full.seconds["farheap"], full.seconds["plain"], None))
    if over or full:
        kills = sum(level.kills.get("farheap", 0) for level in [*levels.values(), *([full] if full else [])])
        results.append(report.result(name, "oom_kills", kills, "kills"))
    return results


def summary_results(results):
    """The same metrics over all programs, under the name `all`."""
    summary = []
    for metric in sorted({line["metric"] for line in results}):
        lines = [line for line in results if line["metric"] == metric]
        values = [line["value"] for line in lines]
        if metric.startswith(("speedup", "slowdown")):
            bound = "lower" if any("bound" in line for line in lines) else None
            summary.append(report.result("all", metric, report.geometric_mean(values), "x", min(values), max(values),
                                         bound))
        elif metric.startswith("oom_kills"):
            summary.append(report.result("all", metric, sum(values), "kills", min(values), max(values)))
        elif metric.startswith("peak_over_budget"):
            summary.append(report.result("all", metric, max(values), lines[0]["unit"], min(values), max(values)))
    return summary


def table_rows(name, peak, levels, full):
    for percent, level in levels.items():
        def timed(way, level=level):
            seconds = level.seconds.get(way)
            return report.seconds_text(seconds, way in level.bounded) if seconds else "-"
        gain = "-"
        if level.seconds.get("baseline") and level.seconds.get("farheap"):
            quotient = report.spread(level.seconds["baseline"])[0] / report.spread(level.seconds["farheap"])[0]
            gain = f"{'>= ' if 'baseline' in level.bounded else ''}{quotient:.2f}x"
        over = f"{(max(level.peaks) - level.budget) / MIB:+.1f} MiB" if level.peaks else "-"
        yield [name, f"{percent} % = {level.budget / MIB:.0f} MiB", timed("plain"), timed("baseline"),
               timed("farheap"), gain, over]
    if full and full.seconds.get("plain") and full.seconds.get("farheap"):
        slower = report.spread(full.seconds["farheap"])[0] / report.spread(full.seconds["plain"])[0]
        yield [name, f"enough ({peak / MIB:.0f} MiB used)", report.seconds_text(full.seconds["plain"]), "-",
               report.seconds_text(full.seconds["farheap"]), f"{slower:.3f}x time", "-"]


def parse_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="build folder (default: $FARHEAP_BUILD or build/release)")
    parser.add_argument("--quick", action="store_true", help="small sizes, one run each")
    parser.add_argument("--programs", help="names, separated by commas (default: all)")
    parser.add_argument("--levels", default="70", help="budgets in percent of the plain peak (default: 70)")
    parser.add_argument("--runs", type=int, help="runs of each program in each way (default: 3; 1 with --quick)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds after which a run is given up")
    parser.add_argument("--folder", default="/var/tmp", help="where swap file and store are (default: /var/tmp)")
    parser.add_argument("--swap-size", type=int, default=1536, help="MiB of swap (default: 1536)")
    parser.add_argument("--mask-6.1", dest="mask", action="store_true", help="as on a Linux 6.1")
    parser.add_argument("--json", metavar="FILE", help="write the results there")
    parser.add_argument("--plot", metavar="FILE", help="draw them there (.svg or .png)")
    options = parser.parse_args(arguments)
    try:
        options.levels = [int(level) for level in options.levels.split(",")]
    except ValueError:
        parser.error(f"--levels {options.levels}: percentages separated by commas, e.g. 90,70,50")
    if not all(1 <= level <= 99 for level in options.levels):
        parser.error("--levels: each from 1 to 99")
    options.runs = options.runs or (1 if options.quick else 3)
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


def left_out(options, tool, build):
    """Says loudly which columns there will not be; returns why there is no control group and no swap."""
    why_no_group = memory_group.unavailable()
    why_no_swap = why_no_group or swap_area.unavailable(options.folder)
    if tool is None:
        complain(f"LEFT OUT: every column of farheap: there is no tool in {build} (build it, or say --build DIR)")
    if why_no_swap:
        complain(f"LEFT OUT: kernel swap and so every speed-up over it: {why_no_swap}")
    if why_no_group:
        complain(f"LEFT OUT: kills by the kernel are known from exit signals only: {why_no_group}")
    return why_no_group, why_no_swap


def run_all(bench, options, build, data):
    subjects = subject_table.bench_subjects(build, options.quick)
    if bench.tool:
        real, missing = subject_table.real_subjects(data, options.quick)
        subjects += real
        for line in missing:
            complain(f"LEFT OUT: {line}")
    results, rows, bars = [], [], {}
    for subject in choose(subjects, options.programs):
        print(f"... {subject.name}", file=sys.stderr, flush=True)
        try:
            peak, levels, full = bench.measure(subject)
        except ValueError as error:
            bench.wrong.append(f"{subject.name}: {error}")
            complain(f"FAILED without any limit: {bench.wrong[-1]}")
            continue
        except SystemExit as stop:
            bench.wrong.append(f"{subject.name}: stopped with status {stop.code}")
            complain("STOPPED: what follows is what was measured until now")
            break
        results.append(report.result(subject.name, "peak_plain", peak / MIB, "MiB"))
        results += program_results(subject.name, levels, full)
        rows += table_rows(subject.name, peak, levels, full)
        if levels:
            level = levels[options.levels[0]]
            plain = report.spread(level.seconds["plain"])[0] if level.seconds.get("plain") else None
            bars[subject.name] = {
                label: report.spread(level.seconds[way])[0] / plain if plain and level.seconds.get(way) else None
                for label, way in (("kernel swap", "baseline"), ("farheap", "farheap"))}
    return results, rows, bars


def main(arguments):
    options = parse_options(arguments)
    measured_run.unwind_on_signals()
    build = farheap_command.find_build(options.build)
    tool = farheap_command.find_tool(build)
    why_no_group, why_no_swap = left_out(options, tool, build)
    bench = Bench(options, tool, why_no_group, why_no_swap)
    swap = None if why_no_swap else swap_area.SwapArea(options.folder, options.swap_size * MIB)
    data = tempfile.mkdtemp(prefix="farheap-bench-", dir=options.folder)
    try:
        results, rows, bars = run_all(bench, options, build, data)
    finally:
        shutil.rmtree(data)
        if swap:
            swap.off()
    results += summary_results(results)
    where = report.machine(options.folder)
    print(where)
    report.print_table(["program", "memory", "plain", "kernel swap", "farheap", "gain", "over budget"], rows)
    for line in results:
        if line["name"] == "all":
            print(f"all: {line['metric']} {line['value']:.3g} {line['unit']}"
                  f"{' (lower bound)' if 'bound' in line else ''}")
    if options.json:
        report.write_json(options.json, "paging", results, machine=where, command=" ".join(["run.py", *arguments]))
    if options.plot:
        trouble = report.plot(options.plot, bars, ["kernel swap", "farheap"],
                              f"Time at {options.levels[0]} % of the memory, plain run = 1", "times the plain run")
        if trouble:
            complain(trouble)
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
