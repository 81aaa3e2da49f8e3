# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a subject in all ways, in turns, and enters every run into the measurements. What is there already is not run
again."""

import contextlib
import dataclasses
import os
import sys

import farheap_command
import host_memory
import measured_run
import memory_group
import misses
import subject as subject_module
import swap_area
import zram_area
from farheap_command import complain
from measurements import FULL, KILLED, TIMED_OUT, WELL, Record
from report import MIB

SHORT_WAYS = ("swap", "zram", "farheap")
WAYS = ("plain", *SHORT_WAYS, "enough")  # enough: farheap with all the memory it likes
TIMES_PLAIN = 10  # a run that takes so many times the plain one is given up
SELDOM = 0.1  # seconds between looks at the memory of a run that is timed
ROOM_BYTES = 64 * MIB
# Farheap's group is limited, too: some programs size their heap by that. This much above kernel swap's, for what is no
# memory of the program: the tool's own process, page tables, what is cached of the store.
RUNTIME_ROOM_BYTES = 32 * MIB
PRIORITY = 1000  # of swap areas: before those that somebody else may have on


class WatchedGroup(memory_group.MemoryGroup):
    """Sees the most that is charged beside the memory that a program makes, whenever its memory is looked at."""
    most_beside = 0

    def usage(self):
        self.most_beside = max(self.most_beside, self.beside())
        return super().usage()


@dataclasses.dataclass
class Areas:
    """What swap can be on; None where there is none."""
    disk: swap_area.SwapArea = None
    zram: zram_area.ZramArea = None


def ended_how(run):
    if run.timed_out:
        return TIMED_OUT
    return KILLED if run.kills or run.status == 137 else WELL


class Ways:
    """`tool`, `optimum_program`: paths, or None. `ways`: those that there can be. The measurements are saved after every run."""

    def __init__(self, options, tool, ways, areas, measured, optimum_program=None):
        self.options = options
        self.tool = tool
        self.optimum_program = optimum_program
        self.ways = ways
        self.areas = areas
        self.measured = measured
        self.wrong = []

    # ---- one run

    def run_once(self, job, command, *, limit=None, interval=SELDOM, total=None, last_words=False):
        """`total`: the limit covers what the zram device uses, too. Returns the run and its counts."""
        with WatchedGroup(limit) as group:
            follower = zram_area.Follower(group, self.areas.zram.used_bytes, total) if total else None
            if follower:
                follower.start()
            try:
                run = measured_run.measured_run(command, group=group, stdin=job.stdin, env=job.env, cwd=job.cwd,
                                                timeout=job.timeout, interval=interval,
                                                last_words=last_words)
            finally:
                counts = {"zram_bytes": follower.finish()} if follower else {}
            counts["major_faults"] = group.major_faults()
            counts["beside_bytes"] = group.most_beside
        return run, counts

    def enter(self, subject, job, run, record):
        """A wrong result is told, makes the command fail, and does not count."""
        record.ended = ended_how(run)
        record.seconds = record.whole_seconds = run.seconds
        record.kills = max(run.kills, 1) if record.ended == KILLED else 0
        record.peak_bytes = run.peak_bytes
        if record.ended == WELL:
            try:
                found = subject_module.digest(job, run)
                expected = self.measured.programs[subject.name]["checksum"]
                if found != expected:
                    raise ValueError(f"another output than with no limit ({found[:12]} for {expected[:12]})")
            except ValueError as error:
                self.wrong.append(f"{subject.name} ({record.way}): {error}")
                complain(f"WRONG, does not count: {self.wrong[-1]}")
                return
        self.measured.add(record)
        self.measured.save()

    # ---- one run in each way

    def plain(self, job, _record):
        return self.run_once(job, job.command)

    def swap(self, job, record):
        swap_area.write_page_cluster(self.options.page_cluster)
        with self.areas.disk.for_a_run(PRIORITY):
            return self.run_once(job, job.command, limit=record.budget_bytes + self._beside(record))

    def zram(self, job, record):
        swap_area.write_page_cluster(0)
        total = record.budget_bytes + self._beside(record)
        with self.areas.zram.for_a_run(PRIORITY):
            return self.run_once(job, job.command, limit=total, total=total)

    def farheap(self, job, record):
        command = farheap_command.run_command(self.tool, record.budget_bytes, job.command,
                                              store=f"file:{self.options.folder}", mask=self.options.mask,
                                              settings=self.options.settings)
        limit = record.budget_bytes + self._beside(record) + RUNTIME_ROOM_BYTES if record.level != FULL else None
        run, counts = self.run_once(job, command, limit=limit, last_words=True)
        stats = farheap_command.parse_stats(run.stderr)
        if stats is not None:
            for name in ("faults_store", "faults_probation", "bytes_read", "bytes_written", "paging_processes"):
                counts[name] = farheap_command.counter(stats, name)
            counts["stall_seconds"] = stats["stall_seconds"]
            run.peak_bytes = max(run.peak_bytes, farheap_command.counter(stats, "peak_bytes"))
        return run, counts

    enough = farheap

    def _beside(self, record):
        return self.measured.programs[record.program]["beside_bytes"]

    def run_way(self, subject, job, way, level, turn):
        if self.measured.find(subject.name, level, way, turn):
            return
        facts = self.measured.programs[subject.name]
        budget = facts["peak_bytes"] * level // 100 if level != FULL else 2 * facts["peak_bytes"] + ROOM_BYTES
        record = Record(subject.name, level, way, turn, 0.0, WELL, budget_bytes=budget)
        host_memory.bring_back(facts["peak_bytes"] + ROOM_BYTES)
        run, record.counts = getattr(self, way)(job, record)
        self.enter(subject, job, run, record)

    # ---- one subject

    def first_run(self, subject, job):
        """Gives the peak that budgets are shares of, and the output that all runs must have. Twice: the first time a
        group is charged for the program's text, which is in memory afterwards."""
        if subject.name in self.measured.programs:
            return
        checksums = set()
        for _ in range(2):
            run, counts = self.run_once(job, job.command, interval=measured_run.SAMPLE_SECONDS)
            if run.timed_out:
                raise ValueError(f"not done after {job.timeout} s")
            checksums.add(subject_module.digest(job, run))
        if len(checksums) != 1:
            raise ValueError("two runs with no limit have two outputs")
        checksum = checksums.pop()
        self.measured.programs[subject.name] = {
            "peak_bytes": run.peak_bytes, "beside_bytes": counts["beside_bytes"], "checksum": checksum,
            "whole_seconds": run.seconds, "does": subject.does, "reached": subject.reached}
        self.measured.save()

    def steps(self):
        """(way, level) of one turn."""
        for way in self.ways:
            if way in SHORT_WAYS:
                yield from ((way, level) for level in self.options.levels)
            else:
                yield way, FULL

    def prepared(self, subject):
        """Its job, after a first run with no limit."""
        print(f"... {subject.name}", file=sys.stderr, flush=True)
        folder = subject_module.data_folder(self.options.data, subject)
        os.makedirs(folder, exist_ok=True)
        job = subject.prepare(folder)
        job.cwd = job.cwd or folder
        job.timeout = TIMES_PLAIN * self.options.timeout
        self.first_run(subject, job)
        job.timeout = max(self.options.timeout, TIMES_PLAIN * self.measured.programs[subject.name]["whole_seconds"])
        return job

    def measure(self, subject):
        """Raises ValueError if the program is not right without any limit."""
        job = self.prepared(subject)
        steps = list(self.steps())
        if not subject.reached:
            complain(f"LEFT OUT: {subject.name} under farheap, which has no way into its memory")
            steps = [step for step in steps if step[0] not in ("farheap", "enough")]
        for turn in range(self.options.turns):
            first = turn % len(steps)  # another one begins each turn
            for way, level in steps[first:] + steps[:first]:
                self.run_way(subject, job, way, level, turn)


    def record(self, subject):
        """What LRU and the optimum miss, from a recording. Raises ValueError where there is none."""
        if subject.unrecorded:
            complain(f"LEFT OUT: the misses of {subject.name}: {subject.unrecorded}")
        else:
            misses.measure(self, self.optimum_program, subject, self.prepared(subject))


@contextlib.contextmanager
def areas_for(options, ways):
    """The swap areas that these ways need, for the time of the benchmark."""
    areas = Areas()
    page_cluster = swap_area.read_page_cluster()
    try:
        if "swap" in ways:
            areas.disk = swap_area.SwapArea(options.folder, options.swap_size * MIB, on=False)
        if "zram" in ways:
            areas.zram = zram_area.ZramArea(options.swap_size * MIB)
        yield areas
    finally:
        for area in (areas.disk, areas.zram):
            if area:
                area.off()
        if areas.disk or areas.zram:
            swap_area.write_page_cluster(page_cluster)
