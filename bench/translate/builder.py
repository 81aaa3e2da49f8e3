# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the benchmark programs by plain clang and by farcc, of the very same clang, and says what that took and what
became of the code."""

import dataclasses
import json
import os
import shlex
import subprocess

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCH = os.path.join(REPOSITORY, "bench")
FOLDERS = (os.path.join(BENCH, "paging", "programs"), os.path.join(BENCH, "translate", "programs"))
COMMON = [os.path.join(BENCH, "common", name) for name in ("program.cpp", "lock_memory.cpp", "main.cpp")]
# As bench/paging builds them: the same sums on every machine.
FLAGS = ["-std=c++20", "-O2", "-ffp-contract=off", "-pthread", "-I", BENCH]
LEVELS = {"clang": None, "none": ["-ffar=none"], "hint": ["-ffar=hint"], "count": ["-ffar=count"],
          "count_executed": ["-ffar=count", "-ffar-count=executed"], "guard_all": ["-ffar=guard"],
          "record": ["-ffar=record"], "guard_record": ["-ffar=guard", "-ffar-guard=record"], "guard_profiled": ["-ffar=guard"],
          "translate_heap_cached": ["-ffar=translate-heap"]}
PROFILED = "guard_profiled"  # each program by a profile of its own, what all share included
# Their time goes to libraries that nobody compiles here.
LEFT_OUT = ("qft",)


@dataclasses.dataclass
class Source:
    """One program: its own files, to which COMMON come."""
    name: str
    files: list
    kmeans_like: bool  # of bench/translate/programs


def find_sources():
    found = []
    for folder in FOLDERS:
        for entry in sorted(os.listdir(folder)):
            path = os.path.join(folder, entry)
            if os.path.isdir(path):
                files = sorted(os.path.join(path, file) for file in os.listdir(path) if file.endswith(".cpp"))
            elif entry.endswith(".cpp"):
                files = [path]
            else:
                continue
            if (name := entry.removesuffix(".cpp")) not in LEFT_OUT:
                found.append(Source(name, files, folder == FOLDERS[1]))
    return found


def environment():
    """Nothing of the caller's chooses levels or compilers."""
    return {key: value for key, value in os.environ.items()
            if key not in ("FARCC_LEVEL", "FARCC_REPORT", "FARCC_LAUNCHER", "FARCC_COUNTS")}


def find_farcc(build):
    path = os.path.join(build, "compiler", "far++")
    return path if os.access(path, os.X_OK) else None


def run(command):
    """Seconds of processor time, its own and its children's. Raises ValueError with what the compiler said."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=environment()) as process:
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise ValueError(f"{shlex.join(command)}: {said.decode('utf-8', 'replace')[-800:].strip()}")
    return usage.ru_utime + usage.ru_stime


def text_bytes(size_tool, objects):
    """Bytes of code in object files. Without their unwinding tables, which llvm-size counts as text."""
    said = subprocess.run([size_tool, "-A", *objects], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in said.splitlines())
    return sum(int(row[1]) for row in rows if len(row) == 3 and row[0].split(".")[1:2] == ["text"])


def instructions(report):
    """(before, after) over all functions of the report of a level; a count has one number for both."""
    before = after = 0
    with open(report, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if line["what"] == "size":
                before, after = before + line["before"], after + line["after"]
            elif line["what"] == "counted":
                before, after = before + line["instructions"], after + line["instructions"]
    return before, after


class Builder:
    """Objects and programs go to `folder`. Raises ValueError where a compiler does not do what it should."""

    def __init__(self, farcc, folder):
        self.farcc = farcc
        self.folder = folder
        shown = subprocess.run([farcc, "-ffar=hint", "-ffar-print", "-c", "x.cpp"], capture_output=True, text=True,
                               env=environment(), check=False)
        if shown.returncode != 0:
            raise ValueError(shown.stderr.strip())
        self.clang = shlex.split(shown.stdout)[0]
        self.size_tool = os.path.join(os.path.dirname(os.path.realpath(self.clang)), "llvm-size")
        self.libraries = self.pkg_config("--libs")
        self.flags = [*FLAGS, *self.pkg_config("--cflags")]

    @staticmethod
    def pkg_config(what):
        done = subprocess.run(["pkg-config", what, "fmt", "libxxhash"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ValueError(f"pkg-config: {done.stderr.strip()} (apt install libfmt-dev libxxhash-dev)")
        return shlex.split(done.stdout)

    def version(self):
        said = subprocess.run([self.clang, "--version"], capture_output=True, text=True, check=True).stdout
        return said.splitlines()[0]

    def profile(self, source):
        return os.path.join(self.folder, f"{source.name}.guards.txt")

    def compiler(self, level, source=None):
        if LEVELS[level] is None:
            return [self.clang, "--driver-mode=g++"]
        more = [f"-ffar-guard={self.profile(source)}"] if level == PROFILED else []
        return [self.farcc, *LEVELS[level], *more]

    def object_of(self, file, level, source=None):
        whose = f"{source.name}-" if level == PROFILED else ""
        return os.path.join(self.folder, f"{whose}{os.path.relpath(file, BENCH).replace(os.sep, '-')}.{level}.o")

    def compile(self, files, level, *more, source=None):
        """Processor seconds for all of them."""
        return sum(run([*self.compiler(level, source), *self.flags, *more, "-c", file, "-o",
                        self.object_of(file, level, source)]) for file in files)

    def link(self, source, level):
        """The program, of objects that are there."""
        program = os.path.join(self.folder, f"{source.name}.{level}")
        objects = [self.object_of(file, level, source) for file in [*source.files, *COMMON]]
        run([*self.compiler(level, source), "-pthread", *objects, "-o", program, *self.libraries])
        return program

    def report(self, source, level):
        """(instructions before, after) of the program's own files, compiled once more."""
        path = os.path.join(self.folder, f"{source.name}.{level}.jsonl")
        self.compile(source.files, level, f"-ffar-report={path}", source=source)
        return instructions(path)

    def text(self, source, level):
        return text_bytes(self.size_tool, [self.object_of(file, level, source) for file in source.files])
