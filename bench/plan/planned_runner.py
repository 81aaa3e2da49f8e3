# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the programs in bench/paging's ways and in two more: under Farheap that follows a plan, and under Farheap that
knows the exact future."""

import os
import re
import shutil
import sys
import tempfile

import optimum
import runner as ways
import training
from farheap_command import complain
from measurements import FULL

PLAN = "plan"  # the way: Farheap with a plan of a smaller run with another seed
ORACLE = "oracle"  # the way: Farheap that knows a recording of the same run
ENOUGH_BYTES = 1 << 30
NOT_FOLLOWED = re.compile(rb"[^\n]*(has no plan|the plan is not followed|cannot follow the plan)[^\n]*")


class Runner(ways.Runner):
    """Beside the options of bench/paging: `train_part`, and `oracle` in `columns`."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._folder = ""  # of the program that is being measured
        self._trace = None

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

    def oracle(self, subject, level, turn, budget):
        if self.measured.find(subject.name, level, ORACLE, turn):
            return
        try:
            trace = self.trace(subject)
        except ValueError as error:
            complain(f"LEFT OUT: a run of {subject.name} that knows the exact future: {error}")
            return
        self.farheap_run(subject, level, ORACLE, turn, budget, settings=[f"expect_pages={trace}"])

    def short_ways(self, subject, level):
        budget = self.budget(subject, level)
        found = [lambda turn: self.plain(subject, level, turn)]
        if "swap" in self.columns:
            found.append(lambda turn: self.swap(subject, level, turn, budget))
        found.append(lambda turn: self.farheap_run(subject, level, "farheap", turn, budget))
        found.append(lambda turn: self.planned(subject, level, turn, budget))
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
