# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What exact LRU and Belady's optimum would miss: a program runs once while farheap records in which order its pages are
used, and trace_optimum (bench/policy) reads the recording. So the policy is judged apart from the price of a miss.

The window of a recording hides uses (src/plan/lru.hpp, optimum.hpp): the smaller it is, the nearer are the bounds,
and the longer it takes.
Forked children are not recorded; what runs in several processes has no common order, and is left out.
"""

import glob
import os
import shutil
import tempfile

import farheap_command
import measured_run
import optimum
import subject as subject_module
from report import MIB

SLOWER = 20  # a recording faults for nearly every use: it may take so many times the time-out of a run
BESIDE = 0.05  # so much of all the recordings may be those of other processes


def main_trace(paths):
    """The one that counts. Raises ValueError where there is none, or more than one."""
    sizes = {path: os.path.getsize(path) for path in paths}
    if not sizes:
        raise ValueError("nothing was recorded: its memory is a forked child's, or none that is reached")
    largest = max(sizes, key=sizes.get)
    if sum(sizes.values()) - sizes[largest] > BESIDE * sizes[largest]:
        raise ValueError(f"{len(sizes)} of its processes were recorded, and have no common order")
    return largest


def record(ways, subject, job, folder):
    facts = ways.measured.programs[subject.name]
    prefix = os.path.join(folder, "pages")
    command = farheap_command.run_command(
        ways.tool, 2 * facts["peak_bytes"] + 512 * MIB, job.command, mask=ways.options.mask, stats=False,
        store=f"file:{optimum.store_folder(ways.options.folder, facts['peak_bytes'])}",
        settings=(f"record_pages={prefix}", f"record_window={ways.options.window}M", "policy=clock"))
    timeout = SLOWER * ways.options.timeout
    run = measured_run.measured_run(command, stdin=job.stdin, env=job.env, cwd=job.cwd, timeout=timeout, interval=1.0)
    if run.timed_out:
        raise ValueError(f"its recording was not done after {timeout:.0f} s")
    if subject_module.digest(job, run) != facts["checksum"]:
        raise ValueError("its result was wrong while it was recorded")
    return main_trace(glob.glob(glob.escape(prefix) + ".*"))


def measure(ways, program, subject, job):
    """Enters the numbers of all levels into the measurements. Raises ValueError if there are none."""
    peak = ways.measured.programs[subject.name]["peak_bytes"]
    budgets = {level: peak * level // 100 for level in ways.options.levels
               if (subject.name, level) not in ways.measured.optima}
    if not budgets:
        return
    folder = tempfile.mkdtemp(prefix="farheap-trace-", dir=ways.options.folder)
    try:
        found = optimum.compute(program, record(ways, subject, job, folder), list(budgets.values()))
    finally:
        shutil.rmtree(folder)
    for level, numbers in zip(budgets, found):
        ways.measured.optima[subject.name, level] = numbers
    ways.measured.save()
