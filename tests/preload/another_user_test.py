#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program that becomes another user and executes another one: that one, too, is counted in the run.

/proc/TOOL/fd is closed to it, so it gets the run page as a descriptor that it inherits; also where somebody on the way
closes all descriptors from 3 on, as daemons do.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

CLOSE_ALL = "import os; os.closerange(3, 2000); os.execvp('setpriv', ['setpriv', *'{become} true'.split()])"
BECOME = "--reuid 65534 --regid 65534 --clear-groups"


def processes_of(tool, program):
    run = subprocess.run([tool, "run", "--memory", "32M", "--stats=json", "--", *program], stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    errors = run.stderr.decode()
    if run.returncode != 0:
        sys.exit(f"FAILED: status {run.returncode}: {errors}")
    report = json.loads(errors[errors.index('{"format"'):])
    return int(report.get("processes", report.get("counters", {}).get("processes", -1))), errors


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True)
    tool = parser.parse_args().tool
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        print("SKIPPED: only root can become another user (setpriv, from util-linux)", file=sys.stderr)
        return 77
    programs = {"setpriv": (["setpriv", *BECOME.split(), "true"], 2),
                "closing all": (["python3", "-c", CLOSE_ALL.format(become=BECOME)], 3)}
    for name, (program, expected) in programs.items():
        found, errors = processes_of(tool, program)
        if found != expected:
            print(f"FAILED: {name}: {found} processes counted, not {expected}\n{errors}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
