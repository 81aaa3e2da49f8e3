# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a program's plan, as its user would: the program is recorded with less data and another seed, with more memory
than it needs, and `farheap plan` makes a plan of the profile."""

import base64
import dataclasses
import os
import subprocess

SEED = 2  # measured are the programs with seed 1
PROFILE = "profile"  # in the folder that is given
MEMORY = "1G"  # more than any of the recorded programs needs
NOT_FORESEEN = "could have been foreseen"  # what `farheap plan` says where it made no plan because none would help


@dataclasses.dataclass
class Training:
    """A plan, or why there is none."""
    plan: bytes = b""
    why_none: str = ""

    def facts(self):
        """As the measurements keep it: whoever resumes them follows the same plan."""
        return {"plan": base64.b64encode(self.plan).decode("ascii"), "why_none": self.why_none}


def from_facts(facts):
    return Training(base64.b64decode(facts["plan"]), facts["why_none"])


def _done(command, timeout):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as late:
        raise ValueError(f"{' '.join(command[:2])} was not done after {timeout} s") from late


def record(tool, subject, part, folder, timeout):
    """The path of the profile of a run with a `part`-th of the data. Raises ValueError where the program failed."""
    profile = os.path.join(folder, PROFILE)
    command = [tool, "record", "-o", profile, "--memory", MEMORY, "--store", f"file:{folder}", "--quiet", "--",
               *subject.command, "--size", str(subject.size // part), "--seed", str(SEED)]
    done = _done(command, timeout)
    if done.returncode != 0:
        raise ValueError(f"its training ended with status {done.returncode}: {done.stderr.strip()[-400:]}")
    return profile


def train(tool, subject, part, folder, timeout):
    """Raises ValueError where there is neither a plan nor a reason for that."""
    profile = record(tool, subject, part, folder, timeout)
    path = os.path.join(folder, "trained.plan")
    done = _done([tool, "plan", profile, "-o", path], timeout)
    said = done.stderr.strip().replace(profile, "its profile")
    if done.returncode == 1 and NOT_FORESEEN in said:
        return Training(why_none=said.removeprefix("farheap: cannot make a plan: "))
    if done.returncode != 0:
        raise ValueError(f"farheap plan ended with status {done.returncode}: {said[-400:]}")
    with open(path, "rb") as file:
        return Training(plan=file.read())
