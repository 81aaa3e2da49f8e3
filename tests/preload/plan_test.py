# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that follow a plan, whatever they do with their mappings, and whosever malloc() they have: `plan_test.py
--tool FARHEAP --guest PROGRAM RECORDED FOLLOWED`. RECORDED and FOLLOWED are modes of the program."""

import argparse
import json
import pathlib
import sys
import tempfile

from guest_run import run

RECORDED_MIB, MIB = 32, 56
RECORDED_ROUNDS, ROUNDS = 6, 3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--guest", required=True)
    parser.add_argument("recorded")
    parser.add_argument("followed")
    wanted = parser.parse_args()
    if not json.loads(run(wanted.tool, "doctor", "--json")[0])["run_works"]:
        print("NOT TESTED: `farheap doctor` says that programs cannot be run here", flush=True)
        sys.exit(77)

    with tempfile.TemporaryDirectory(prefix="farheap-preload-", dir="/var/tmp") as folder:
        profile, plan = pathlib.Path(folder, "guest.profile"), pathlib.Path(folder, "guest.plan")
        run(wanted.tool, "record", "-o", profile, "--memory", "512M", "--", wanted.guest, RECORDED_MIB, RECORDED_ROUNDS,
            wanted.recorded)
        run(wanted.tool, "plan", profile, "-o", plan)
        words = (wanted.guest, MIB, ROUNDS, wanted.followed)
        plain, _ = run(*words)
        planned, said = run(wanted.tool, "run", "--memory", "32M", "--store", f"file:{folder}", "--plan", plan,
                            "--stats=json", "--", *words)
        report = json.loads(said.splitlines()[-1])
    figures = {key: report[key] for key in ("seconds", "faults", "bytes_read", "touches_expected", "touches_unexpected")}
    print(figures, flush=True)
    if planned != plain:
        sys.exit(f"FAILED: other output:\n{plain}{planned}")
    if report["touches_expected"] <= report["touches_unexpected"]:
        sys.exit("FAILED: the plan was not followed")


main()
