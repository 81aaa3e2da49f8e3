#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What farcc costs and gains: the benchmark programs by plain clang -O2 and by farcc, of the same clang.

  ./dev bench translate
  ./dev bench translate --quick --programs kmeans,kmeans_batches
  ./dev bench translate --parts half --rounds 5 --json translate.json --plot translate.svg

Parts: build (compile time and growth), local (all data in memory, as plain processes), ample (the same under
`farheap run`), half (under `farheap run`, with half of the memory that the program needs).
Each pair of runs is of one turn, one after the other; the other one begins each turn. Results are compared.
Two threads are run by no program unless it is named: hints are said before loops, whoever runs them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "common"), HERE]
# pylint: disable=wrong-import-position
import builder
import farheap_command
import host_memory
import measured_run
import metrics
import report
from farheap_command import complain
from report import MIB

PARTS = ("build", "local", "ample", "half")
ROOM_BYTES = 512 * MIB  # ample: twice the peak, and this
SELDOM = 0.1  # seconds between looks at the memory of a run that is timed
REFERENCE, LEVEL = "clang", "hint"


class Case:
    """One way to call a program, and what its first run showed."""

    def __init__(self, name, programs, arguments, kmeans_like):
        self.name = name
        self.programs = programs  # by level
        self.arguments = arguments
        self.kmeans_like = kmeans_like
        self.checksum = None
        self.peak_bytes = 0

    def command(self, level):
        return [self.programs[level], *self.arguments]


def result_of(case, run):
    """What the program says of its run. Raises ValueError if it is not right."""
    if run.timed_out:
        raise ValueError(f"{case.name}: not done after {run.seconds:.0f} s")
    if run.status != 0:
        raise ValueError(f"{case.name}: exit status {run.status}: {run.stderr.decode('utf-8', 'replace')[-400:].strip()}")
    line = json.loads(run.stdout)
    if line["verified"] is False or case.checksum not in (None, line["checksum"]):
        raise ValueError(f"{case.name}: a wrong result: checksum {line['checksum']}, expected {case.checksum}")
    return line


class Bench:
    def __init__(self, options, tool, built):
        self.options = options
        self.tool = tool
        self.built = built
        self.parts = {part: metrics.Pairs() for part in ("local", "ample", "half")}
        self.compile_time = {level: metrics.Pairs() for level in ("none", LEVEL)}
        self.sizes, self.texts = {}, {}  # by level, by program
        self.counters = {}  # by level, case and counter: one number a turn
        self.wrong = []
        self.load = []

    # ---- building

    def build(self, sources):
        """The sources that could be built."""
        for level in (REFERENCE, LEVEL):
            self.built.compile(builder.COMMON, level)
        good = []
        for source in sources:
            try:
                self.build_one(source)
                good.append(source)
            except ValueError as error:
                complain(f"LEFT OUT: {source.name}: {error}")
        return good

    def build_one(self, source):
        levels = [REFERENCE, "none", LEVEL] if "build" in self.options.parts else [REFERENCE, LEVEL]
        for turn in range(self.options.rounds if "build" in self.options.parts else 1):
            self.progress(f"compiling {source.name}, {turn + 1}")
            shift = turn % len(levels)
            took = {level: self.built.compile(source.files, level) for level in levels[shift:] + levels[:shift]}
            for level in levels[1:]:
                if "build" in self.options.parts:
                    self.compile_time[level].add(source.name, took[REFERENCE], took[level])
        for level in (REFERENCE, LEVEL):
            self.built.link(source, level)
        if "build" in self.options.parts:
            self.measure_growth(source)

    def measure_growth(self, source):
        plain = self.built.text(source, REFERENCE)
        for level in (LEVEL, "count"):
            self.sizes.setdefault(level, {})[source.name] = self.built.report(source, level)
            self.texts.setdefault(level, {})[source.name] = plain, self.built.text(source, level)
        if self.sizes["count"][source.name][0] != self.sizes[LEVEL][source.name][0]:
            raise ValueError("level count and level hint do not start from the same instructions")
        self.built.compile(source.files, "count_executed")
        self.texts.setdefault("count_executed", {})[source.name] = plain, self.built.text(source, "count_executed")

    # ---- running

    def cases_of(self, sources):
        cases = []
        for source in sources:
            programs = {level: os.path.join(self.built.folder, f"{source.name}.{level}")
                        for level in (REFERENCE, LEVEL)}
            described = json.loads(subprocess.run([programs[REFERENCE], "--describe"], capture_output=True,
                                                  check=True).stdout)
            for one in described["cases"]:
                arguments = one["arguments"] + (one["quick_arguments"] if self.options.quick else [])
                cases.append(Case(one["name"], programs, arguments, source.kmeans_like))
        return cases

    def progress(self, text):
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def first_run(self, case):
        """By each level, with its verifier; the peak is that of plain clang."""
        for level in (LEVEL, REFERENCE):
            run = measured_run.measured_run([*case.command(level), "--verify"], timeout=self.options.timeout)
            case.checksum = result_of(case, run)["checksum"]
        # A verifier may need memory of its own: the budget is that of a run without.
        run = measured_run.measured_run(case.command(REFERENCE), timeout=self.options.timeout)
        result_of(case, run)
        case.peak_bytes = run.peak_bytes
        if case.peak_bytes < 16 * MIB:
            raise ValueError(f"{case.name}: its peak of {case.peak_bytes / MIB:.1f} MiB was not seen: it is too short")

    def command(self, part, case, level):
        if part == "local":
            return case.command(level)
        budget = case.peak_bytes // 2 if part == "half" else 2 * case.peak_bytes + ROOM_BYTES
        store = self.options.store or f"file:{self.options.folder}"
        return farheap_command.run_command(self.tool, budget, case.command(level), store=store)

    def run_one(self, part, case, level):
        """Seconds: of the timed phase at half of the memory, else of everything that the program's clock sees."""
        if part != "half" and not self.options.host_as_is:
            host_memory.bring_back(case.peak_bytes + ROOM_BYTES)
        run = measured_run.measured_run(self.command(part, case, level), timeout=self.options.timeout, interval=SELDOM)
        line = result_of(case, run)
        if part == "half":
            stats = farheap_command.parse_stats(run.stderr)
            for counter in ("bytes_read", "faults_store"):
                value = farheap_command.counter(stats, counter)
                self.counters.setdefault((level, case.name, counter), []).append(value)
        return line["seconds" if part == "half" else "total_seconds"]

    def turn(self, number, cases):
        for part in self.parts:
            if part not in self.options.parts:
                continue
            for case in cases:
                self.progress(f"turn {number + 1} of {self.options.rounds}: {part}, {case.name}")
                self.load.append(os.getloadavg()[0])
                order = (REFERENCE, LEVEL) if number % 2 == 0 else (LEVEL, REFERENCE)
                try:
                    took = {level: self.run_one(part, case, level) for level in order}
                except ValueError as error:
                    self.wrong.append(f"{part}: {error}")
                    complain(f"WRONG, does not count: {self.wrong[-1]}")
                    continue
                self.parts[part].add(case.name, took[REFERENCE], took[LEVEL])

    def run(self, cases):
        good = []
        for case in cases:
            self.progress(f"first run: {case.name}")
            try:
                self.first_run(case)
                good.append(case)
            except ValueError as error:
                self.wrong.append(str(error))
                complain(f"FAILED as a plain process: {error}")
        try:
            for number in range(self.options.rounds):
                self.turn(number, good)
        except SystemExit as stop:
            self.wrong.append(f"stopped with status {stop.code}")
            complain("STOPPED: what follows is what was measured until now")
        return good

    # ---- figures

    def results(self, cases):
        groups = {"kmeans_like": [case.name for case in cases if case.kmeans_like]}
        results = metrics.ratio_results(LEVEL, "slowdown_local", self.parts["local"])
        results += metrics.ratio_results(LEVEL, "slowdown_local_run", self.parts["ample"])
        results += metrics.ratio_results(LEVEL, "speedup_50_over_uninstrumented", self.parts["half"], True, groups)
        for level, pairs in self.compile_time.items():
            results += metrics.ratio_results(level, "compile_time_ratio", pairs)
        for level, sizes in self.sizes.items():
            results += metrics.growth_results(level, "instruction_growth", sizes)
        for level, sizes in self.texts.items():
            results += metrics.growth_results(level, "text_growth", sizes)
        for (level, case, counter), values in self.counters.items():
            middle, low, high = report.spread(values)
            scale, unit = (MIB, "MiB") if counter == "bytes_read" else (1, "faults")
            results.append(report.result(f"{level}.{case}", f"{counter}_50", middle / scale, unit, low / scale,
                                         high / scale))
        if self.load:
            results.append(report.result("machine", "load_average", *self.spread_of(self.load)))
        return results

    @staticmethod
    def spread_of(values):
        middle, low, high = report.spread(values)
        return middle, "processes", low, high


def ratio_text(found):
    middle, low, high = found
    return f"{middle:.3f} ({low:.3f}-{high:.3f})"


def tables(bench, cases, results):
    """(head, rows) of each table."""
    parts = {part: pairs for part, pairs in bench.parts.items() if pairs.values}
    if parts:
        head = {"local": "slowdown, plain", "ample": "slowdown, farheap run", "half": "speed-up at 50 %"}
        rows = []
        for case in cases:
            row = [case.name, f"{case.peak_bytes // MIB} MiB"]
            for part, pairs in parts.items():
                row.append(ratio_text(pairs.spread(case.name, part == "half")) if case.name in pairs.values else "-")
            if "half" in parts:
                for counter, scale in (("bytes_read", MIB), ("faults_store", 1)):
                    row.append(" / ".join(
                        f"{metrics.median_of(bench.counters[level, case.name, counter]) / scale:.0f}"
                        if (level, case.name, counter) in bench.counters else "-" for level in (REFERENCE, LEVEL)))
            rows.append(row)
        more = ["MiB read, clang / hint", "faults, clang / hint"] if "half" in parts else []
        yield ["program", "peak", *(head[part] for part in parts), *more], rows
    if "build" in bench.options.parts:
        rows = []
        for program in bench.sizes.get(LEVEL, {}):
            before, after = bench.sizes[LEVEL][program]
            rows.append([program, *(ratio_text(bench.compile_time[level].spread(program)) for level in ("none", LEVEL)),
                         before, f"{metrics.growth(before, after):+.1f} %",
                         *(f"{metrics.growth(*bench.texts[level][program]):+.1f} %"
                           for level in (LEVEL, "count_executed"))])
        yield ["program", "compile time, none", "compile time, hint", "instructions", "hint", "text, hint",
               "text, count_executed"], rows
    whole = [line for line in results if "." not in line["name"] or line["name"].endswith(".kmeans_like")]
    yield ["all", "metric", "value", "least", "greatest"], [
        [line["name"], line["metric"], *(f"{line[key]:.3f}" for key in ("value", "min", "max"))] for line in whole]


def panels(bench, cases):
    shown = [panel for panel in (
        report.Panel("All data in memory", "time by hint / time by plain clang", {
            case.name: {title: bench.parts[part].spread(case.name)[0] if case.name in bench.parts[part].values else None
                        for part, title in (("local", "plain process"), ("ample", "farheap run"))} for case in cases}
                     if bench.parts["local"].values or bench.parts["ample"].values else {}),
        report.Panel("Half of the memory", "time by plain clang / time by hint", {
            case.name: {"speed-up": bench.parts["half"].spread(case.name, True)[0]} for case in cases
            if case.name in bench.parts["half"].values})) if panel.groups]
    return shown


def parse_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="build folder (default: $FARHEAP_BUILD or build/release)")
    parser.add_argument("--rounds", type=int, default=3, help="turns (default: 3)")
    parser.add_argument("--programs", help="names of cases, separated by commas (default: all of one thread)")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {','.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--store", help="URI of the store (default: a file in --folder)")
    parser.add_argument("--folder", default="/var/tmp", help="for programs and store (default: /var/tmp)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds after which a run is given up")
    parser.add_argument("--host-as-is", action="store_true",
                        help="with enough memory: do not first have a hypervisor give back free memory that it took")
    parser.add_argument("--markdown", action="store_true", help="the tables as they stand in docs/benchmarks")
    parser.add_argument("--plot", metavar="FILE", help="a picture, .svg or .png")
    parser.add_argument("--json", metavar="FILE", help="write the figures here")
    options = parser.parse_args(arguments)
    options.parts = options.parts.split(",")
    strange = set(options.parts) - set(PARTS)
    if strange:
        parser.error(f"--parts: no {', '.join(sorted(strange))}; there are {', '.join(PARTS)}")
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    return options


def choose(options, cases):
    if not options.programs:
        return [case for case in cases if not case.name.endswith("_2")]
    wanted = options.programs.split(",")
    unknown = set(wanted) - {case.name for case in cases}
    if unknown:
        raise SystemExit(f"translate: no program called {', '.join(sorted(unknown))}; there are: "
                         + ", ".join(case.name for case in cases))
    return [case for case in cases if case.name in wanted]


def wanted_sources(options):
    """All, or those whose name begins one of the cases that are wanted."""
    sources = builder.find_sources()
    if not options.programs:
        return sources
    return [source for source in sources
            if any(name == source.name or name.startswith(source.name + "_") for name in options.programs.split(","))]


def main(arguments):
    options = parse_options(arguments)
    measured_run.unwind_on_signals()
    build = farheap_command.find_build(options.build)
    farcc, tool = builder.find_farcc(build), farheap_command.find_tool(build)
    if farcc is None:
        raise SystemExit(f"translate: no far++ in {build}/compiler: build it (ninja -C {build} farcc; it needs llvm-19-dev)")
    if tool is None and {"ample", "half"} & set(options.parts):
        raise SystemExit(f"translate: no tool in {build}: build it (ninja -C {build} farheap), or say --parts build,local")
    with tempfile.TemporaryDirectory(prefix="farheap-translate-", dir=options.folder) as folder:
        try:
            bench = Bench(options, tool, builder.Builder(farcc, folder))
            print(f"{report.machine(options.folder)}; {bench.built.version()}", file=sys.stderr)
            sources = bench.build(wanted_sources(options))
        except ValueError as error:
            raise SystemExit(f"translate: {error}") from error
        cases = choose(options, bench.cases_of(sources))
        if set(options.parts) - {"build"}:
            cases = bench.run(cases)
    bench.progress("")
    results = bench.results(cases)
    for head, rows in tables(bench, cases, results):
        if options.markdown:
            print(report.markdown_table(head, rows) + "\n")
        else:
            report.print_table(head, rows)
            print()
    if options.plot:
        trouble = report.plot(options.plot, panels(bench, cases))
        if trouble:
            complain(f"translate: {trouble}")
    if options.json:
        report.write_json(options.json, "translate", results, machine=report.machine(options.folder),
                          compiler=bench.built.version())
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
