# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program under a budget aborts: its core is about as long as the addresses it was given, takes no more room than it
had in memory, and holds what was in view, not the terabytes that are only reserved."""

import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

MIB = 1 << 20
BUDGET_MIB = 64
GIVEN_MIB = 96 + 16  # what the case asks for, and some more for the C library and for rounding up
MARKER = b"what is used is in the core"


def why_not():
    """Where the kernel puts cores is a setting of the whole machine, which a test leaves alone."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
    if pattern.startswith("|") or "/" in pattern or not pattern:
        return f"kernel.core_pattern is '{pattern}', not a name in the current folder"
    if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
        return "the hard limit of RLIMIT_CORE is not unlimited"
    return None


def find_faults(core, status):
    size = core.stat()
    with open(core, "rb") as file:
        marked = MARKER in file.read()
    on_disk = size.st_blocks * 512
    print(f"{size.st_size / MIB:.1f} MiB long, {on_disk / MIB:.1f} MiB on disk", flush=True)
    faults = []
    if status != 128 + 6:
        faults.append(f"it ended with {status}, not by abort()")
    if size.st_size > (GIVEN_MIB + 128) * MIB:
        faults.append(f"it is {size.st_size / MIB:.1f} MiB long")
    if on_disk > (BUDGET_MIB + 16) * MIB:
        faults.append(f"it takes {on_disk / MIB:.1f} MiB")
    if not marked:
        faults.append("what was used last is not in it")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--cases", required=True)
    parser.add_argument("settings", nargs="*")
    wanted = parser.parse_args()
    if reason := why_not():
        print(f"NOT TESTED: {reason}")
        sys.exit(77)
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    command = [wanted.tool, "run", "--memory", f"{BUDGET_MIB}M"]
    for setting in wanted.settings:
        command += ["--set", setting]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FARHEAP_")}
    with tempfile.TemporaryDirectory(prefix="farheap-core-", dir="/var/tmp") as folder:
        done = subprocess.run([*command, "--", wanted.cases, "aborts_with_used_memory"], cwd=folder, check=False,
                              capture_output=True, text=True, timeout=100, env=environment)
        cores = list(pathlib.Path(folder).glob("*"))
        faults = find_faults(cores[0], done.returncode) if len(cores) == 1 else [f"not one core: {cores}"]
    if "1 process, paged" not in done.stderr:
        faults.append("nothing was paged: this tests nothing")
    if faults:
        print(done.stderr)
        sys.exit("FAILED: " + "; ".join(faults))


main()
