#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far the pager and the allocator go with more threads: beside the bare program of bench/faults, kernel swap,
jemalloc, mimalloc and glibc, in one run.

  ./dev bench cores --json FILE
  ./dev bench cores --threads 1,2 --size 512M --misses 20000 --only lookup,bare
  ./dev bench cores --set handlers=16

lookup  random look-ups at --level per cent of --size, with the store on tmpfs and on the disk: misses a second
swap    the look-ups of the disk under kernel swap with the same memory (needs root)
bare    the pager without policy and store of ./dev bench faults, with the same memory and the same share of it
triad   a = b + s * c over --triad-size, at --triad-level per cent, store on tmpfs: bytes in and out a second
malloc  ns for a remote free, and for an allocate-and-free pair, at --malloc-threads; page faults and context switches,
        those of the start included, for each object
limits  once, not timed: what the threads of the look-ups use and wait for, for each miss

Every figure is a median over the rounds, with the least and the greatest; all take turns within a round. Look-ups and
triad must give the result that a run with all of its memory gives, which its verifier has checked. Names are NAME_THREADS.
"""

import argparse
import importlib.util
import json
import os
import resource
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "common"))
# pylint: disable=wrong-import-position
import disk_speed
import farheap_command
import measured_run
import memory_group
import report
import swap_area
import thread_watch
from farheap_command import complain
from report import MIB

PARTS = ("lookup", "swap", "bare", "triad", "malloc", "limits")
PAGE = 4096
UNITS = {"misses_per_second": "misses/s", "touches_per_second": "touches/s", "bytes_per_second": "bytes/s",
         "over_bare": "ratio", "over_swap": "ratio", "over_one_thread": "ratio", "rescues_per_miss": "faults",
         "switches_per_miss": "switches", "busiest_runtime_thread": "processors", "runtime_threads": "threads",
         "instructions_per_miss": "instructions", "system_calls_per_miss": "calls", "futex_calls_per_miss": "calls",
         "kernel_lock_waits_per_miss": "waits", "faults_per_remote_free": "faults", "faults_per_pair": "faults",
         "switches_per_remote_free": "switches", "switches_per_pair": "switches", "remote_free_ns": "ns", "pair_ns": "ns", "seconds": "s", "read_mb_s": "MB/s"}
PAGE_CLUSTERS = (0, 3)  # of kernel swap: the better one of the first round goes on


def load_alloc():
    """bench/alloc's driver: its list of allocators and how one is measured."""
    spec = importlib.util.spec_from_file_location("alloc_run", os.path.join(HERE, "..", "alloc", "run.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bytes_of(text):
    units = {"M": MIB, "G": 1 << 30}
    try:
        return int(text[:-1]) * units[text[-1]]
    except (KeyError, ValueError, IndexError):
        raise argparse.ArgumentTypeError(f"'{text}' is no size such as 512M or 2G") from None


def numbers(text):
    return [int(word) for word in text.split(",")]


def bare_rows(threads):
    """HANDLERS, USERFAULTFDS, EVICTORS that are tried beside so many threads: the best is the bound."""
    half = max(1, threads // 2)
    rows = [(threads, 1, 1), (half, 1, max(1, threads // 8)), (half, half, max(1, threads // 8)),
            (threads, threads, max(1, threads // 4))]
    return list(dict.fromkeys(rows))


def steps_for(misses, level):
    """Look-ups of which about so many miss."""
    return round(misses * 100 / (100 - level))


def ratio(above, below):
    """(value, least, greatest) of the medians' ratio."""
    top, top_low, top_high = report.spread(above)
    bottom, bottom_low, bottom_high = report.spread(below)
    return top / bottom, top_low / bottom_high, top_high / bottom_low


def derived(values, threads):
    """Metrics that follow from others: {(name, metric): (value, least, greatest)}."""
    found = {}

    def add(name, metric, above, below):
        if above and below:
            found[name, metric] = ratio(above, below)

    for count in threads:
        rows = [f"bare_{count}_{'_'.join(map(str, row))}" for row in bare_rows(count)]
        rows = [row for row in rows if (row, "misses_per_second") in values]
        best = max(rows, key=lambda row: report.spread(values[row, "misses_per_second"])[0], default=None)
        bare = values.get((best, "misses_per_second"))
        for metric in ("misses_per_second", "cpu_us_per_miss", "switches_per_miss"):
            if (best, metric) in values:
                found[f"bare_{count}", metric] = report.spread(values[best, metric])
        for place in ("tmpfs", "disk"):
            here = values.get((f"lookup_{place}_{count}", "misses_per_second"))
            add(f"lookup_{place}_{count}", "over_bare", here, bare)
            if count != 1:
                add(f"lookup_{place}_{count}", "over_one_thread", here, values.get((f"lookup_{place}_1", "misses_per_second")))
        add(f"lookup_disk_{count}", "over_swap", values.get((f"swap_{count}", "seconds")),
            values.get((f"lookup_disk_{count}", "seconds")))
        if count != 1:
            add(f"triad_tmpfs_{count}", "over_one_thread", values.get((f"triad_tmpfs_{count}", "bytes_per_second")),
                values.get(("triad_tmpfs_1", "bytes_per_second")))
    return found


class Bench:
    def __init__(self, options):
        self.options = options
        self.build = farheap_command.find_build(options.build)
        self.tool = farheap_command.find_tool(self.build)
        self.values = {}  # (name, metric) -> figures
        self.checksums = {}  # (program, steps) -> of a verified run
        self.clusters = {}  # threads -> page cluster that was best
        self.alloc = load_alloc()
        self.groups = memory_group.unavailable() is None

    def add(self, name, metric, value):
        self.values.setdefault((name, metric), []).append(value)

    # ---- programs

    def command(self, program, threads, steps):
        path = {"lookup": "bench/paging/programs/lookup", "triad": "bench/cores/triad"}[program]
        size = self.options.size if program == "lookup" else self.options.triad_size
        return [os.path.join(self.build, path), "--size", f"{size // MIB}M", "--steps", str(steps),
                "--threads", str(threads)]

    def expected(self, program, steps):
        """What the program must answer: told by a run with all of its memory and its verifier."""
        if (program, steps) not in self.checksums:
            command = [*self.command(program, self.options.threads[-1], steps), "--verify"]
            run = measured_run.measured_run(command, timeout=self.options.timeout, interval=1)
            self.checksums[program, steps] = self.answer(run, command)["checksum"]
        return self.checksums[program, steps]

    @staticmethod
    def answer(run, command):
        if run.status != 0 or run.timed_out:
            raise ValueError(f"{' '.join(command)}: exit status {run.status}{', given up' if run.timed_out else ''}: "
                             f"{run.stderr.decode('utf-8', 'replace')[-400:].strip()}")
        return json.loads(run.stdout)

    def checked(self, run, command, program, steps):
        answer = self.answer(run, command)
        if answer["checksum"] != self.expected(program, steps):
            raise ValueError(f"{' '.join(command)}: WRONG RESULT {answer['checksum']}")
        return answer

    def under_farheap(self, program, place, level, threads, steps, watch=None):
        """(the program's answer, the tool's statistics)"""
        size = self.options.size if program == "lookup" else self.options.triad_size
        folder = {"tmpfs": self.options.tmpfs, "disk": self.options.folder}[place]
        command = farheap_command.run_command(self.tool, size * level // 100, self.command(program, threads, steps),
                                              store=f"file:{folder}", settings=self.options.set)
        if watch:
            run, watch.events = thread_watch.watched_run(command, watch, self.options.timeout)
        else:
            run = measured_run.measured_run(command, timeout=self.options.timeout, interval=1)
        return self.checked(run, command, program, steps), farheap_command.parse_stats(run.stderr)

    # ---- what is measured

    def lookup_steps(self, place, threads):
        misses = self.options.misses * (min(threads, 8) if place == "tmpfs" else min(threads, 4) * 0.6)
        return steps_for(misses, self.options.level)

    def lookup(self, place, threads):
        steps = self.lookup_steps(place, threads)
        answer, stats = self.under_farheap("lookup", place, self.options.level, threads, steps)
        name = f"lookup_{place}_{threads}"
        misses = farheap_command.counter(stats, "faults_store")
        self.add(name, "misses_per_second", misses / answer["seconds"])
        self.add(name, "seconds", answer["seconds"])
        self.add(name, "rescues_per_miss", farheap_command.counter(stats, "faults_probation") / max(misses, 1))

    def swap(self, threads, turn):
        steps = self.lookup_steps("disk", threads)
        command = self.command("lookup", threads, steps)
        # Page tables and program text are charged to a group, too.
        limit = self.options.size * self.options.level // 100 + self.options.size // 512 + 4 * MIB
        tried = {}
        for cluster in PAGE_CLUSTERS if turn == 0 else (self.clusters[threads],):
            swap_area.write_page_cluster(cluster)
            with memory_group.MemoryGroup(limit) as group:
                run = measured_run.measured_run(command, group=group, timeout=self.options.timeout, interval=1)
            if run.kills:
                raise ValueError(f"{' '.join(command)}: killed by the kernel under swap")
            tried[cluster] = self.checked(run, command, "lookup", steps)["seconds"]
        self.clusters[threads] = min(tried, key=tried.get)
        self.add(f"swap_{threads}", "seconds", min(tried.values()))

    def bare(self, threads, row):
        handlers, userfaultfds, evictors = row
        command = [os.path.join(self.build, "bench/faults/faults"), "pager", "--threads", str(threads), "--handlers",
                   str(handlers), "--userfaultfds", str(userfaultfds), "--evictors", str(evictors), "--size",
                   f"{self.options.size // MIB}M", "--resident", str(self.options.level), "--seconds",
                   str(self.options.seconds)]
        run = measured_run.measured_run(command, timeout=self.options.timeout, interval=1)
        if run.status != 0:
            raise ValueError(f"{' '.join(command)}: {run.stderr.decode('utf-8', 'replace').strip()}")
        used = 0.0
        for line in run.stdout.decode().splitlines():
            name, metric, value = line.split()
            if metric in ("misses_per_second", "touches_per_second", "switches_per_miss"):
                self.add(f"bare_{name}", metric, float(value))
            if metric.endswith("_cpu_us_per_miss"):
                used += float(value)
        self.add(f"bare_{'_'.join(map(str, (threads, *row)))}", "cpu_us_per_miss", used)

    def triad(self, threads):
        answer, stats = self.under_farheap("triad", "tmpfs", self.options.triad_level, threads, self.options.triad_steps)
        moved = farheap_command.counter(stats, "bytes_read") + farheap_command.counter(stats, "bytes_written")
        name = f"triad_tmpfs_{threads}"
        self.add(name, "bytes_per_second", moved / answer["total_seconds"])
        self.add(name, "seconds", answer["seconds"])

    def malloc(self, kernel, allocator, threads, turn):
        name, library, extra = allocator
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        value, objects = self.alloc.measure_checked(os.path.join(self.build, "bench/alloc/alloc_kernels"), kernel, threads,
                                                    library, extra, turn + 1)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        what = {"remote": "remote_free", "pairs": "pair"}[kernel]
        self.add(f"{name}_{threads}", f"{what}_ns", value)
        self.add(f"{name}_{threads}", f"faults_per_{what}", (after.ru_minflt - before.ru_minflt) / objects)
        switches = after.ru_nvcsw - before.ru_nvcsw + after.ru_nivcsw - before.ru_nivcsw
        self.add(f"{name}_{threads}", f"switches_per_{what}", switches / objects)

    def limits(self, threads):
        watch = thread_watch.ThreadWatch()
        steps = self.lookup_steps("tmpfs", threads)
        answer, stats = self.under_farheap("lookup", "tmpfs", self.options.level, threads, steps, watch)
        misses = farheap_command.counter(stats, "faults_store")
        for metric, value in watch.figures(misses, answer["seconds"]).items():
            self.add(f"lookup_tmpfs_{threads}", metric, value)

    # ---- all of it

    def round(self, turn, parts):
        """(what it is, a function) of all that one round does."""
        counts, malloc_counts = self.options.threads, self.options.malloc_threads
        jobs = []
        for count in counts:
            if "bare" in parts:
                jobs += [(f"bare, {count} threads {row}", lambda c=count, r=row: self.bare(c, r))
                         for row in bare_rows(count)]
            if "lookup" in parts:
                jobs += [(f"look-ups, {count} threads, store on {place}", lambda c=count, p=place: self.lookup(p, c))
                         for place in ("tmpfs", "disk")]
            if "swap" in parts:
                jobs.append((f"look-ups, {count} threads, kernel swap", lambda c=count: self.swap(c, turn)))
            if "triad" in parts:
                jobs.append((f"triad, {count} threads", lambda c=count: self.triad(c)))
            if "limits" in parts and turn == 0:
                jobs.append((f"look-ups watched, {count} threads", lambda c=count: self.limits(c)))
        if "malloc" in parts:
            chosen = [one for one in self.alloc.subjects(self.build, None) if one[0] != "farheap-huge-pages"]
            chosen = chosen[turn % len(chosen):] + chosen[:turn % len(chosen)]
            for kernel in ("remote", "pairs"):
                jobs += [(f"{kernel}, {count} threads, {one[0]}",
                          lambda k=kernel, o=one, c=count: self.malloc(k, o, c, turn))
                         for count in malloc_counts if kernel == "pairs" or count % 2 == 0 for one in chosen]
        return jobs

    def measure(self, parts):
        """Returns what failed. The first round is whole; after --minutes nothing is begun any more."""
        failed = set()
        began = time.monotonic()
        for turn in range(self.options.rounds):
            for what, job in self.round(turn, parts):
                took = time.monotonic() - began
                if turn > 0 and took > self.options.minutes * 60:
                    complain(f"{self.options.minutes} minutes are over in round {turn + 1} of {self.options.rounds}: what comes "
                             "later in a round has one run less")
                    return failed
                if what in failed:
                    continue
                print(f"{took:5.0f} s, round {turn + 1}: {what}", file=sys.stderr, flush=True)
                try:
                    job()
                except ValueError as error:
                    complain(f"FAILED: {error}")
                    failed.add(what)
        return failed

    def results(self):
        lines = [report.result(name, metric, report.spread(found)[0], UNITS.get(metric, "us"), *report.spread(found)[1:])
                 for (name, metric), found in self.values.items()]
        return lines + [report.result(name, metric, value, UNITS.get(metric, "us"), low, high)
                        for (name, metric), (value, low, high) in derived(self.values, self.options.threads).items()]


def text_of(line):
    if line is None:
        return "-"
    high = line["max"]
    digits = ",.0f" if high >= 1000 else ".3g"
    value = f"{line['value']:{digits}}"
    return value if line["min"] == high else f"{value} ({line['min']:{digits}}-{high:{digits}})"


def tables(results, threads, malloc_threads):
    """(head, rows)"""
    found = {(line["name"], line["metric"]): line for line in results}

    def rows(counts, wanted):
        """wanted: (title, name without threads, metric)"""
        lines = [[title, *[text_of(found.get((f"{name}_{count}", metric))) for count in counts]]
                 for title, name, metric in wanted]
        return [line for line in lines if any(cell != "-" for cell in line[1:])]

    paging = [("bare program, misses a second", "bare", "misses_per_second")]
    for place in ("tmpfs", "disk"):
        paging += [(f"look-ups, store on {place}: misses a second", f"lookup_{place}", "misses_per_second"),
                   ("... over the bare program", f"lookup_{place}", "over_bare"),
                   ("... over one thread", f"lookup_{place}", "over_one_thread"),
                   ("... over kernel swap", f"lookup_{place}", "over_swap"),
                   ("... faults still in memory, a miss", f"lookup_{place}", "rescues_per_miss")]
    paging += [("triad, store on tmpfs: bytes in and out a second", "triad_tmpfs", "bytes_per_second"),
               ("... over one thread", "triad_tmpfs", "over_one_thread"), ("... seconds", "triad_tmpfs", "seconds")]
    limits = [("processor, us a miss: bare program, all threads", "bare", "cpu_us_per_miss"),
              ("context switches a miss: bare program", "bare", "switches_per_miss"),
              ("processor, us a miss: the program's threads", "lookup_tmpfs", "program_cpu_us_per_miss"),
              ("... the runtime's", "lookup_tmpfs", "runtime_cpu_us_per_miss"),
              ("wait for a processor, us a miss", "lookup_tmpfs", "wait_for_processor_us_per_miss"),
              ("wait for locks, us a miss", "lookup_tmpfs", "wait_for_locks_us_per_miss"),
              ("context switches a miss", "lookup_tmpfs", "switches_per_miss"),
              ("system calls a miss", "lookup_tmpfs", "system_calls_per_miss"),
              ("... futex", "lookup_tmpfs", "futex_calls_per_miss"),
              ("waits for locks of the kernel a miss", "lookup_tmpfs", "kernel_lock_waits_per_miss"),
              ("instructions a miss", "lookup_tmpfs", "instructions_per_miss"),
              ("processors that the busiest thread of the runtime takes", "lookup_tmpfs", "busiest_runtime_thread")]
    malloc = [(f"{title}, {name}", name, metric)
              for title, metric in (("remote free, ns", "remote_free_ns"),
                                    ("remote free, page faults an object", "faults_per_remote_free"),
                                    ("remote free, context switches an object", "switches_per_remote_free"),
                                    ("allocate and free, ns", "pair_ns"))
              for name in ("farheap", "jemalloc", "mimalloc", "glibc")]
    made = []
    for title, counts, wanted in (("paging", threads, paging), ("what limits the look-ups on tmpfs", threads, limits),
                                  ("allocator", malloc_threads, malloc)):
        lines = rows(counts, wanted)
        if lines:
            made.append(([title, *[f"{count} thread{'s' if count > 1 else ''}" for count in counts]], lines))
    return made


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="the build folder (default: build/release)")
    parser.add_argument("--only", type=lambda words: words.split(","), default=list(PARTS), help=f"of {','.join(PARTS)}")
    parser.add_argument("--threads", type=numbers, default=[1, 4, 16], help="(default: 1,4,16)")
    parser.add_argument("--malloc-threads", type=numbers, default=[1, 4, 8, 16], help="(default: 1,4,8,16)")
    parser.add_argument("--size", type=bytes_of, default="2G", help="of the table that is looked up in (default: 2G)")
    parser.add_argument("--level", type=int, default=73, help="memory in per cent of it (default: 73)")
    parser.add_argument("--misses", type=int, default=100_000,
                        help="of one thread, about; more threads have more (default: 100000)")
    parser.add_argument("--triad-size", type=bytes_of, default="4G", help="(default: 4G)")
    parser.add_argument("--triad-level", type=int, default=71, help="(default: 71)")
    parser.add_argument("--triad-steps", type=int, default=3, help="sweeps (default: 3)")
    parser.add_argument("--seconds", type=float, default=1.5, help="of the bare program (default: 1.5)")
    parser.add_argument("--folder", default="/var/tmp", help="on the disk: store and swap (default: /var/tmp)")
    parser.add_argument("--tmpfs", default="/dev/shm", help="in memory: store (default: /dev/shm)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="an option of farheap run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=60,
                        help="nothing is begun later, but for the first round (default: 60)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for any one run (default: 300)")
    parser.add_argument("--markdown", action="store_true", help="tables for a page of docs/benchmarks")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(arguments)
    unknown = set(options.only) - set(PARTS)
    if unknown:
        parser.error(f"--only: no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if options.rounds < 1 or min(options.threads + options.malloc_threads) < 1:
        parser.error("--rounds, --threads, --malloc-threads: at least 1")
    if not (1 <= options.level <= 99 and 1 <= options.triad_level <= 99):
        parser.error("--level, --triad-level: from 1 to 99")
    return options


def parts_here(bench, wanted):
    """Without those that cannot be measured here, which is told."""
    parts = list(wanted)
    why_no_swap = memory_group.unavailable() or swap_area.unavailable(bench.options.folder)
    if "swap" in parts and why_no_swap:
        complain(f"LEFT OUT: kernel swap, and so every figure over it: {why_no_swap}")
        parts.remove("swap")
    if bench.tool is None and {"lookup", "triad", "limits"} & set(parts):
        complain(f"LEFT OUT: look-ups and triad: there is no tool in {bench.build}")
        parts = [part for part in parts if part not in ("lookup", "triad", "limits")]
    return parts


def main():
    options = parse()
    measured_run.unwind_on_signals()
    bench = Bench(options)
    parts = parts_here(bench, options.only)
    machine = report.machine(options.folder)
    print(machine, file=sys.stderr)
    if {"lookup", "swap"} & set(parts):
        for metric, value in disk_speed.measure(options.folder).items():
            bench.add("disk", metric, value)
    swap = swap_area.SwapArea(options.folder, options.size) if "swap" in parts else None
    try:
        failed = bench.measure(parts)
    finally:
        if swap:
            swap.off()
    results = bench.results()
    for line in results:
        if line["name"] == "disk":
            print(f"disk: {line['metric']} {line['value']:.3g}", file=sys.stderr)
    for head, rows in tables(results, options.threads, options.malloc_threads):
        print()
        if options.markdown:
            print(report.markdown_table(head, rows))
        else:
            report.print_table(head, rows)
    if options.json:
        report.write_json(options.json, "cores", results, machine=machine, commands=[" ".join(sys.argv)])
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
