#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What farcc costs and gains: the benchmark programs by plain clang -O2 and by farcc, of the same clang.

  ./dev bench translate
  ./dev bench translate --quick --programs kmeans,kmeans_batches
  ./dev bench translate --levels guard_profiled --programs lookup_1 --parts half --store mem:
  ./dev bench translate --parts half --rounds 5 --json translate.json --plot translate.svg
  ./dev bench translate --from local.json,half.json,table61.json --plot docs/benchmarks/translate.svg

Parts: build (compile time and growth), local (all data in memory, as plain processes), ample (the same under
`farheap run`), half (under `farheap run`, with half of the memory that the program needs), table61 (seed 000's
functions, translated, on several stores: table61.py).
Each pair of runs is of one turn, one after the other; another one begins each turn. Results are compared.
Levels: hint, guard_all (every guard), guard_profiled (by a profile of a short run with half of its memory, which is made
while building), translate_heap_cached (the heap translator in mode cached, with three quarters of this machine's memory
where it is a plain process).
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
import pictures
import report
import table61
from farheap_command import complain
from report import MIB

PARTS = ("build", "local", "ample", "half", "table61")
ROOM_BYTES = 512 * MIB  # ample: twice the peak, and this
SELDOM = 0.1  # seconds between looks at the memory of a run that is timed
REFERENCE = "clang"
LEVELS = ("hint", "guard_all", "guard_profiled", "translate_heap_cached")
CACHE_BYTES = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4 * 3  # all data local: more than any needs
# How a program of this level is started; under `farheap run` it is in mode cached anyway.
TAKES = {"translate_heap_cached": ("env", "FARHEAP_FAR_MODE=cached", f"FARHEAP_FAR_CACHE={CACHE_BYTES}")}
COUNTERS = ("bytes_read", "faults_store", "guard_fetches")


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
        return [*TAKES.get(level, ()), self.programs[level], *self.arguments]


def described_cases(program):
    return json.loads(subprocess.run([program, "--describe"], capture_output=True, check=True,
                                     env={**os.environ, "FARCC_GUARDS": "/dev/null"}).stdout)["cases"]


def result_of(case, level, run):
    """What the program says of its run. Raises ValueError if it is not right."""
    who = f"{case.name}, {level}"
    if run.timed_out:
        raise ValueError(f"{who}: not done after {run.seconds:.0f} s")
    if run.status != 0:
        raise ValueError(f"{who}: exit status {run.status}: {run.stderr.decode('utf-8', 'replace')[-400:].strip()}")
    line = json.loads(run.stdout)
    if line["verified"] is False or case.checksum not in (None, line["checksum"]):
        raise ValueError(f"{who}: a wrong result: checksum {line['checksum']}, expected {case.checksum}")
    return line


class Bench:
    def __init__(self, options, tool, built):
        self.options = options
        self.tool = tool
        self.built = built
        self.levels = options.levels
        self.parts = {part: {level: metrics.Pairs() for level in self.levels} for part in ("local", "ample", "half")}
        self.compile_time = {level: metrics.Pairs() for level in ("none", *self.levels)}
        self.sizes, self.texts = {}, {}  # by level, by program
        self.counters = {}  # by level, case and counter: one number a turn
        self.wrong = []
        self.load = []

    # ---- building

    def build(self, sources):
        """The sources that could be built."""
        record = ["guard_record"] if builder.PROFILED in self.levels else []
        for level in [REFERENCE, *self.levels, *record]:
            if level != builder.PROFILED:
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
        if builder.PROFILED in self.levels:
            self.make_profile(source)
        levels = [REFERENCE, *(["none"] if "build" in self.options.parts else []), *self.levels]
        for turn in range(self.options.rounds if "build" in self.options.parts else 1):
            self.progress(f"compiling {source.name}, {turn + 1}")
            shift = turn % len(levels)
            took = {level: self.built.compile(source.files, level, source=source)
                    for level in levels[shift:] + levels[:shift]}
            for level in levels[1:]:
                if "build" in self.options.parts:
                    self.compile_time[level].add(source.name, took[REFERENCE], took[level])
        for level in (REFERENCE, *self.levels):
            self.built.link(source, level)
        if "build" in self.options.parts:
            self.measure_growth(source)

    def measure_growth(self, source):
        plain = self.built.text(source, REFERENCE)
        for level in (*self.levels, "count"):
            self.sizes.setdefault(level, {})[source.name] = self.built.report(source, level)
            self.texts.setdefault(level, {})[source.name] = plain, self.built.text(source, level)
        if any(self.sizes["count"][source.name][0] != self.sizes[level][source.name][0] for level in self.levels):
            raise ValueError("the levels do not start from the same instructions")
        self.built.compile(source.files, "count_executed")
        self.texts.setdefault("count_executed", {})[source.name] = plain, self.built.text(source, "count_executed")

    def make_profile(self, source):
        """Of all cases of one thread, with their small sizes and half of the memory that these need."""
        self.progress(f"profile of {source.name}")
        if self.tool is None:
            raise ValueError("a profile needs `farheap run`: build the tool (ninja farheap), or leave guard_profiled out")
        self.built.compile(source.files, "guard_record")
        program = self.built.link(source, "guard_record")
        for one in described_cases(program):
            if one["name"].endswith("_2"):
                continue
            command = [program, *one["arguments"], *one["quick_arguments"]]
            unrecorded = ["env", "FARCC_GUARDS=/dev/null", *command]
            run = measured_run.measured_run(unrecorded, timeout=self.options.timeout)
            if run.status != 0 or run.peak_bytes < 16 * MIB:
                raise ValueError(f"no profile: status {run.status}, peak {run.peak_bytes / MIB:.1f} MiB")
            recorded = ["env", f"FARCC_GUARDS={self.built.profile(source)}", *command]
            run = measured_run.measured_run(
                farheap_command.run_command(self.tool, run.peak_bytes // 2, recorded, store=self.store()),
                timeout=self.options.timeout, interval=SELDOM)
            if run.status != 0:
                raise ValueError(f"no profile: {run.stderr.decode('utf-8', 'replace')[-400:].strip()}")
        self.built.compile(builder.COMMON, builder.PROFILED, source=source)

    # ---- running

    def store(self):
        return self.options.store or f"file:{self.options.folder}"

    def cases_of(self, sources):
        cases = []
        for source in sources:
            programs = {level: os.path.join(self.built.folder, f"{source.name}.{level}")
                        for level in (REFERENCE, *self.levels)}
            for one in described_cases(programs[REFERENCE]):
                arguments = one["arguments"] + (one["quick_arguments"] if self.options.quick else [])
                cases.append(Case(one["name"], programs, arguments, source.kmeans_like))
        return cases

    def progress(self, text):
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def first_run(self, case):
        """By each level, with its verifier; the peak is that of plain clang."""
        for level in (*self.levels, REFERENCE):
            run = measured_run.measured_run([*case.command(level), "--verify"], timeout=self.options.timeout)
            case.checksum = result_of(case, level, run)["checksum"]
        # A verifier may need memory of its own: the budget is that of a run without.
        run = measured_run.measured_run(case.command(REFERENCE), timeout=self.options.timeout)
        result_of(case, REFERENCE, run)
        case.peak_bytes = run.peak_bytes
        if case.peak_bytes < 16 * MIB:
            raise ValueError(f"{case.name}: its peak of {case.peak_bytes / MIB:.1f} MiB was not seen: it is too short")

    def command(self, part, case, level):
        if part == "local":
            return case.command(level)
        budget = case.peak_bytes // 2 if part == "half" else 2 * case.peak_bytes + ROOM_BYTES
        return farheap_command.run_command(self.tool, budget, case.command(level), store=self.store())

    def run_one(self, part, case, level):
        """Seconds: of the timed phase at half of the memory, else of everything that the program's clock sees."""
        if part != "half" and not self.options.host_as_is:
            host_memory.bring_back(case.peak_bytes + ROOM_BYTES)
        run = measured_run.measured_run(self.command(part, case, level), timeout=self.options.timeout, interval=SELDOM)
        line = result_of(case, level, run)
        if part == "half":
            stats = farheap_command.parse_stats(run.stderr)
            for counter in COUNTERS:
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
                order = [REFERENCE, *self.levels]
                order = order[number % len(order):] + order[:number % len(order)]
                try:
                    took = {level: self.run_one(part, case, level) for level in order}
                except ValueError as error:
                    self.wrong.append(f"{part}: {error}")
                    complain(f"WRONG, does not count: {self.wrong[-1]}")
                    continue
                for level in self.levels:
                    self.parts[part][level].add(case.name, took[REFERENCE], took[level])

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
        groups["random_look_ups"] = [case.name for case in cases if case.name.startswith("lookup")]
        results = []
        for level in self.levels:
            results += metrics.ratio_results(level, "slowdown_local", self.parts["local"][level])
            results += metrics.ratio_results(level, "slowdown_local_run", self.parts["ample"][level])
            results += metrics.ratio_results(level, "speedup_50_over_uninstrumented", self.parts["half"][level], True,
                                             groups)
        for level, pairs in self.compile_time.items():
            results += metrics.ratio_results(level, "compile_time_ratio", pairs)
        for level, sizes in self.sizes.items():
            results += metrics.growth_results(level, "instruction_growth", sizes)
        for level, sizes in self.texts.items():
            results += metrics.growth_results(level, "text_growth", sizes)
        for (level, case, counter), values in self.counters.items():
            middle, low, high = report.spread(values)
            scale, unit = (MIB, "MiB") if counter == "bytes_read" else (1, "pages" if counter == "guard_fetches" else "faults")
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
    for level in bench.levels:
        parts = {part: pairs[level] for part, pairs in bench.parts.items() if pairs[level].values}
        if not parts:
            continue
        head = {"local": "slowdown, plain", "ample": "slowdown, farheap run", "half": "speed-up at 50 %"}
        rows = []
        for case in cases:
            row = [case.name, f"{case.peak_bytes // MIB} MiB"]
            for part, pairs in parts.items():
                row.append(ratio_text(pairs.spread(case.name, part == "half")) if case.name in pairs.values else "-")
            if "half" in parts:
                for counter, scale in (("bytes_read", MIB), ("faults_store", 1), ("guard_fetches", 1)):
                    row.append(" / ".join(
                        f"{metrics.median_of(bench.counters[one, case.name, counter]) / scale:.0f}"
                        if (one, case.name, counter) in bench.counters else "-" for one in (REFERENCE, level)))
            rows.append(row)
        more = [f"{what}, clang / {level}" for what in ("MiB read", "misses", "fetched by guards")] if "half" in parts else []
        yield [f"program, {level}", "peak", *(head[part] for part in parts), *more], rows
    if "build" in bench.options.parts:
        rows = []
        for program in bench.sizes.get("count", {}):
            rows.append([program,
                         *(ratio_text(bench.compile_time[level].spread(program)) for level in ("none", *bench.levels)),
                         bench.sizes["count"][program][0],
                         *(f"{metrics.growth(*bench.sizes[level][program]):+.1f} %" for level in bench.levels),
                         *(f"{metrics.growth(*bench.texts[level][program]):+.1f} %"
                           for level in (*bench.levels, "count_executed"))])
        yield ["program", *(f"compile time, {level}" for level in ("none", *bench.levels)), "instructions",
               *bench.levels, *(f"text, {level}" for level in (*bench.levels, "count_executed"))], rows
    whole = [line for line in results if "." not in line["name"] or line["name"].split(".")[1] in pictures.GROUPS]
    yield ["all", "metric", "value", "least", "greatest"], [
        [line["name"], line["metric"], *(f"{line[key]:.3f}" for key in ("value", "min", "max"))] for line in whole]


def parse_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="build folder (default: $FARHEAP_BUILD or build/release)")
    parser.add_argument("--rounds", type=int, default=3, help="turns (default: 3)")
    parser.add_argument("--programs", help="names of cases, separated by commas (default: all of one thread)")
    parser.add_argument("--levels", default=",".join(LEVELS), help=f"some of {','.join(LEVELS)} (default: all)")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {','.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--store", help="URI of the store (default: a file in --folder)")
    parser.add_argument("--folder", default="/var/tmp", help="for programs and store (default: /var/tmp)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds after which a run is given up")
    parser.add_argument("--host-as-is", action="store_true",
                        help="with enough memory: do not first have a hypervisor give back free memory that it took")
    parser.add_argument("--markdown", action="store_true", help="the tables as they stand in docs/benchmarks")
    parser.add_argument("--plot", metavar="FILE", help="a picture of all parts that were measured, .svg or .png")
    parser.add_argument("--from", metavar="FILE,...", dest="earlier",
                        help="measure nothing: --plot what earlier runs wrote with --json")
    parser.add_argument("--json", metavar="FILE", help="write the figures here")
    options = parser.parse_args(arguments)
    for name, known in (("parts", PARTS), ("levels", LEVELS)):
        chosen = getattr(options, name).split(",")
        setattr(options, name, chosen)
        if strange := set(chosen) - set(known):
            parser.error(f"--{name}: no {', '.join(sorted(strange))}; there are {', '.join(known)}")
    if options.earlier and not options.plot:
        parser.error("--from: say what to --plot to")
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


def draw(path, results):
    trouble = report.plot(path, pictures.panels(results))
    if trouble:
        complain(f"translate: {trouble}")
    return 1 if trouble else 0


def main(arguments):
    options = parse_options(arguments)
    if options.earlier:
        try:
            return draw(options.plot, pictures.read_results(options.earlier.split(",")))
        except (OSError, ValueError) as error:
            raise SystemExit(f"translate: {error}") from error
    measured_run.unwind_on_signals()
    build = farheap_command.find_build(options.build)
    farcc, tool = builder.find_farcc(build), farheap_command.find_tool(build)
    if farcc is None:
        raise SystemExit(f"translate: no far++ in {build}/compiler: build it (ninja -C {build} farcc; it needs llvm-19-dev)")
    if tool is None and ({"ample", "half"} & set(options.parts) or builder.PROFILED in options.levels):
        raise SystemExit(f"translate: no tool in {build}: build it (ninja -C {build} farheap), or say --parts build,local "
                         "--levels hint,guard_all")
    with tempfile.TemporaryDirectory(prefix="farheap-translate-", dir=options.folder) as folder:
        try:
            bench = Bench(options, tool, builder.Builder(farcc, folder))
            print(f"{report.machine(options.folder)}; {bench.built.version()}", file=sys.stderr)
            of_seed = {}
            if "table61" in options.parts:
                options.build_folder = build
                of_seed = table61.measure(options, bench.built, tool, folder, bench.progress)
            others = set(options.parts) - {"table61"}
            sources = bench.build(wanted_sources(options)) if others else []
        except ValueError as error:
            raise SystemExit(f"translate: {error}") from error
        cases = choose(options, bench.cases_of(sources)) if others else []
        if others - {"build"}:
            cases = bench.run(cases)
    bench.progress("")
    results = [*bench.results(cases), *table61.results_of(of_seed)]
    of_table61 = [table61.table(of_seed), table61.verdicts(of_seed)] if of_seed else []
    for head, rows in [*(tables(bench, cases, results) if others else []), *of_table61]:
        if options.markdown:
            print(report.markdown_table(head, rows) + "\n")
        else:
            report.print_table(head, rows)
            print()
    if options.plot:
        draw(options.plot, results)
    if options.json:
        report.write_json(options.json, "translate", results, machine=report.machine(options.folder),
                          compiler=bench.built.version())
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
