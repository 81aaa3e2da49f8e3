# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an oracle would have read and written: a program runs once while its pages are recorded (docs/formats.md, a page
trace), and trace_optimum (bench/policy) reads the recording. No time is measured here."""

import glob
import json
import os
import shutil
import subprocess
import tempfile

import farheap_command
import measured_run
from report import MIB

FORMAT = 1
FAST_FOLDER = "/dev/shm"  # the store of a recording is asked for every page: in memory, if there is as much
RECORDING_TIMEOUTS = 3  # a recording faults for every page: it may take so many times the time-out of a run


def find_program(build):
    """None if it is not built."""
    path = os.path.join(build, "bench", "policy", "trace_optimum")
    return path if os.access(path, os.X_OK) else None


def store_folder(folder, needed_bytes):
    try:
        if shutil.disk_usage(FAST_FOLDER).free > 2 * needed_bytes:
            return FAST_FOLDER
    except OSError:
        pass
    return folder


def compute(program, trace, budgets):
    """One dictionary of numbers for each budget."""
    done = subprocess.run([program, trace, *map(str, budgets)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    found = json.loads(done.stdout)
    if found["format"] != FORMAT:
        raise ValueError(f"trace_optimum prints format {found['format']}, this script reads {FORMAT}")
    if found["cut"]:
        raise ValueError("its recording is not whole")
    facts = {"uses": found["uses"], "pages": found["pages"], "window_pages": found["window_pages"]}
    return [{**facts, **one} for one in found["optima"]]


def record(runner, subject, folder):
    """The path of the trace. Raises ValueError if there is none, or the program's result was not right."""
    facts = runner.measured.programs[subject.name]
    prefix = os.path.join(folder, "pages")
    command = farheap_command.run_command(
        runner.tool, 2 * facts["peak_bytes"] + 512 * MIB, subject.command,
        store=f"file:{store_folder(runner.options.folder, facts['peak_bytes'])}",
        settings=(f"record_pages={prefix}", f"record_window={runner.options.window}M"), mask=runner.options.mask)
    timeout = RECORDING_TIMEOUTS * runner.options.timeout
    run = measured_run.measured_run(command, stdin=subject.stdin, env=subject.env, cwd=subject.cwd, timeout=timeout)
    if run.timed_out:
        raise ValueError(f"its recording was not done after {timeout} s")
    if subject.measured(run).checksum != facts["checksum"]:
        raise ValueError("its result was wrong while it was recorded")
    traces = glob.glob(glob.escape(prefix) + ".*")
    if len(traces) != 1:
        raise ValueError(f"{len(traces)} of its processes were recorded instead of one")
    return traces[0]


def optima(runner, subject, budgets):
    """One dictionary of numbers for each budget."""
    folder = tempfile.mkdtemp(prefix="farheap-trace-", dir=runner.options.folder)
    try:
        return compute(runner.optimum_program, record(runner, subject, folder), budgets)
    finally:
        shutil.rmtree(folder)
