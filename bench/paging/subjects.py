# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the paging benchmark runs: its own programs, as they describe themselves, and the real programs."""

import dataclasses
import hashlib
import json
import os
import subprocess
import sys

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(REPOSITORY, "tests", "programs"))

# Of programs whose --describe does not say their class.
KNOWN_CLASSES = {"lbm": "sweeping", "sweep": "sweeping", "lookup": "random"}


@dataclasses.dataclass
class Measured:
    """What one run says of itself: the phase that counts, and a proof that the result is right."""
    seconds: float
    checksum: str


@dataclasses.dataclass
class Subject:
    name: str
    command: list
    kind: str = "other"  # its class: sweeping, random, other
    locks: bool = False  # it has --mlock MIB, which locks its hottest data
    real: bool = False  # a real program: only its whole run counts, and only with enough memory
    stdin: str = None
    env: dict = None
    cwd: str = None
    size: int = 0  # bytes of data, about, that its command asks for; 0: it does not say

    def measured(self, run):
        """Raises ValueError where the run gave no result."""
        if run.status != 0:
            raise ValueError(f"exit status {run.status}: {run.stderr.decode('utf-8', 'replace')[-400:].strip()}")
        if self.real:
            return Measured(run.seconds, hashlib.sha256(run.stdout).hexdigest())
        line = json.loads(run.stdout)
        if line["verified"] is False:
            raise ValueError("its own verifier found a wrong result")
        return Measured(line["seconds"], line["checksum"])


def locks_memory(path):
    """Whether the program's usage knows --mlock."""
    usage = subprocess.run([path, "--help"], capture_output=True, check=False)
    return b"--mlock" in usage.stdout + usage.stderr


def bytes_of(text):
    """Of a size as programs take it: 96M."""
    unit = {"K": 10, "M": 20, "G": 30}.get(text[-1:])
    return int(text[:-1]) << unit if unit else int(text)


def size_of(arguments, default):
    """The last one counts."""
    sizes = [bytes_of(value) for word, value in zip(arguments, arguments[1:]) if word == "--size"]
    return sizes[-1] if sizes else default


def bench_subjects(build, quick):
    """One subject for each case of each program in the build folder."""
    folder = os.path.join(build, "bench", "paging", "programs")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"no benchmark programs in {folder}: build the target farheap_bench_paging first")
    subjects = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if not (os.path.isfile(path) and os.access(path, os.X_OK)):
            continue
        described = json.loads(subprocess.run([path, "--describe"], capture_output=True, check=True).stdout)
        locks = locks_memory(path)
        for case in described["cases"]:
            arguments = case["arguments"] + (case["quick_arguments"] if quick else [])
            kind = case.get("class") or described.get("class") or KNOWN_CLASSES.get(name, "other")
            size = size_of(arguments, described["defaults"]["size"])
            subjects.append(Subject(case["name"], [path, *arguments], kind, locks, size=size))
    return subjects


def real_subjects(folder, quick):
    """The programs of tests/programs, with their data made in `folder`. Those that are not installed are told."""
    import programs  # pylint: disable=import-outside-toplevel,import-error
    subjects, missing = [], []
    for program in programs.ALL:
        reason = program.missing()
        if reason:
            missing.append(f"{program.name}: {reason}")
            continue
        job = program.prepare(folder, "quick" if quick else "full")
        subjects.append(Subject(program.name, job.command, real=True, stdin=job.stdin, env=job.env, cwd=folder))
    return subjects, missing
