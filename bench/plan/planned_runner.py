# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the programs in bench/paging's ways and in four more: under Farheap that follows a plan, under Farheap that
knows the exact future, and under kernel swap with the seeds' hints of either kind."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import farheap_command
import measured_run
import memory_group
import optimum
import runner as ways
import training
from farheap_command import complain
from measurements import FULL
from metrics import best_setting

PLAN = "plan"  # the way: Farheap with a plan of a smaller run with another seed
ORACLE = "oracle"  # the way: Farheap that knows a recording of the same run
WRONG = {"plan_shuffled": "shuffled", "plan_reversed": "reversed"}  # ways: plans that wrong_plan made of the right one
HINTS = {"hints_mlock": "kernel:mlock", "hints_madvise": "kernel:madvise"}  # ways: kernel swap with the seeds' hints
HINTED = ("recognised_objects", "most_locked_bytes", "advised_bytes", "refusals")  # kept of each such run
# `farheap run --hints` says this of a profile without large objects.
NO_HINTS = re.compile(rb"[^\n]*(cannot make a plan|tells of no large object)[^\n]*")
ENOUGH_BYTES = 1 << 30
NOT_FOLLOWED = re.compile(rb"[^\n]*(has no plan|the plan is not followed|cannot follow the plan)[^\n]*")


class NoHints(Exception):
    """There is nothing in the profile to give hints of."""


class Runner(ways.Runner):
    """Beside the options of bench/paging: `train_part`, and `oracle`, `hints` and `wrong` in `columns`."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._folder = ""  # of the program that is being measured
        self._trace = None
        self.wrong_program = None  # where wrong_plan is

    # ---- what a program needs once

    def train(self, subject):
        """One plan for each turn, because no two recordings sample the same pages: the spread is that of plans, too."""
        trainings = self.measured.programs[subject.name].setdefault("trainings", [])
        while len(trainings) < self.options.runs:
            made = training.train(self.tool, subject, self.options.train_part, self._folder, self.options.timeout)
            if made.why_none:
                print(f"no plan for {subject.name}: {made.why_none}", file=sys.stderr, flush=True)
            trainings.append(made.facts())
            self.measured.save()

    def plan_file(self, subject, turn):
        """The path of that turn's plan; None if there is none. More turns than trainings begin again with the first."""
        number = turn % self.options.runs
        made = training.from_facts(self.measured.programs[subject.name]["trainings"][number])
        if not made.plan:
            return None
        path = os.path.join(self._folder, f"plan.{number}")
        with open(path, "wb") as file:
            file.write(made.plan)
        return path

    def trace(self, subject):
        """The path of the recording of its pages, tried in the first call. Raises ValueError if there is none."""
        if self._trace is None:
            try:
                self._trace = optimum.record(self, subject, self._folder)
            except ValueError as error:
                self._trace = error
        if isinstance(self._trace, ValueError):
            raise self._trace
        return self._trace

    def optima(self, subject, budgets):
        return optimum.compute(self.optimum_program, self.trace(subject), budgets)

    # ---- the ways

    def seconds(self, subject, run, way, whole):
        if way == PLAN and (said := NOT_FOLLOWED.search(run.stderr)):
            raise ValueError(f"its plan was not followed: {said.group().decode('utf-8', 'replace')}")
        return super().seconds(subject, run, way, whole)

    def planned(self, subject, level, turn, budget):
        plan = self.plan_file(subject, turn)
        if plan:
            self.farheap_run(subject, level, PLAN, turn, budget, plan=plan)

    def wrongly_planned(self, subject, level, way, turn, budget):
        plan = self.plan_file(subject, turn)
        if plan is None:
            return
        path = f"{plan}.{way}"
        subprocess.run([self.wrong_program, WRONG[way], plan, path], check=True)
        self.farheap_run(subject, level, way, turn, budget, plan=path)

    def oracle(self, subject, level, turn, budget):
        if self.measured.find(subject.name, level, ORACLE, turn):
            return
        try:
            trace = self.trace(subject)
        except ValueError as error:
            complain(f"LEFT OUT: a run of {subject.name} that knows the exact future: {error}")
            return
        self.farheap_run(subject, level, ORACLE, turn, budget, settings=[f"expect_pages={trace}"])

    # ---- kernel swap with the seeds' hints

    def profile(self, subject):
        """The path of the last training's profile; of another training where those are of an earlier call."""
        path = os.path.join(self._folder, training.PROFILE)
        if not os.path.exists(path):
            training.record(self.tool, subject, self.options.train_part, self._folder, self.options.timeout)
        return path

    def hinted_once(self, subject, command, limit, timeout):
        """The program alone is in the control group: the tool that waits for it takes nothing from it."""
        with memory_group.MemoryGroup(limit) as group:
            at = command.index("--") + 1
            words = [*command[:at], *group.joining(command[at:])]
            run = measured_run.measured_run(words, stdin=subject.stdin, env=subject.env, cwd=subject.cwd,
                                            timeout=min(timeout, self.options.timeout), interval=ways.SELDOM)
            run.kills = group.kills()
        if said := NO_HINTS.search(run.stderr):
            raise NoHints(said.group().decode("utf-8", "replace"))
        stats = farheap_command.parse_stats(run.stderr)
        if stats is not None and farheap_command.counter(stats, "recognised_objects") == 0:
            raise NoHints("none of the objects of its profile was allocated")
        return run

    def enter(self, subject, run, record, hopeless=False):
        if record.way in HINTS and (stats := farheap_command.parse_stats(run.stderr)) is not None:
            record.counts = {name: farheap_command.counter(stats, name) for name in HINTED}
        super().enter(subject, run, record, hopeless)

    def hint_settings(self, subject, level, way, turn):
        """All in the first turn, then the best; page-cluster is the best of kernel swap alone."""
        if turn != 0:
            best = best_setting(self.measured.of(subject.name, level, way))
            return [best] if best is not None else []
        best = best_setting(self.measured.of(subject.name, level, "swap"))
        cluster = {"page_cluster": best["page_cluster"] if best else self.options.page_clusters[0]}
        shares = self.options.hint_shares if way == "hints_mlock" else [None]
        return [{**cluster, "share": share} if share else cluster for share in shares]

    def hinted(self, subject, level, way, turn, budget):
        for setting in self.hint_settings(subject, level, way, turn):
            command = farheap_command.hints_command(self.tool, budget, subject.command, HINTS[way],
                                                    self.profile(subject), setting.get("share"))
            try:
                self.limited(subject, level, way, turn, setting, command, budget, self.hinted_once)
            except NoHints as why:
                complain(f"LEFT OUT: {subject.name} under kernel swap with hints ({HINTS[way]}): {why}")
                return

    def short_ways(self, subject, level):
        budget = self.budget(subject, level)
        found = [lambda turn: self.plain(subject, level, turn)]
        if "swap" in self.columns:
            found.append(lambda turn: self.swap(subject, level, turn, budget))
        if "hints" in self.columns:
            found += [lambda turn, way=way: self.hinted(subject, level, way, turn, budget) for way in HINTS]
        found.append(lambda turn: self.farheap_run(subject, level, "farheap", turn, budget))
        found.append(lambda turn: self.planned(subject, level, turn, budget))
        if "wrong" in self.columns:
            found += [lambda turn, way=way: self.wrongly_planned(subject, level, way, turn, budget) for way in WRONG]
        if "oracle" in self.columns:
            found.append(lambda turn: self.oracle(subject, level, turn, budget))
        return found

    def enough_ways(self, subject):
        budget = max(ENOUGH_BYTES, 2 * self.measured.programs[subject.name]["peak_bytes"])
        return [lambda turn: self.farheap_run(subject, FULL, "farheap", turn, budget),
                lambda turn: self.planned(subject, FULL, turn, budget)]

    # ---- one program

    def measure(self, subject):
        """Raises ValueError if the program is not right without any limit, or its plan is neither made nor refused."""
        print(f"... {subject.name}", file=sys.stderr, flush=True)
        self.first_run(subject)
        self._folder = tempfile.mkdtemp(prefix="farheap-plan-", dir=self.options.folder)
        self._trace = None
        try:
            self.train(subject)
            for level in self.options.levels:
                self.short_of_memory(subject, level)
            if "optimum" in self.columns:
                self.find_optima(subject)
            if self.measured.of(subject.name, self.options.levels[0], PLAN) and "enough" in self.columns:
                self.enough_memory(subject)
        finally:
            shutil.rmtree(self._folder)
