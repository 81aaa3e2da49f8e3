#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph (R-MAT, 16 edges for each vertex, both directions) is built edge by edge, with each allocator.

  ./dev bench graph
  ./dev bench graph --scale 17 --scale 20 --rounds 5 --folder /mnt/nvme --json graph.json --plot graph.svg
  FARHEAP_METALL=/where/metall/include ./dev bench graph

Each run is a process of its own; within a round all take turns. farheap, bip (Boost.Interprocess) and metall keep the
graph in a file of the folder: NAME is the time until it is built, NAME_commit until it is durable, too. jemalloc,
mimalloc, glibc and memkind (in a file, but for this process only) are volatile. All have to build the same graph.
"""

import argparse
import glob
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "common"))
import report  # noqa: E402  (it lies beside the programs, not in a package)

VOLATILE = ("jemalloc", "mimalloc", "glibc", "memkind")


def find_library(name):
    found = sorted(glob.glob(f"/usr/lib/*/{name}") + glob.glob(f"/usr/lib/{name}"))
    return found[0] if found else None


def subjects(build):
    """(name, program, library to preload or None), those that are there."""
    def program(name):
        return os.path.join(build, "bench/graph", f"graph_{name}")

    def absent(name, why):
        print(f"graph: NOT MEASURED: {name} ({why})", file=sys.stderr)

    for name in ("farheap", "malloc"):
        if not os.path.isfile(program(name)):
            sys.exit(f"graph: no program {program(name)}: build it (ninja -C {build} graph_{name})")
    chosen = [("farheap", program("farheap"), None)]
    for name, file, package in (("jemalloc", "libjemalloc.so.2", "libjemalloc2"),
                                ("mimalloc", "libmimalloc.so.2*", "libmimalloc2.0")):
        library = find_library(file)
        if library:
            chosen.append((name, program("malloc"), library))
        else:
            absent(name, f"apt install {package}")
    chosen.append(("glibc", program("malloc"), None))
    for name, why in (("memkind", "apt install libmemkind-dev"), ("bip", "apt install libboost1.81-dev"),
                      ("metall", "left out: FARHEAP_METALL does not say where its headers are")):
        if os.path.isfile(program(name)) and (name != "metall" or os.environ.get("FARHEAP_METALL")):
            chosen.append((name, program(name), None))
        else:
            absent(name, why)
    return chosen


def measure(subject, folder, scale, threads, seed):
    name, program, library = subject
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    if library:
        environment["LD_PRELOAD"] = library
    with tempfile.TemporaryDirectory(prefix="graph-", dir=folder) as place:
        done = subprocess.run([program, place, str(scale), str(threads), str(seed)], env=environment,
                              capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode != 0 or "LD_PRELOAD" in done.stderr:
        sys.exit(f"graph: {name} failed ({done.returncode}): {done.stderr.strip()}")
    return {metric: float(value) for metric, value in (line.split() for line in done.stdout.splitlines())}


class Measured:
    """values[scale, threads][name]: seconds, one a round; more[scale, threads][metric]: what farheap says besides."""

    def __init__(self):
        self.values, self.more = {}, {}

    def round(self, chosen, folder, scale, threads, turn):
        values = self.values.setdefault((scale, threads), {})
        graphs = {}
        for shift in range(len(chosen)):
            subject = chosen[(turn + shift) % len(chosen)]
            name = subject[0]
            if sys.stderr.isatty():
                print(f"\r\033[Kscale {scale}, {threads} threads, round {turn + 1}: {name}", end="", file=sys.stderr,
                      flush=True)
            found = measure(subject, folder, scale, threads, turn + 1)
            graphs[name] = found["vertices"], found["checksum"]
            values.setdefault(name, []).append(found["seconds"])
            if "seconds_with_commit" in found:
                values.setdefault(f"{name}_commit", []).append(found["seconds_with_commit"])
            if name == "farheap":
                for metric in ("file_over_live", "length_over_live", "live_mib", "faults"):
                    self.more.setdefault((scale, threads), {}).setdefault(metric, []).append(found[metric])
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        if len(set(graphs.values())) != 1:
            sys.exit(f"graph: the graphs differ: {graphs}")

    def ratios(self, of, to):
        """The other's time over ours, one median for each scale and number of threads. `to` chooses the other."""
        found = []
        for values in self.values.values():
            other = to(values)
            if of in values and other:
                found.append(report.spread([b / a for a, b in zip(values[of], values[other])])[0])
        return found


def fastest_volatile(values):
    there = [name for name in VOLATILE if name in values]
    return min(there, key=lambda name: report.spread(values[name])[0])


def results_of(measured):
    results = []
    largest = max(scale for scale, _ in measured.values)
    for (scale, threads), values in measured.values.items():
        for name, seconds in values.items():
            found = report.spread(seconds)
            results.append(report.result(f"{name}_{threads}", f"seconds_scale{scale}", found[0], "s", *found[1:]))
            if scale == largest:
                results.append(report.result(f"{name}_{threads}", "seconds", found[0], "s", *found[1:]))
    for metric, of, to in (
            ("ratio_to_fastest_volatile", "farheap", fastest_volatile),
            ("ratio_to_bip", "farheap", lambda values: "bip" if "bip" in values else None),
            ("ratio_to_bip_with_commit", "farheap_commit", lambda values: "bip_commit" if "bip" in values else None),
            ("ratio_to_metall", "farheap", lambda values: "metall" if "metall" in values else None)):
        ratios = measured.ratios(of, to)
        if ratios:
            results.append(report.result("all", metric, report.geometric_mean(ratios), "ratio", min(ratios),
                                         max(ratios)))
    for metric, unit in (("file_over_live", "ratio"), ("length_over_live", "ratio"), ("live_mib", "MiB"),
                         ("faults", "faults")):
        found = report.spread([value for (scale, _), more in measured.more.items() if scale == largest
                               for value in more[metric]])
        results.append(report.result("all", metric, found[0], unit, *found[1:]))
    return results


def print_tables(measured, results):
    for (scale, threads), values in measured.values.items():
        ours = report.spread(values["farheap"])[0]
        print(f"\nscale {scale}, {threads} thread{'s' if threads > 1 else ''}")
        report.print_table(["subject", "until it is built", "over farheap"],
                           [[name, report.seconds_text(seconds), f"{report.spread(seconds)[0] / ours:.2f}"]
                            for name, seconds in values.items()])
    print()
    report.print_table(["all", "value", "least", "greatest"],
                       [[line["metric"], f"{line['value']:.3f}", f"{line['min']:.3f}", f"{line['max']:.3f}"]
                        for line in results if line["name"] == "all"])


def panels(measured):
    """Seconds, by scale and threads; beside farheap."""
    largest = max(scale for scale, _ in measured.values)
    names = list(dict.fromkeys(name for values in measured.values.values() for name in values))
    groups = {f"2^{scale} vertices, {threads} thread{'s' if threads > 1 else ''}":
              {name: report.spread(values[name])[0] / report.spread(values["farheap"])[0] for name in names}
              for (scale, threads), values in measured.values.items()}
    return [report.Panel(f"Building a graph of up to 2^{largest} vertices", "time / time of farheap", groups)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="the build folder")
    parser.add_argument("--scale", type=int, action="append", help="2^SCALE vertices (may be repeated; default: 17, 20)")
    parser.add_argument("--threads", type=int, action="append", help="may be repeated (default: 1, 2)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: 3)")
    parser.add_argument("--minutes", type=float, default=4.5,
                        help="no further round is begun that would end later, but for the first (default: 4.5)")
    parser.add_argument("--only", action="append", help="only this subject, beside farheap (may be repeated)")
    parser.add_argument("--folder", default="/var/tmp", help="for the files of the graphs (default: /var/tmp)")
    parser.add_argument("--plot", metavar="FILE", help="a picture, .svg or .png")
    parser.add_argument("--json", metavar="FILE", help="write the figures here")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    chosen = subjects(options.build)
    if options.only:
        chosen = [one for one in chosen if one[0] in ("farheap", *options.only)]
    if not any(name in VOLATILE for name, _, _ in chosen):
        parser.error("--only: at least one of " + ", ".join(VOLATILE))
    print(report.machine(options.folder), file=sys.stderr)
    measured = Measured()
    began = time.monotonic()
    for turn in range(options.rounds):
        took = time.monotonic() - began
        if turn > 0 and took * (turn + 1) / turn > options.minutes * 60:
            print(f"graph: {turn} of {options.rounds} rounds: the next one would end after {options.minutes} minutes",
                  file=sys.stderr)
            break
        for scale in options.scale or [17, 20]:
            for threads in options.threads or [1, 2]:
                measured.round(chosen, options.folder, scale, threads, turn)
    results = results_of(measured)
    print_tables(measured, results)
    if options.plot:
        why = report.plot(options.plot, panels(measured))
        if why:
            print(f"graph: {why}", file=sys.stderr)
    if options.json:
        report.write_json(options.json, "graph", results)


if __name__ == "__main__":
    main()
