# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the programs in all ways, in turns, and enters every run into the measurements. What is there already is not
run again."""

import re
import sys

import awake_processors
import farheap_command
import host_memory
import measured_run
import memory_group
import optimum
import swap_area
from farheap_command import complain
from measurements import FULL, KILLED, SLOWER, TIMED_OUT, WATCHED, WELL, Record
from metrics import best_setting
from report import MIB

UNKNOWN_BESIDE = 4 * MIB  # what a group is charged besides the heap, where the kernel does not say what it was charged
ROOM_BYTES = 512 * MIB  # a budget "well above the peak" is twice the peak and this
SELDOM = 0.1  # seconds between looks at the memory of a run that is timed
LEAST_GIVE_UP = 30.0  # seconds: shorter ones are not given up
SURELY_SLOWER = 1.25  # times the best setting yet: a further setting need not be run to its end
FORESEEN = ("touches_expected", "touches_unexpected")  # how far a pager that expected an order was right
PREPARED = re.compile(rb"prepared after ([0-9.]+) s")


def ended_how(run, way):
    if run.timed_out:
        return TIMED_OUT
    killed = run.kills or (run.status == 137 and way != "plain")
    return KILLED if killed else WELL


def timed_part(run):
    """Of a run that did not end: the seconds since its timed phase began; all of them if it never did."""
    prepared = PREPARED.search(run.stderr)
    return max(run.seconds - float(prepared.group(1)), 0.0) if prepared else run.seconds


def charged_beside(run):
    """Page tables, program text and what else the group was charged besides the memory that the program made: as much
    more than the budget may a group have so that the budget is left for that."""
    return UNKNOWN_BESIDE if run.charged_bytes is None else max(run.charged_bytes - run.peak_bytes, 0)


class Runner:
    """`tool`, `optimum_program`: paths, or None. `groups`: whether there are control groups. `left_out`: the columns
    there cannot be. The measurements are saved after every run."""

    def __init__(self, options, tool, optimum_program, groups, left_out, measured):
        self.options = options
        self.tool = tool
        self.optimum_program = optimum_program
        self.groups = groups
        self.columns = [column for column in options.columns if column not in left_out]
        self.measured = measured
        self.wrong = []

    # ---- one run

    def run_once(self, subject, command, limit=None, timeout=None, interval=SELDOM):
        timeout = min(timeout or self.options.timeout, self.options.timeout)
        if not self.groups:
            return measured_run.measured_run(command, stdin=subject.stdin, env=subject.env, cwd=subject.cwd,
                                             timeout=timeout, interval=interval)
        with memory_group.MemoryGroup(limit) as group:
            return measured_run.measured_run(command, group=group, stdin=subject.stdin, env=subject.env,
                                             cwd=subject.cwd, timeout=timeout, interval=interval)

    def seconds(self, subject, run, way, whole):
        """Raises ValueError for a wrong result."""
        if ended_how(run, way) != WELL:
            return run.seconds if whole else timed_part(run)
        result = subject.measured(run)
        expected = self.measured.programs[subject.name]["checksum"]
        if result.checksum != expected:
            raise ValueError(f"checksum {result.checksum}, plain run {expected}")
        return run.seconds if whole else result.seconds

    def enter(self, subject, run, record, hopeless=False):
        """A wrong result is told, makes the command fail, and does not count. `hopeless`: the time-out was that of a
        setting that is surely not the best."""
        record.ended = ended_how(run, record.way)
        if record.ended == TIMED_OUT and hopeless:
            record.ended = SLOWER
        record.whole_seconds = run.seconds
        record.kills = max(run.kills, 1) if record.ended == KILLED else 0
        record.peak_bytes = run.peak_bytes
        try:
            record.seconds = self.seconds(subject, run, record.way, record.level == FULL)
        except ValueError as error:
            self.wrong.append(f"{subject.name} ({record.way}): {error}")
            complain(f"WRONG, does not count: {self.wrong[-1]}")
            return
        self.measured.add(record)
        self.measured.save()

    # ---- one run in each way. `turn` and `level` name it; nothing is done that is there already

    def record(self, subject, level, way, turn, setting=None):
        """A record to fill in, or None if the run is there."""
        if self.measured.find(subject.name, level, way, turn, setting):
            return None
        return Record(subject.name, level, way, turn, 0.0, WELL, setting or {})

    def prepare_host(self, subject, level):
        """Before a run with enough memory: what differs between the ways are the programs, not their host."""
        if level == FULL and not self.options.host_as_is:
            host_memory.bring_back(self.measured.programs[subject.name]["peak_bytes"] + ROOM_BYTES)

    def plain(self, subject, level, turn):
        record = self.record(subject, level, "plain", turn)
        if record:
            self.prepare_host(subject, level)
            self.enter(subject, self.run_once(subject, subject.command), record)

    def give_up_after(self, subject):
        whole = self.measured.programs[subject.name]["whole_seconds"]
        return max(self.options.give_up * whole, LEAST_GIVE_UP)

    def limited(self, subject, level, way, turn, setting, command, budget, once=None):
        """Under kernel swap, with one setting. In the first turn it may be seen soon that it is not the best. `once`
        runs the command in the place of run_once()."""
        record = self.record(subject, level, way, turn, setting)
        if not record:
            return
        rivals = [one.whole_seconds for one in self.measured.of(subject.name, level, way)
                  if turn == one.turn == 0 and one.ended == WELL]
        give_up = self.give_up_after(subject)
        hopeless = min(SURELY_SLOWER * min(rivals) + 1, give_up) if rivals else give_up
        swap_area.write_page_cluster(setting["page_cluster"])
        beside = self.measured.programs[subject.name]["beside_bytes"]
        read, written = swap_area.moved_bytes()
        with awake_processors.awake_processors(self.options.swap_awake):
            run = (once or self.run_once)(subject, command, budget + beside, hopeless)
        read_now, written_now = swap_area.moved_bytes()
        record.bytes_read, record.bytes_written = read_now - read, written_now - written
        record.budget_bytes = budget
        self.enter(subject, run, record, hopeless < give_up)

    def settings(self, subject, level, way, turn):
        """All in the first turn, then the best."""
        if turn != 0:
            best = best_setting(self.measured.of(subject.name, level, way))
            return [best] if best is not None else []
        if way == "swap":
            return [{"page_cluster": cluster} for cluster in self.options.page_clusters]
        best = best_setting(self.measured.of(subject.name, level, "swap"))
        cluster = best["page_cluster"] if best else self.options.page_clusters[0]
        return [{"page_cluster": cluster, "share": share} for share in self.options.mlock_shares]

    def swap(self, subject, level, turn, budget):
        for setting in self.settings(subject, level, "swap", turn):
            self.limited(subject, level, "swap", turn, setting, subject.command, budget)

    def mlock(self, subject, level, turn, budget):
        if not subject.locks:
            return
        for setting in self.settings(subject, level, "mlock", turn):
            locked = budget * setting["share"] // 100 // MIB
            command = [*subject.command, "--mlock", str(locked)]
            self.limited(subject, level, "mlock", turn, setting, command, budget)

    def farheap(self, subject, level, turn, budget):
        if turn == 0 and level != FULL:
            self.farheap_run(subject, level, WATCHED, turn, budget)
        self.farheap_run(subject, level, "farheap", turn, budget)

    def farheap_run(self, subject, level, way, turn, budget, *, settings=(), plan=None):
        record = self.record(subject, level, way, turn)
        if not record:
            return
        command = farheap_command.run_command(self.tool, budget, subject.command, store=f"file:{self.options.folder}",
                                              settings=settings, plan=plan, mask=self.options.mask)
        self.prepare_host(subject, level)
        interval = measured_run.SAMPLE_SECONDS if way == WATCHED else SELDOM
        run = self.run_once(subject, command, timeout=self.give_up_after(subject), interval=interval)
        record.budget_bytes = budget
        stats = farheap_command.parse_stats(run.stderr)
        if stats is not None:
            record.bytes_read = farheap_command.counter(stats, "bytes_read")
            record.bytes_written = farheap_command.counter(stats, "bytes_written")
            record.counts = {name: stats[name] for name in FORESEEN if name in stats}
            run.peak_bytes = max(run.peak_bytes, farheap_command.counter(stats, "peak_bytes"))
        self.enter(subject, run, record)

    # ---- one program

    def first_run(self, subject):
        """With its verifier: gives the peak that budgets are shares of, and the checksum that all runs must have."""
        if subject.name in self.measured.programs:
            return
        run = self.run_once(subject, subject.command + ([] if subject.real else ["--verify"]),
                            interval=measured_run.SAMPLE_SECONDS)
        if run.timed_out:
            raise ValueError(f"not done after {self.options.timeout} s")
        checksum = subject.measured(run).checksum
        if run.peak_bytes < 16 * MIB:
            raise ValueError(f"its peak of {run.peak_bytes / MIB:.1f} MiB was not seen: it ended between two looks")
        self.measured.programs[subject.name] = {"class": subject.kind, "peak_bytes": run.peak_bytes,
                                                "beside_bytes": charged_beside(run), "checksum": checksum,
                                                "whole_seconds": run.seconds, "real": subject.real}
        self.measured.save()

    def budget(self, subject, level):
        return self.measured.programs[subject.name]["peak_bytes"] * level // 100

    def short_ways(self, subject, level):
        """Each a function of the turn."""
        budget = self.budget(subject, level)
        ways = [lambda turn: self.plain(subject, level, turn)]
        if "swap" in self.columns:
            ways.append(lambda turn: self.swap(subject, level, turn, budget))
        if "mlock" in self.columns:
            ways.append(lambda turn: self.mlock(subject, level, turn, budget))
        if "farheap" in self.columns:
            ways.append(lambda turn: self.farheap(subject, level, turn, budget))
        return ways

    def short_of_memory(self, subject, level):
        """The ways take turns, and another one begins each time; the first turn finds the best settings."""
        ways = self.short_ways(subject, level)
        for turn in range(self.options.runs):
            first = turn % len(ways)
            for way in ways[first:] + ways[:first]:
                way(turn)

    def enough_ways(self, subject):
        budget = 2 * self.measured.programs[subject.name]["peak_bytes"] + ROOM_BYTES
        return [lambda turn: self.plain(subject, FULL, turn), lambda turn: self.farheap(subject, FULL, turn, budget)]

    def enough_memory(self, subject):
        """Two ways in turns (and the order changes each time), whole runs."""
        ways = self.enough_ways(subject)
        for turn in range(self.options.runs + (0 if self.options.quick else 2)):
            for way in ways if turn % 2 == 0 else reversed(ways):
                way(turn)

    def optima(self, subject, budgets):
        return optimum.optima(self, subject, budgets)

    def find_optima(self, subject):
        budgets = {level: self.budget(subject, level) for level in self.options.levels
                   if (subject.name, level) not in self.measured.optima}
        if not budgets:
            return
        try:
            found = self.optima(subject, list(budgets.values()))
        except ValueError as error:
            complain(f"LEFT OUT: the optimum of {subject.name}: {error}")
            return
        for level, numbers in zip(budgets, found):
            self.measured.optima[subject.name, level] = numbers
        self.measured.save()

    def measure(self, subject):
        """Raises ValueError if the program is not right without any limit."""
        print(f"... {subject.name}", file=sys.stderr, flush=True)
        self.first_run(subject)
        if not subject.real:
            if "mlock" in self.columns and not subject.locks:
                complain(f"LEFT OUT: swap with locked memory for {subject.name}: it has no option --mlock")
            for level in self.options.levels:
                self.short_of_memory(subject, level)
            if "optimum" in self.columns:
                self.find_optima(subject)
        if "enough" in self.columns:
            self.enough_memory(subject)
