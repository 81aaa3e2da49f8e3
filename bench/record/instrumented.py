# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a program of `farcc -ffar=record` takes longer than the same program by the same clang: processor time of whole
runs with the programs' small sizes, in turns, all data in memory. Results are compared."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "common"), os.path.join(HERE, "..", "translate")]
import builder  # noqa: E402
import report  # noqa: E402

LEVELS = ("clang", "record")


class Recorded:
    def __init__(self, build, folder, timeout):
        farcc = builder.find_farcc(build)
        if farcc is None:
            raise ValueError(f"there is no farcc in {build}: build it (ninja farcc)")
        self.built = builder.Builder(farcc, folder)
        self.folder, self.timeout = folder, timeout
        for level in LEVELS:
            self.built.compile(builder.COMMON, level)

    def run(self, words):
        """(processor seconds, output)"""
        before = os.times()
        done = subprocess.run(words, capture_output=True, text=True, timeout=self.timeout, check=False, cwd=self.folder,
                              env={**os.environ, "FARCC_PROFILE": os.path.join(self.folder, "counted.profile")})
        after = os.times()
        if done.returncode != 0:
            raise ValueError(f"{' '.join(words)}: status {done.returncode}\n{done.stderr[-2000:]}")
        return (after.children_user + after.children_system - before.children_user - before.children_system,
                json.loads(done.stdout))

    def programs(self, source):
        for level in LEVELS:
            self.built.compile(source.files, level)
        return {level: self.built.link(source, level) for level in LEVELS}

    def cases(self, programs):
        said = subprocess.run([programs["clang"], "--describe"], capture_output=True, text=True, check=True).stdout
        return json.loads(said)["cases"]

    def slowdowns(self, programs, case, rounds):
        ratios, checksums = [], set()
        for number in range(rounds):
            took = {}
            for level in LEVELS if number % 2 == 0 else reversed(LEVELS):
                took[level], line = self.run([programs[level], *case["quick_arguments"]])
                checksums.add(line["checksum"])
            ratios.append(took["record"] / took["clang"])
        if len(checksums) != 1:
            raise ValueError(f"{case['name']}: the recorded program has another result")
        return ratios


def measure(build, folder, names, rounds, timeout):
    """(rows of a table, results)"""
    recorded = Recorded(build, folder, timeout)
    rows, results, all_ratios = [], [], []
    for source in builder.find_sources():
        if source.kmeans_like or source.name not in names:
            continue
        programs = recorded.programs(source)
        for case in recorded.cases(programs):
            middle, low, high = report.spread(recorded.slowdowns(programs, case, rounds))
            all_ratios.append(middle)
            rows.append([case["name"], f"{middle:.2f} ({low:.2f}-{high:.2f})"])
            results.append(report.result(case["name"], "record_instrumented_slowdown", middle, "", low, high))
    if all_ratios:
        mean = report.geometric_mean(all_ratios)
        rows.append(["geometric mean", f"{mean:.2f}"])
        results.append(report.result("all", "record_instrumented_slowdown", mean, "", min(all_ratios), max(all_ratios)))
    return rows, results
