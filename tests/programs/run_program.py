#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs one real program plainly and under a part of the memory it needs, and compares everything.

  run_program.py --program sort_2 --percent 25 --build build/release [--mask-6.1] [--size full]
  run_program.py --clear            forget data and plain runs of earlier calls

Same output bytes and exit status, peak of the process tree within the budget, pages really left, nothing remains.
"""

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "common"))
# pylint: disable=wrong-import-position
import catalogue
import farheap_command
import measured_run
import memory_group
import programs

MIB = 1 << 20
LEAST_BUDGET = 32 * MIB
TIMEOUT_SECONDS = {"quick": 240, "full": 3000}
SKIPPED = 77  # ctest's SKIP_RETURN_CODE: only where a program is not installed, and said loudly


def digest_of(path):
    total = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(MIB):
            total.update(part)
    return f"{os.path.getsize(path)} bytes, sha256 {total.hexdigest()}"


class Trial:
    """One run, plain or under farheap: what came out and what it took."""

    def __init__(self, job, command, folder, timeout):
        output = os.path.join(folder, f"output-{os.getpid()}")
        arguments = {"stdin": job.stdin, "stdout": output, "env": job.env, "cwd": folder, "timeout": timeout}
        try:
            if memory_group.unavailable() is None:
                with memory_group.MemoryGroup() as group:
                    self.run = measured_run.measured_run(command, group=group, **arguments)
            else:
                self.run = measured_run.measured_run(command, **arguments)
            self.output = digest_of(output)
        finally:
            if os.path.exists(output):
                os.unlink(output)


def plain_run(program, job, folder, size, timeout):
    """Peak and output of the run without a limit; made once, kept beside the data."""
    path = os.path.join(folder, f"plain-{program.name}-{size}.json")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    trial = Trial(job, job.command, folder, timeout)
    if trial.run.timed_out or trial.run.status != 0:
        raise SystemExit(f"the plain run of {program.name} failed with status {trial.run.status}: "
                         f"{trial.run.stderr.decode('utf-8', 'replace')[-2000:]}")
    found = {"peak_bytes": trial.run.peak_bytes, "output": trial.output, "seconds": trial.run.seconds}
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
        json.dump(found, file)
    os.replace(f"{path}.{os.getpid()}", path)
    return found


def allowed_peak(budget, plain_bytes=0):
    """`plain_bytes` cannot leave; beside them a process keeps 4 MiB of its heap, whatever the budget."""
    budget = max(budget, plain_bytes + 4 * MIB)
    return budget + max(budget // 50, 8 * MIB)


def faults_of(plain, trial, budget, percent, allowed, store_folder):
    """Every way in which the run under a budget differs from what it must be, in words."""
    run = trial.run
    if run.timed_out:
        return [f"not done after {run.seconds:.0f} s (plainly {plain['seconds']:.1f} s)"]
    found = []
    if run.status != 0:
        found.append(f"exit status {run.status} instead of 0")
    if trial.output != plain["output"]:
        found.append(f"output is {trial.output}, plainly it is {plain['output']}")
    stats = farheap_command.parse_stats(run.stderr)
    own_peak = 0
    if stats is None:
        found.append("no statistics on stderr")
    else:
        own_peak = farheap_command.counter(stats, "peak_bytes")
        # At half of the peak an allocator that wastes less may get along without; at a quarter it cannot.
        if percent <= 25 and farheap_command.counter(stats, "bytes_written") == 0:
            found.append("no page ever left for the store, so this run proves nothing")
        if farheap_command.counter(stats, "processes") == 0:
            found.append("no process loaded the runtime")
    peak = max(run.peak_bytes, own_peak)
    if peak > allowed:
        found.append(f"peak {peak / MIB:.1f} MiB (sampled {run.peak_bytes / MIB:.1f}, its own count "
                     f"{own_peak / MIB:.1f}), budget {budget / MIB:.1f}, allowed {allowed / MIB:.1f}")
    if run.kills:
        found.append(f"the kernel killed {run.kills} processes for want of memory")
    if run.left_behind:
        found.append(f"{run.left_behind} processes were left behind")
    if os.listdir(store_folder):
        found.append(f"files were left in the store's folder: {', '.join(os.listdir(store_folder))}")
    return found


def check(program, options, folder):
    job = program.prepare(folder, options.size)
    timeout = TIMEOUT_SECONDS[options.size]
    plain = plain_run(program, job, folder, options.size, timeout)
    budget = plain["peak_bytes"] * options.percent // 100
    print(f"{program.name}: plainly {plain['seconds']:.2f} s, peak {plain['peak_bytes'] / MIB:.1f} MiB, "
          f"{plain['output']}", flush=True)
    if budget < LEAST_BUDGET:
        print(f"FAILED: {options.percent} % of the peak is {budget / MIB:.1f} MiB, less than the least budget: give "
              "the program more to do in programs.py")
        return 1
    tool = farheap_command.find_tool(farheap_command.find_build(options.build))
    if tool is None:
        print(f"FAILED: no tool in {farheap_command.find_build(options.build)}")
        return 1
    store_folder = tempfile.mkdtemp(prefix="store-", dir=folder)
    try:
        command = farheap_command.run_command(tool, budget, job.command, store=options.store or f"file:{store_folder}",
                                              mask=options.mask, settings=options.set)
        trial = Trial(job, command, folder, timeout)
        allowed = allowed_peak(budget, program.plain_bytes(options.size)) + program.shared_bytes + options.beside * MIB
        found = faults_of(plain, trial, budget, options.percent, allowed, store_folder)
    finally:
        shutil.rmtree(store_folder)
    print(f"under {budget / MIB:.1f} MiB: {trial.run.seconds:.2f} s, peak {trial.run.peak_bytes / MIB:.1f} MiB\n"
          f"{trial.run.stderr.decode('utf-8', 'replace')[-2000:]}")
    for line in found:
        print(f"FAILED: {line}")
    return 1 if found else 0


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", choices=[program.name for program in catalogue.ALL])
    parser.add_argument("--percent", type=int, default=50, help="of the plain peak (default: 50)")
    parser.add_argument("--size", choices=programs.SIZES, default="quick")
    parser.add_argument("--build", help="build folder (default: $FARHEAP_BUILD or build/release)")
    parser.add_argument("--mask-6.1", dest="mask", action="store_true", help="as on a Linux 6.1")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="handed on to farheap run")
    parser.add_argument("--store", metavar="URI", help="instead of a file in a folder of its own")
    parser.add_argument("--beside", type=int, default=0, metavar="MIB",
                        help="what the store's process beside the run may take, which is not in the budget")
    parser.add_argument("--folder", help="where data and plain runs are kept (default: programs-data in the build)")
    parser.add_argument("--clear", action="store_true")
    options = parser.parse_args()
    if not options.clear and not options.program:
        parser.error("--program is missing")
    return options


def main():
    options = parse_options()
    measured_run.unwind_on_signals()
    folder = os.path.abspath(options.folder or
                             os.path.join(farheap_command.find_build(options.build), "programs-data"))
    if options.clear:
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    os.makedirs(folder, exist_ok=True)
    program = catalogue.find(options.program)
    program.build = farheap_command.find_build(options.build)
    if program.missing():
        farheap_command.complain(f"SKIPPED: {program.name}: {program.missing()}")
        return SKIPPED
    return check(program, options, folder)


if __name__ == "__main__":
    sys.exit(main())
