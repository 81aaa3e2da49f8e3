# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a benchmark has measured until now, and the file that keeps it: written after every run, so that a benchmark
that was broken off goes on where it stopped, and parts measured apart become one.

Everything that is shown (metrics.py, tables.py) follows from this alone.
"""

import dataclasses
import json
import os

import report

FULL = "full"  # in place of a level: as much memory as the program likes

WELL, TIMED_OUT, KILLED = "well", "timed out", "killed"
SLOWER = "slower"  # given up because another setting had been faster: says nothing but that

WATCHED = "farheap, watched"  # a way: the run is not timed, it is for the peak


@dataclasses.dataclass
class Record:
    """One run of a program."""
    program: str
    level: object  # per cent of the plain peak, or FULL
    way: str  # plain, swap, mlock, farheap, WATCHED
    turn: int
    seconds: float  # of the timed phase; with FULL, of the whole run. Of a run that did not end well: until then
    ended: str
    setting: dict = dataclasses.field(default_factory=dict)
    whole_seconds: float = 0.0
    kills: int = 0
    peak_bytes: int = 0
    budget_bytes: int = 0
    bytes_read: int = None
    bytes_written: int = None
    counts: dict = dataclasses.field(default_factory=dict)  # what else was counted, by name

    def key(self):
        return self.program, self.level, self.way, self.turn, setting_key(self.setting)


def setting_key(setting):
    return tuple(sorted(setting.items()))


class Measurements:
    """`settings`: what must be the same in all parts (sizes, kernel mask). `programs`: name -> facts from the first
    run: class, peak_bytes, beside_bytes, checksum, whole_seconds, real. `optima`: (name, level) -> numbers of
    trace_optimum."""

    def __init__(self, settings=None, machine="", path=None, bench="paging"):
        self.bench = bench
        self.settings = settings or {}
        self.machine = machine
        self.path = path
        self.commands = []
        self.programs = {}
        self.records = []
        self.optima = {}
        self._keys = {}

    def add(self, record):
        if record.key() in self._keys:
            return
        self._keys[record.key()] = record
        self.records.append(record)

    def find(self, program, level, way, turn, setting=None):
        return self._keys.get((program, level, way, turn, setting_key(setting or {})))

    def of(self, program, level, way):
        return [one for one in self.records if (one.program, one.level, one.way) == (program, level, way)]

    def under_farheap(self, program):
        """All runs, watched and timed ones."""
        return [one for one in self.records if one.program == program and one.way in ("farheap", WATCHED)]

    def peaks(self, program):
        """Those with too little memory."""
        return [one for one in self.under_farheap(program) if one.level != FULL]

    def levels(self):
        """Those that were measured, the largest first."""
        found = {one.level for one in self.records if one.level != FULL} | {level for _, level in self.optima}
        return sorted(found, reverse=True)

    def join(self, other):
        """Takes in what another part has and this one has not."""
        if other.settings != self.settings:
            raise ValueError(f"measured with {other.settings}, this part with {self.settings}: not one table")
        if self.machine and other.machine and self.machine != other.machine:
            raise ValueError(f"measured on another machine ({other.machine}): they cannot be one table")
        for name, facts in other.programs.items():
            mine = self.programs.setdefault(name, facts)
            if mine["checksum"] != facts["checksum"]:
                raise ValueError(f"{name} has another result there: not the same program")
            if mine is not facts and mine["peak_bytes"] != facts["peak_bytes"]:
                raise ValueError(f"{name} had another peak, and so other budgets, there; measure further levels with "
                                 "--resume instead")
        self.machine = self.machine or other.machine
        self.commands += [command for command in other.commands if command not in self.commands]
        for record in other.records:
            self.add(record)
        self.optima = {**other.optima, **self.optima}

    def save(self, results=None, path=None):
        """Whole or not at all: a benchmark that is killed while it writes loses nothing."""
        path = path or self.path
        if not path:
            return
        report.write_json(path + ".part", self.bench, results or [], machine=self.machine, commands=self.commands,
                          settings=self.settings, programs=self.programs,
                          runs=[dataclasses.asdict(one) for one in self.records],
                          optima=[{"program": program, "level": level, **numbers}
                                  for (program, level), numbers in self.optima.items()])
        os.replace(path + ".part", path)


def load(path, bench="paging"):
    """Raises ValueError for what this benchmark did not write."""
    with open(path, encoding="utf-8") as lines:
        data = json.load(lines)
    if data.get("format") != report.FORMAT or data.get("bench") != bench or "runs" not in data:
        raise ValueError(f"{path}: no measurements of bench/{bench} in format {report.FORMAT}")
    if any("beside_bytes" not in one for one in data["programs"].values()):
        raise ValueError(f"{path}: measured when control groups were given other limits; begin another file")
    measured = Measurements(data["settings"], data["machine"], path, bench)
    measured.commands = data["commands"]
    measured.programs = data["programs"]
    for run in data["runs"]:
        measured.add(Record(**run))
    for line in data["optima"]:
        numbers = dict(line)
        measured.optima[numbers.pop("program"), numbers.pop("level")] = numbers
    return measured
