#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What it costs to record a program, and how near the curve of its misses is to the exact one.

  ./dev bench record                                      # the programs of bench/paging; a quarter of an hour
  ./dev bench record --programs lbm --rounds 5 --json record.json
  ./dev bench record --curves none                        # what it costs alone
  ./dev bench record --recorders instrumented             # programs of farcc -ffar=record alone

Slower: `farheap record` beside `farheap run`, with more memory than the program needs, and with 70 % of it. Curves: LRU's
and an oracle's misses at the sizes that `farheap report` tells, beside those of the whole order of pages, which
`record_pages` records one page a fault (minutes). Own: what the report says that Farheap's own pager reads, and how long
that takes, without a plan and with one, beside runs with about 50, 70 and 90 % of the memory. Instrumented: programs of
`farcc -ffar=record` beside those of the same clang."""
import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "common")]
sys.path.insert(0, HERE)
import instrumented  # noqa: E402
import measured_run  # noqa: E402
import report  # noqa: E402

PAGE = 4096
MIB = 1 << 20
ENOUGH = 1024 * MIB
PROGRAMS = ("lbm", "multigrid", "cg", "fft3d", "bucketsort", "qft", "pagerank", "objects", "hashjoin")
CURVES = ("lbm", "multigrid", "cg", "fft3d", "qft", "pagerank")


class Bench:
    def __init__(self, build, folder, timeout):
        self.farheap = os.path.join(build, "tool", "farheap")
        self.trace_optimum = os.path.join(build, "bench", "policy", "trace_optimum")
        self.programs = os.path.join(build, "bench", "paging", "programs")
        self.folder, self.timeout = folder, timeout

    def run(self, *words):
        """The report of the run, as --stats=json gives it, and what the program printed."""
        done = subprocess.run([self.farheap, *words], capture_output=True, text=True, timeout=self.timeout, check=False,
                              cwd=self.folder)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}: status {done.returncode}\n{done.stderr[-2000:]}")
        return json.loads(done.stderr.strip().splitlines()[-1]), done.stdout

    def tool(self, *words):
        subprocess.run([self.farheap, *words], capture_output=True, timeout=self.timeout, check=True, cwd=self.folder)

    def seconds(self, verb, program, memory):
        more = ["-o", os.path.join(self.folder, "profile")] if verb == "record" else []
        stats, output = self.run(verb, "--memory", str(memory), "--stats=json", *more, "--",
                                 os.path.join(self.programs, program))
        return stats["seconds"], json.loads(output)["checksum"]

    def slowdowns(self, program, memory, rounds):
        """Each a recorded run over a plain one beside it, in turns."""
        ratios, checksums = [], set()
        for number in range(rounds):
            took = {}
            for verb in (("run", "record"), ("record", "run"))[number % 2]:
                took[verb], checksum = self.seconds(verb, program, memory)
                checksums.add(checksum)
            ratios.append(took["record"] / took["run"])
        if len(checksums) != 1:
            sys.exit(f"{program}: the recorded run has another result")
        return ratios

    def peak(self, program):
        stats, _ = self.run("run", "--memory", str(ENOUGH), "--stats=json", "--", os.path.join(self.programs, program))
        return stats["peak_bytes"]

    def sampled(self, program):
        profile = os.path.join(self.folder, "profile")
        self.run("record", "-o", profile, "--memory", str(ENOUGH), "--stats=json", "--",
                 os.path.join(self.programs, program))
        done = subprocess.run([self.farheap, "report", profile, "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["memory"]

    def exact(self, program, sizes):
        """{misses of the report: its numbers in each of the sizes}, and how many uses there were; None if that takes too
        long."""
        trace = os.path.join(self.folder, "pages")
        try:
            self.run("run", "--memory", str(ENOUGH), "--stats=json", "--set", f"record_pages={trace}", "--",
                     os.path.join(self.programs, program))
        except subprocess.TimeoutExpired:
            return None
        file = next(name for name in os.listdir(self.folder) if name.startswith("pages."))
        path = os.path.join(self.folder, file)
        done = subprocess.run([self.trace_optimum, path, *[str(size) for size in sizes]], capture_output=True, text=True,
                              check=True)
        os.remove(path)
        found = json.loads(done.stdout)
        return {misses: [one[read] / PAGE for one in found["optima"]]
                for misses, read in (("lru_misses", "lru_bytes_read"), ("best_misses", "bytes_read"))}, found["uses"]


def curve_error(bench, program):
    """{misses: mean and largest absolute difference of the miss ratio}; the sample; None: not known, and why."""
    memory = bench.sampled(program)
    if memory["missing"]:
        return None, memory["missing"]
    points = memory["points"]
    exact = bench.exact(program, [point["memory_bytes"] for point in points])
    if exact is None:
        return None, f"not recorded in {bench.timeout} s"
    exact_misses, uses = exact
    found = {}
    for misses, there in exact_misses.items():
        errors = [abs(point[misses] - one) / uses for point, one in zip(points, there)]
        found[misses] = (statistics.mean(errors), max(errors))
    return (found, memory["sampled_pages"], memory["uses"], uses), ""


@dataclasses.dataclass
class Told:
    """What the report said of a run, and what came of it."""
    misses: float
    read: float  # pages
    misses_error: float  # in shares of all uses
    said_seconds: float
    seconds: float

    @property
    def seconds_error(self):
        return abs(self.said_seconds - self.seconds) / self.seconds


BESIDE = 4 * MIB  # what a process has beside its heap, of which the report's sizes are
SHARES = (0.5, 0.7, 0.9)


def own_errors(bench, program):
    """{"farheap" or "plan": one Told for each share of the memory}; None: not known, and why."""
    memory = bench.sampled(program)
    if memory["missing"]:
        return None, memory["missing"]
    uses = memory["uses"] * memory["pages_for_one"]
    ways = {"farheap": ("farheap", ())}
    if not memory["no_plan"]:
        plan = os.path.join(bench.folder, "plan")
        bench.tool("plan", os.path.join(bench.folder, "profile"), "-o", plan, "--anyway")
        ways["plan"] = ("planned", ("--plan", plan))
    found = {way: [] for way in ways}
    for share in SHARES:
        point = min(memory["points"], key=lambda one: abs(one["memory_bytes"] - share * memory["whole_bytes"]))
        for way, (key, options) in ways.items():
            stats, _ = bench.run("run", "--memory", str(point["memory_bytes"] + BESIDE), *options, "--stats=json", "--",
                                 os.path.join(bench.programs, program))
            read = stats["bytes_read"] / PAGE
            found[way].append(Told(point[f"{key}_misses"], read, abs(point[f"{key}_misses"] - read) / uses,
                                   point[f"{key}_seconds"], stats["seconds"]))
    return found, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("FARHEAP_BUILD", "build/release"))
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--recorders", default="sampled,instrumented")
    parser.add_argument("--curves", default=",".join(CURVES), help="programs, or none")
    parser.add_argument("--own", default=",".join(CURVES), help="programs, or none")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--timeout", type=int, default=300, help="seconds a run may take")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    measured_run.unwind_on_signals()
    costs, curves, own, results, all_ratios = [], [], [], [], {"enough": [], "70": []}
    with tempfile.TemporaryDirectory() as folder:
        print(report.machine(folder))
        bench = Bench(os.path.abspath(arguments.build), folder, arguments.timeout)
        recorders = arguments.recorders.split(",")
        counted = []
        if "instrumented" in recorders:
            try:
                counted, more = instrumented.measure(os.path.abspath(arguments.build), folder,
                                                     arguments.programs.split(","), arguments.rounds, arguments.timeout)
            except ValueError as error:
                sys.exit(str(error))
            results += more
        for program in filter(None, arguments.programs.split(",") if "sampled" in recorders else ()):
            row = [program]
            for level, memory in (("enough", ENOUGH), ("70", bench.peak(program) * 7 // 10)):
                ratios = bench.slowdowns(program, memory, arguments.rounds)
                middle, low, high = report.spread(ratios)
                all_ratios[level].append(middle)
                row.append(f"{middle:.2f} ({low:.2f}-{high:.2f})")
                results.append(report.result(program, f"record_sampled_slowdown_{level}", middle, "", low, high))
            costs.append(row)
        for program in () if arguments.curves == "none" or "sampled" not in recorders else arguments.curves.split(","):
            found, why = curve_error(bench, program)
            if found is None:
                curves.append([program, why, "-", "-", "-"])
                continue
            errors, pages, uses, all_uses = found
            curves.append([program, *[f"{mean:.3f}; {most:.3f}" for mean, most in errors.values()],
                           f"{pages} pages, {uses} uses", f"{all_uses:,}"])
            for name, misses in (("curve_mean_error", "lru_misses"), ("oracle_curve_mean_error", "best_misses")):
                results.append(report.result(program, name, errors[misses][0], ""))
        for program in () if arguments.own == "none" or "sampled" not in recorders else arguments.own.split(","):
            found, why = own_errors(bench, program)
            if found is None:
                own.append([program, why, "-", "-", "-", "-", "-"])
                continue
            for way, told in found.items():
                misses, seconds = [one.misses_error for one in told], [one.seconds_error for one in told]
                own.append([program, way, *[f"{one.misses:,.0f}; {one.read:,.0f}; {one.said_seconds:.2f}; "
                                            f"{one.seconds:.2f}" for one in told],
                            f"{statistics.mean(misses):.3f}; {max(misses):.3f}",
                            f"{statistics.mean(seconds):.2f}; {max(seconds):.2f}"])
                results.append(report.result(program, f"{way}_curve_mean_error", statistics.mean(misses), ""))
                results.append(report.result(program, f"{way}_seconds_mean_error", statistics.mean(seconds), ""))
    for level, ratios in all_ratios.items():
        if ratios:
            results.append(report.result("all", f"record_sampled_slowdown_{level}", report.geometric_mean(ratios), "",
                                         min(ratios), max(ratios)))
    costs.append(["geometric mean", *[f"{report.geometric_mean(ratios):.2f}" if ratios else "-"
                                      for ratios in all_ratios.values()]])
    table = (lambda head, rows: print(report.markdown_table(head, rows) + "\n")) if arguments.markdown else \
        report.print_table
    if "sampled" in recorders:
        table(["program", "enough memory", "70 % of it"], costs)
    if counted:
        table(["program", "counted by -ffar=record"], counted)
    if curves:
        table(["program", "LRU's miss ratio: mean error; largest", "an oracle's", "sample", "uses, exact"], curves)
    if own:
        table(["program", "way", *[f"{share:.0%}: pages read: said; counted; s: said; measured" for share in SHARES],
               "error of pages: mean; largest", "of seconds"], own)
    if arguments.json:
        report.write_json(arguments.json, "record", results)


if __name__ == "__main__":
    main()
